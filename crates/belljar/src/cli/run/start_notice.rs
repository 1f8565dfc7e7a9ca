//! Tells a person at a terminal what a run waits for: servers that take long to start, the code, a tool
//! call; and before the code runs, its tools and the id of a durable run.

use std::{
    future::Future,
    io::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_contract::{ApprovalId, RunId, RunResult};
use belljar_project::{Executor, Project};
use belljar_tools::{ApprovalNotice, Bridge, CallObserver, PreparedRun, Tool, ToolReach};

use crate::cli::{
    approvals::prompt::{self, ApprovalWait},
    terminal::{
        progress::{above, with_progress},
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// Observes a run of the command line.
#[derive(Debug)]
pub(super) struct StartNotice {
    run_id: String,
    has_intent: bool,
    is_asked_for: bool,
    phase: Mutex<RunPhase>,
    then: Arc<dyn CallObserver>,
}

/// The present cause of waiting.
#[derive(Debug)]
enum RunPhase {
    Servers,
    Code,
    Calls(Vec<String>),
}

/// The options of the person that change notices.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoticeOptions {
    pub(super) has_intent: bool,
    /// A durable run, whatever its tools.
    pub(super) is_durable: bool,
    pub(super) wait: ApprovalWait,
}

impl StartNotice {
    /// An observer that also asks about calls, as `prompt` does.
    pub(super) fn new(
        run_id: &str,
        options: NoticeOptions,
        executor: &Executor,
        project: &Project,
    ) -> Arc<Self> {
        let then = prompt::observer(executor.decisions(), project, options.wait);
        let phase = match executor.bridge() {
            Some(_) => RunPhase::Servers,
            None => RunPhase::Code,
        };
        Arc::new(Self {
            run_id: run_id.to_owned(),
            has_intent: options.has_intent,
            is_asked_for: options.is_durable,
            phase: Mutex::new(phase),
            then,
        })
    }

    /// Waits for the run, and says what it waits for.
    pub(super) async fn watch(
        &self,
        bridge: Option<&Bridge>,
        file: &str,
        run: impl Future<Output = RunResult>,
    ) -> RunResult {
        let what = || match &*self.phase.lock().unwrap_or_else(PoisonError::into_inner) {
            RunPhase::Servers => {
                let servers = bridge.map(Bridge::servers).unwrap_or_default();
                format!("starting MCP servers: {}", visible(&servers.join(", ")))
            }
            RunPhase::Calls(tools) if !tools.is_empty() => {
                format!("calling {}", visible(&tools.join(", ")))
            }
            RunPhase::Calls(_) | RunPhase::Code => format!("running {}", visible(file)),
        };
        with_progress(what, run).await
    }

    fn set_phase(&self, change: impl FnOnce(&mut RunPhase)) {
        change(&mut self.phase.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl CallObserver for StartNotice {
    fn run_begins(&self, run_id: &RunId) {
        self.then.run_begins(run_id);
    }

    fn run_prepared(&self, run: PreparedRun<'_>) {
        self.set_phase(|phase| *phase = RunPhase::Code);
        let style = TextStyle::of_stderr();
        if style.is_terminal() {
            let mut lines = Vec::new();
            if self.has_intent {
                let names = if run.tools.is_empty() { "none" } else { &run.tools.join(", ") };
                lines.push(format!("tools: {}", visible(names)));
            }
            if run.keeps_journal {
                let why = match self.is_asked_for {
                    true => "",
                    false => " (it may call a tool that asks; --no-durable for an ordinary run)",
                };
                lines.push(format!("durable run {}{why}", self.run_id));
            }
            above(false, || {
                for line in lines {
                    let _ = writeln!(io::stderr(), "{}", style.paint(TextRole::Dim, &line));
                }
            });
        }
        self.then.run_prepared(run);
    }

    fn may_wait(&self) -> bool {
        self.then.may_wait()
    }

    fn approval_waits(&self, notice: &ApprovalNotice) {
        self.then.approval_waits(notice);
    }

    fn approval_over(&self, id: &ApprovalId) {
        self.then.approval_over(id);
    }

    fn call_begins(&self, tool: &Tool, reach: ToolReach) {
        self.set_phase(|phase| {
            if let RunPhase::Calls(tools) = phase {
                tools.push(tool.qualified_name());
            } else {
                *phase = RunPhase::Calls(vec![tool.qualified_name()]);
            }
        });
        self.then.call_begins(tool, reach);
    }

    fn call_ends(&self, tool: &str, is_ok: bool, duration: Duration) {
        self.set_phase(|phase| {
            if let RunPhase::Calls(tools) = phase
                && let Some(at) = tools.iter().position(|name| name == tool)
            {
                tools.remove(at);
            }
        });
        self.then.call_ends(tool, is_ok, duration);
    }
}
