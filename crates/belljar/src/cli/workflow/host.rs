//! This process as a host of workflows.

use std::{env, sync::Arc};

use belljar::{Executor, FlowOptions, FlowTerms, Flows, Hidden, RunResult, SessionRegistry};
use belljar_tools::CallObserver;

use super::super::{
    arguments::LimitArguments,
    asking,
    config::{Places, Settings},
    granted::{resolve, variable},
    interrupt::{Interrupt, Stop},
    launch::{Launched, launch},
    project::Project,
    run::builder,
};

/// What is configured here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host<'a> {
    pub(super) settings: &'a Settings,
    pub(super) places: &'a Places,
    pub(super) project: &'a Project,
}

/// Workflows that can be driven, and what that takes.
pub(super) struct Ready {
    pub(super) flows: Flows,
    pub(super) executor: Executor,
    sessions: SessionRegistry,
}

impl Ready {
    /// Ends everything; a further signal is for not waiting until that is done.
    pub(super) async fn end(self, interrupt: &mut Interrupt) {
        self.flows.stop().await;
        self.sessions.shutdown().await;
        super::super::launch::clear_up(self.executor, interrupt).await;
    }
}

/// Whether workflows can be driven here.
pub(super) enum Started {
    Ready(Box<Ready>),
    /// They cannot, or a signal came first.
    Not(Box<RunResult>, Option<Stop>),
}

impl Host<'_> {
    /// Starts what drives workflows.
    pub(super) async fn start(
        self,
        limits: &LimitArguments,
        terms: FlowTerms,
        watch: impl FnOnce(Arc<dyn CallObserver>) -> Arc<dyn CallObserver>,
        interrupt: &mut Interrupt,
    ) -> anyhow::Result<Started> {
        let builder = builder(self.settings, self.project);
        let executor = match launch(builder, Some(self.project), interrupt).await? {
            Launched::Ready(executor) => *executor,
            Launched::Not(result, stop) => return Ok(Started::Not(result, stop)),
        };
        let observer = watch(asking::observer(executor.store()));
        let options = FlowOptions {
            terms,
            observer,
            ..options(self.settings, self.places, self.project, limits)
        };
        let (sandbox, store) = (executor.sandbox().clone(), executor.store().cloned());
        let sessions = SessionRegistry::new(sandbox, store).await;
        let flows = Flows::new(executor.clone(), sessions.clone(), options).await?;
        Ok(Started::Ready(Box::new(Ready { flows, executor, sessions })))
    }
}

/// How workflows are run by this program.
fn options(
    settings: &Settings,
    places: &Places,
    project: &Project,
    limits: &LimitArguments,
) -> FlowOptions {
    let hidden = Hidden {
        names: Project::RESERVED_NAMES.map(str::to_owned).to_vec(),
        paths: project.protected(),
    };
    FlowOptions { hidden, ..FlowOptions::new(settings.limits(&limits.given()), places.scratch()) }
}

/// What the flags of `workflow run` allow a file.
pub(super) fn terms(
    arguments: &super::super::arguments::WorkflowRunArguments,
) -> anyhow::Result<FlowTerms> {
    let here = env::current_dir()?;
    Ok(FlowTerms {
        code: arguments.enable_code_execution,
        shell: Some(arguments.enable_shell),
        readable: arguments.read.iter().map(|path| resolve(&here, path)).collect(),
        writable: Vec::new(),
        env: arguments.env.iter().map(|given| variable(given)).collect::<anyhow::Result<_>>()?,
    })
}
