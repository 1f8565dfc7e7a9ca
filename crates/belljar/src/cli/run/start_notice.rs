//! Tells a person at a terminal what happens before the code runs: servers that take long to start, then
//! the tools of the run and the id of a durable one.

use std::{
    future::Future,
    io::{self, Write as _},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use belljar_contract::{ApprovalId, RunId, RunResult};
use belljar_project::Executor;
use belljar_tools::{ApprovalNotice, Bridge, CallObserver, PreparedRun, Tool, ToolReach};
use tokio::sync::Notify;

use crate::cli::{
    approvals::prompt,
    terminal::{
        notice::with_notice,
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// Observes a run of the command line.
#[derive(Debug)]
pub(super) struct StartNotice {
    run_id: String,
    has_intent: bool,
    is_prepared: Notify,
    then: Arc<dyn CallObserver>,
}

impl StartNotice {
    /// An observer that also asks about calls, as `prompt` does.
    pub(super) fn new(run_id: &str, has_intent: bool, executor: &Executor) -> Arc<Self> {
        let (run_id, then) = (run_id.to_owned(), prompt::observer(executor.decisions()));
        Arc::new(Self { run_id, has_intent, is_prepared: Notify::new(), then })
    }

    /// Waits for the run, with a notice if its servers take long to start.
    pub(super) async fn watch(
        &self,
        bridge: &Bridge,
        run: impl Future<Output = RunResult>,
    ) -> RunResult {
        let mut run = pin!(run);
        let servers = || format!("starting MCP servers: {}", bridge.servers().join(", "));
        tokio::select! {
            result = &mut run => result,
            () = with_notice(servers, self.is_prepared.notified()) => run.await,
        }
    }
}

impl CallObserver for StartNotice {
    fn run_begins(&self, run_id: &RunId) {
        self.then.run_begins(run_id);
    }

    fn run_prepared(&self, run: PreparedRun<'_>) {
        self.is_prepared.notify_one();
        let style = TextStyle::of_stderr();
        if style.is_terminal() {
            let mut lines = Vec::new();
            if self.has_intent {
                let names = if run.tools.is_empty() { "none" } else { &run.tools.join(", ") };
                lines.push(format!("tools: {}", visible(names)));
            }
            if run.keeps_journal {
                lines.push(format!("durable run {}", self.run_id));
            }
            for line in lines {
                let _ = writeln!(io::stderr(), "{}", style.paint(TextRole::Dim, &line));
            }
        }
        self.then.run_prepared(run);
    }

    fn approval_waits(&self, notice: &ApprovalNotice) {
        self.then.approval_waits(notice);
    }

    fn approval_over(&self, id: &ApprovalId) {
        self.then.approval_over(id);
    }

    fn call_begins(&self, tool: &Tool, reach: ToolReach) {
        self.then.call_begins(tool, reach);
    }

    fn call_ends(&self, tool: &str, is_ok: bool, duration: Duration) {
        self.then.call_ends(tool, is_ok, duration);
    }
}
