//! Runs with everything a project gives them: tools, approvals, a journal, a budget, a cache.
//!
//! The sandbox knows nothing of tools and the bridge nothing of cells; here they meet. Every way to
//! run code with tools, from the command line, over MCP or HTTP, goes through [`Executor`].

mod budget;
mod cache;
mod durable;
mod intent;
mod link;
mod one_call;
mod ownership;
mod stored;

use std::{
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use belljar_runtime::{
    Bridged, ErrorCode, Listener, Metrics, RunError, RunRequest, RunResult, Status, ToolLink,
    ToolReport, run_id, unrun,
};
use belljar_server::Meter;
use belljar_store::{Approvals, Store};
use belljar_tools::{Bridge, CallObserver, NoObserver, RunBridge, RunContext, ToolGrants};

pub(crate) use crate::owner::{is_owner_alive, is_owner_this_process, this_process};
use crate::{
    Sandbox, Session,
    active::ActiveIds,
    owner::{Enlisted, enlist},
};
use cache::{CacheKey, Used};
pub(crate) use durable::EndedRun;
pub use durable::{ResumeError, Resumed};
pub(crate) use one_call::{OneCall, OneCallEnd};
use ownership::RUNNING;
pub use ownership::run_status;

/// The event that a run has ended without a value, for whatever reason.
const FAILED: &str = "code_execution_failed";
/// The event that a run waits: for a person, or for the next host.
const PAUSED: &str = "code_execution_paused";

/// What the event of a paused run says.
#[derive(Debug, serde::Serialize)]
struct PauseEvent<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    status: Status,
    #[serde(rename = "toolName")]
    tool: Option<&'a str>,
    /// The questions a person has to answer.
    approvals: Vec<String>,
}

/// Runs code with tools. Cheap to clone; all clones share sandbox, servers and store.
#[derive(Debug, Clone)]
pub struct Executor {
    sandbox: Sandbox,
    bridge: Option<Bridge>,
    store: Option<Store>,
    /// The durable runs this executor and its clones are at.
    under_way: ActiveIds,
    /// Where measurements go, once somebody takes them.
    meter: Arc<OnceLock<Meter>>,
    /// Shows other hosts of the store that this process lives.
    _enlisted: Option<Arc<Enlisted>>,
    /// Whether the host stops: what is ended from now on goes on later.
    stops: Arc<AtomicBool>,
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
    pub observer: Arc<dyn CallObserver>,
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
        let state = store.as_ref().and_then(|store| store.path().parent());
        let enlisted = state.and_then(|state| {
            let failed = |error: &std::io::Error| tracing::warn!(%error, "not shown as alive");
            enlist(state).inspect_err(failed).ok()
        });
        let (under_way, meter) = (ActiveIds::default(), Arc::default());
        let stops = Arc::default();
        Self { sandbox, bridge, store, under_way, meter, _enlisted: enlisted, stops }
    }

    /// Notes from now on what is found out by measuring; the first to ask for that gets it.
    pub(crate) fn measure_with(&self, meter: Meter) {
        let _ = self.meter.set(meter);
    }

    /// Where measurements go, if anywhere.
    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.meter.get()
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

    /// The host is going to stop: durable runs that are aborted or dropped from now on are not given
    /// up, but go on with the next host.
    pub fn prepare_to_stop(&self) {
        self.stops.store(true, Ordering::SeqCst);
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::SeqCst)
    }

    /// Whether a durable run is under way in this process.
    pub(crate) fn is_under_way(&self, id: &str) -> bool {
        self.under_way.has(id)
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
        let (budget, ttl) = (execution.max_output_tokens, execution.cache);
        self.post(&id, "code_execution_started", &execution.request.language).await;
        let end = self.expect_end(&id);
        if let Some(cached) = self.cached(&execution, key.as_ref()).await {
            execution.observer.run_begins(&id);
            let tools = execution.report.unwrap_or_default();
            return self.finish(end, RunResult { id, tools, ..cached }, budget).await;
        }
        let used = Arc::new(Used::hearing_for(execution.observer.clone()));
        execution.observer = used.clone();
        let is_durable = self.is_durable(&execution).await;
        let result = match (is_durable, &self.store) {
            (true, Some(store)) => self.begin_durable(id, execution, store, abort).await,
            _ => {
                execution.observer.run_begins(&id);
                self.run_plain(Where::Fresh(&self.sandbox), id, execution, abort).await
            }
        };
        self.keep(key, ttl, &used, &result).await;
        self.finish(end, result, budget).await
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
        let end = self.expect_end(&id);
        let result = self.run_plain(Where::In(session), id, execution, abort).await;
        self.finish(end, result, budget).await
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

    /// What every result passes on its way out, be it of a run that has just ended, of one that was
    /// resumed, or from the cache.
    async fn finish(
        &self,
        end: ExpectedEnd,
        mut result: RunResult,
        budget: Option<u32>,
    ) -> RunResult {
        if let Some(tokens) = budget {
            budget::fit(&mut result, tokens, self.store.as_ref()).await;
        }
        let event = match result.status {
            Status::Completed => "code_execution_completed",
            Status::Failed | Status::Aborted => FAILED,
            Status::Interrupted | Status::ApprovalRequired | Status::InDoubt => PAUSED,
        };
        if event == PAUSED {
            self.post(&result.id, event, &self.pause_of(&result).await).await;
        } else {
            self.post(&result.id, event, &result.metrics).await;
        }
        end.came();
        result
    }

    /// What a paused run waits for, for those who follow its events.
    async fn pause_of<'a>(&self, result: &'a RunResult) -> PauseEvent<'a> {
        let pending = match &self.store {
            Some(store) => store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let of_run = pending.into_iter().filter(|approval| approval.asked.run_id == result.id);
        PauseEvent {
            metrics: &result.metrics,
            status: result.status,
            tool: result.error.as_ref().and_then(|error| error.tool_name.as_deref()),
            approvals: of_run.map(|approval| approval.asked.id).collect(),
        }
    }

    fn expect_end(&self, id: &str) -> ExpectedEnd {
        ExpectedEnd { run: Some((self.clone(), id.to_owned())) }
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

/// Tells that a run has ended whose caller dropped it: whatever began ends in the events, too.
struct ExpectedEnd {
    run: Option<(Executor, String)>,
}

impl ExpectedEnd {
    fn came(mut self) {
        self.run = None;
    }
}

impl Drop for ExpectedEnd {
    fn drop(&mut self) {
        let (Some((executor, id)), Ok(runtime)) =
            (self.run.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(async move {
            executor.post(&id, FAILED, &serde_json::json!({ "status": "aborted" })).await;
        });
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
