//! Runs with everything a project gives them: tools, approvals, a journal, a budget, a cache.
//!
//! The sandbox knows nothing of tools and the bridge nothing of cells; here they meet. Every way to
//! run code with tools, from the command line, over MCP or HTTP, goes through [`Executor`].

mod budget;
mod cache;
mod durable;
mod intent;
mod link;
mod stored;

use std::{future::Future, sync::Arc, time::Duration};

use belljar_runtime::{
    Bridged, ErrorCode, Listener, RunError, RunRequest, RunResult, Status, ToolLink, ToolReport,
    run_id, unrun,
};
use belljar_store::Store;
use belljar_tools::{Bridge, NoObserver, Observer, RunBridge, RunContext, ToolGrants};

use crate::{Sandbox, Session};
use cache::{CacheKey, Used};
use durable::UnderWay;
pub use durable::{ResumeError, Resumed, is_owner_alive};
pub(crate) use durable::{is_owner_this_process, this_process};

/// Runs code with tools. Cheap to clone; all clones share sandbox, servers and store.
#[derive(Debug, Clone)]
pub struct Executor {
    sandbox: Sandbox,
    bridge: Option<Bridge>,
    store: Option<Store>,
    under_way: UnderWay,
}

/// One piece of code to run, with what it gets of its project.
#[derive(Debug)]
pub struct Execution {
    /// The code and its limits and grants.
    pub request: RunRequest,
    /// The tools it may use.
    pub tools: ToolGrants,
    /// What it is for: it gets the few tools that fit, beside those it may use by name, and no others.
    pub intent: Option<String>,
    /// Which tools it got, once [`Executor::inject`] has decided that.
    pub report: Option<ToolReport>,
    /// Whether it can be resumed after its host has died.
    pub durability: Durability,
    /// Who asks for it, for audit rows and approvals.
    pub caller: String,
    /// A value larger than this many tokens is stored, and a summary takes its place.
    pub max_output_tokens: Option<u32>,
    /// For how long an answer may be given again to the same question.
    pub cache: Option<Duration>,
    /// Who wants to hear of what happens.
    pub observer: Arc<dyn Observer>,
    /// Who wants to hear what it prints, as it does.
    pub listener: Option<Arc<dyn Listener>>,
}

/// Whether a run keeps a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// If it might have to wait for a person.
    IfAsked,
    /// In any case.
    Always,
    /// In no case: it waits for a person only as long as its host lives.
    Never,
}

impl Execution {
    /// A request with the tools that policy allows, and nothing else special about it.
    pub fn new(request: RunRequest, caller: impl Into<String>) -> Self {
        Self {
            request,
            tools: ToolGrants::default(),
            intent: None,
            report: None,
            durability: Durability::IfAsked,
            caller: caller.into(),
            max_output_tokens: None,
            cache: None,
            observer: Arc::new(NoObserver),
            listener: None,
        }
    }
}

impl Executor {
    /// An executor for a project's servers and store; without them, runs have no tools and leave
    /// no trace.
    pub fn new(sandbox: Sandbox, bridge: Option<Bridge>, store: Option<Store>) -> Self {
        Self { sandbox, bridge, store, under_way: UnderWay::default() }
    }

    /// Where its runs run.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The bridge to the project's servers.
    pub fn bridge(&self) -> Option<&Bridge> {
        self.bridge.as_ref()
    }

    /// The project's store.
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Runs the code to its end, or until `abort` completes. Whatever goes wrong is in the result.
    pub async fn execute(
        &self,
        execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        self.execute_as(run_id(), execution, abort).await
    }

    /// The same, under a name that is known beforehand.
    pub async fn execute_as(
        &self,
        id: String,
        mut execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        self.inject(&mut execution).await;
        let key = CacheKey::of(&execution, self.bridge.as_ref());
        if let Some(cached) = self.cached(&execution, key.as_ref()).await {
            return RunResult { tools: execution.report.unwrap_or_default(), ..cached };
        }
        let (budget, ttl) = (execution.max_output_tokens, execution.cache);
        let used = Arc::new(Used::hearing_for(execution.observer.clone()));
        execution.observer = used.clone();
        self.post(&id, "code_execution_started", &execution.request.language).await;
        let is_durable = self.is_durable(&execution).await;
        let result = match (is_durable, &self.store) {
            (true, Some(store)) => self.begin_durable(id, execution, store, abort).await,
            _ => self.run_plain(Where::Fresh(&self.sandbox), id, execution, abort).await,
        };
        self.keep(key, ttl, &used, &result).await;
        self.close(result, budget).await
    }

    /// Runs the code in a session, under a name that is known beforehand. Tools, the budget and the
    /// audit are as in any run; there is no journal and no cache, for the answer depends on what the
    /// session was asked before.
    pub async fn execute_in(
        &self,
        session: &Session,
        id: String,
        mut execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        if execution.durability == Durability::Always {
            let message = "a run in a session cannot be durable";
            let error = RunError::new(ErrorCode::RequestInvalid, message)
                .with_hint("leave `durable` out, or leave the session out");
            return RunResult { id, ..unrun(Status::Failed, error) };
        }
        self.inject(&mut execution).await;
        let budget = execution.max_output_tokens;
        self.post(&id, "code_execution_started", &execution.request.language).await;
        let result = self.run_plain(Where::In(session), id, execution, abort).await;
        self.close(result, budget).await
    }

    /// Whether a run needs a journal.
    async fn is_durable(&self, execution: &Execution) -> bool {
        match (execution.durability, &self.bridge) {
            (Durability::Always, _) => true,
            (Durability::Never, _) | (Durability::IfAsked, None) => false,
            (Durability::IfAsked, Some(bridge)) => bridge.may_ask(&execution.tools).await,
        }
    }

    async fn run_plain(
        &self,
        place: Where<'_>,
        id: String,
        execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let Execution { request, tools, caller, observer, listener, report, .. } = execution;
        let Some(bridge) = &self.bridge else {
            let alone = Bridged { id, tools: None, listener };
            return place.run(request, alone, abort).await;
        };
        let context = RunContext {
            run_id: id.clone(),
            caller,
            grants: tools,
            tool_timeout: request.limits.tool_timeout,
            code: request.code.clone(),
            observer,
        };
        let (tools, far) = ToolLink::pair(None);
        let link::Far { asks, sink } = link::Far::of(far);
        let calls = RunBridge::plain(bridge, context, sink);
        let bridged = Bridged { id, tools: Some(tools), listener };
        let run = place.run(request, bridged, abort);
        let (result, _) = tokio::join!(run, link::serve(calls, asks));
        RunResult { tools: report.unwrap_or_default(), ..result }
    }

    /// What is left to do when a run has ended.
    async fn close(&self, mut result: RunResult, budget: Option<u32>) -> RunResult {
        if let Some(tokens) = budget {
            budget::fit(&mut result, tokens, self.store.as_ref()).await;
        }
        let event = match result.status {
            Status::Completed => "code_execution_completed",
            Status::Failed | Status::Aborted => "code_execution_failed",
            Status::ApprovalRequired | Status::InDoubt => "code_execution_paused",
        };
        self.post(&result.id, event, &result.metrics).await;
        result
    }

    /// Notes an event, without waiting for the disk (F4).
    async fn post(&self, id: &str, name: &str, data: &(impl serde::Serialize + Sync)) {
        let Some(store) = &self.store else { return };
        let data = serde_json::to_string(data).unwrap_or_default();
        if let Err(error) = store.post_event(id, name, data, now_ms()).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "an event was lost");
        }
    }

    /// Ends cells, zygotes and servers, and waits until they are gone.
    pub async fn shutdown(self) {
        if let Some(bridge) = &self.bridge {
            bridge.shutdown().await;
        }
        if let Some(store) = &self.store {
            let _ = store.flush().await;
        }
        self.sandbox.shutdown().await;
    }
}

/// Where code runs.
#[derive(Debug, Clone, Copy)]
enum Where<'a> {
    /// In a cell of its own.
    Fresh(&'a Sandbox),
    /// In that of a session.
    In(&'a Session),
}

impl Where<'_> {
    async fn run(
        self,
        request: RunRequest,
        bridged: Bridged,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        match self {
            Self::Fresh(sandbox) => sandbox.run_bridged(request, Some(bridged), abort).await,
            Self::In(session) => session.run_bridged(request, Some(bridged), abort).await,
        }
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
