//! This process as a host of workflows.

use std::sync::Arc;

use belljar_contract::{ClientGrants, RunResult};
use belljar_project::{
    Executor, HiddenPaths, Project, ProjectWorkflows, SessionRegistry, WorkflowOptions,
    WorkflowPermissions,
    config::{ConfigLocations, ProjectSettings},
};
use belljar_tools::CallObserver;

use crate::cli::{
    access::requested_grants,
    approvals::prompt::{self, ApprovalWait},
    arguments::{LimitArguments, WorkflowRunArguments},
    launch::{LaunchOutcome, launch, shut_down},
    run::sandbox_builder,
    signals::{SignalListener, StopSignal},
};

/// The settings and the project of a workflow command.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkflowContext<'a> {
    pub(super) settings: &'a ProjectSettings,
    pub(super) locations: &'a ConfigLocations,
    pub(super) project: &'a Project,
}

/// Everything that drives workflows in this process.
pub(super) struct WorkflowHost {
    pub(super) workflows: ProjectWorkflows,
    pub(super) executor: Executor,
    sessions: SessionRegistry,
}

impl WorkflowHost {
    /// Stops and shuts down. A further signal skips the wait.
    pub(super) async fn end(self, signals: &mut SignalListener) {
        self.workflows.stop().await;
        self.sessions.shutdown().await;
        shut_down(self.executor, signals).await;
    }
}

/// The outcome of starting a workflow host.
pub(super) enum HostStart {
    Ready(Box<WorkflowHost>),
    /// It cannot start, or a signal came first; holds the result to report.
    Not(Box<RunResult>, Option<StopSignal>),
}

impl WorkflowContext<'_> {
    /// Starts what drives workflows.
    pub(super) async fn start(
        self,
        limits: &LimitArguments,
        permissions: WorkflowPermissions,
        watch: impl FnOnce(Arc<dyn CallObserver>) -> Arc<dyn CallObserver>,
        signals: &mut SignalListener,
    ) -> anyhow::Result<HostStart> {
        let sandbox_builder = sandbox_builder(self.settings, self.project);
        let executor = match launch(sandbox_builder, Some(self.project), signals).await? {
            LaunchOutcome::Ready(executor) => *executor,
            LaunchOutcome::Not(result, stop) => return Ok(HostStart::Not(result, stop)),
        };
        let observer =
            watch(prompt::observer(executor.decisions(), self.project, ApprovalWait::Wait));
        let options = WorkflowOptions {
            permissions,
            observer,
            ..options(self.settings, self.locations, self.project, limits)
        };
        let (sandbox, store) = (executor.sandbox().clone(), executor.store().cloned());
        let sessions = SessionRegistry::new(sandbox, store).await;
        let workflows = ProjectWorkflows::new(executor.clone(), sessions.clone(), options).await?;
        Ok(HostStart::Ready(Box::new(WorkflowHost { workflows, executor, sessions })))
    }
}

/// The options of workflows at the command line.
fn options(
    settings: &ProjectSettings,
    locations: &ConfigLocations,
    project: &Project,
    limits: &LimitArguments,
) -> WorkflowOptions {
    let hidden = HiddenPaths {
        names: Project::RESERVED_NAMES.map(str::to_owned).to_vec(),
        paths: project.protected(),
    };
    WorkflowOptions {
        hidden,
        ..WorkflowOptions::new(settings.limits(limits.given()), locations.scratch())
    }
}

/// The permissions that the flags of `workflow run` give.
pub(super) fn requested_permissions(
    arguments: &WorkflowRunArguments,
) -> anyhow::Result<WorkflowPermissions> {
    // There is no flag for writing: see `workflow_help` in the contract's table.
    let grants = requested_grants(&arguments.grants)?;
    Ok(WorkflowPermissions {
        code: arguments.enable_code_execution,
        shell: Some(arguments.enable_shell),
        grants: ClientGrants::of_flags(&grants),
        hosts: grants.net,
    })
}
