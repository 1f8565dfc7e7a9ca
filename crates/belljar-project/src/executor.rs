//! Runs code with everything a project offers: tools, approvals, a journal, a budget, a cache.
//!
//! The sandbox knows nothing about tools, and the bridge nothing about cells; this module joins
//! them. Every surface that runs code with tools (command line, MCP, HTTP) goes through
//! [`Executor`].

mod abort;
mod budget;
mod cache;
mod clock_note;
mod connections;
mod durable;
mod finish;
mod intent;
mod kept_artifacts;
mod language;
mod network;
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

use abort::Abort;
use belljar_contract::{
    ErrorCode, Language, RunError, RunId, RunRequest, RunResult, RunStatus, SessionId,
};
use belljar_runtime::{BridgeLink, GuestAsk, Listener, RunOptions, ToolFault, ToolLink, run_id};
use belljar_server::BackgroundMeter;
use belljar_store::Store;
use belljar_tools::{
    Bridge, CallObserver, Decisions, NoObserver, PreparedRun, RunBridge, RunContext, ToolGrants,
};
use clock_note::ClockNote;
use network::RunInputs;
use tokio::sync::mpsc;

use crate::{
    Sandbox, Session,
    active::ActiveIds,
    network::NetworkSettings,
    owner::{LivenessLock, announce_process},
};

pub(crate) use crate::owner::{is_owner_alive, is_owner_this_process, this_process};
pub(crate) use durable::EndRunOutcome;
pub use durable::{ResumeError, ResumeOutcome};
pub(crate) use one_call::{OneCall, OneCallEnd};
pub use ownership::run_status;

/// Runs code with tools. Cheap to clone; all clones share sandbox, servers and store.
///
/// ```no_run
/// # async fn example(sandbox: belljar_project::Sandbox) {
/// use belljar_project::{Execution, Executor, Language, RunRequest};
///
/// // Without a bridge and a store: no tools, nothing is kept.
/// let executor = Executor::new(sandbox, None, None);
/// let request = RunRequest::new(Language::Python, "1 + 1");
/// let result = executor.execute(Execution::new(request, "example"), std::future::pending()).await;
/// assert!(result.success);
/// executor.shutdown().await;
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Executor {
    sandbox: Sandbox,
    bridge: Option<Bridge>,
    store: Option<Store>,
    /// `[net]` of the files.
    network: Arc<NetworkSettings>,
    /// Durable runs that are active in this process. Clones share the set.
    active_runs: ActiveIds,
    /// Where metrics go, once a server has registered its meter.
    meter: Arc<OnceLock<BackgroundMeter>>,
    /// Shows other hosts of the same store that this process lives.
    _liveness: Option<Arc<LivenessLock>>,
    /// Set when the host is stopping: runs aborted after that stay resumable.
    is_stopping: Arc<AtomicBool>,
    /// Why this process aborts its runs, once it does.
    abort_reason: Arc<OnceLock<&'static str>>,
}

/// A request with the tools, the journal and the observers that its project adds.
///
/// ```
/// use belljar_project::{Execution, RunDurability, RunRequest};
///
/// let request = RunRequest::typescript("return await mcp.github.list_issues({})");
/// let mut execution = Execution::new(request, "nightly report");
/// execution.durability = RunDurability::Always;
/// execution.intent = Some("list issues".to_owned());
/// assert_eq!(execution.caller, "nightly report");
/// ```
#[derive(Debug)]
pub struct Execution {
    /// The code with its limits and grants.
    pub request: RunRequest,
    /// Whether the caller did not state the language: then code that is not TypeScript but Python runs as
    /// Python, and a first line with `#!` decides.
    pub language_left_out: bool,
    /// The hosts that the operator's flags allow beside the rules of `[net]`; `None` for those of the
    /// request, if its author is the operator.
    pub hosts: Option<Vec<String>>,
    /// The tools that the code may use.
    pub tools: ToolGrants,
    /// The purpose of the code, in words. With it the code gets the few tools that fit, the tools
    /// it names, and no others.
    pub intent: Option<String>,
    /// Whether the run can be resumed after its host has died.
    pub durability: RunDurability,
    /// Recorded in audit rows and approvals.
    pub caller: String,
    /// A larger value, in tokens, is stored and replaced by a summary.
    pub max_output_tokens: Option<u32>,
    /// How long a cached answer may be reused; `None` never.
    pub cache: Option<Duration>,
    /// Notified of approvals and tool calls.
    pub observer: Arc<dyn CallObserver>,
    /// Receives the output while the code runs.
    pub listener: Option<Arc<dyn Listener>>,
}

/// Whether a run keeps a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunDurability {
    /// If the run might have to wait for a person.
    IfAsked,
    /// Always, so that it survives its host. Such a run has no sockets, which cannot be replayed: it reaches
    /// hosts by `fetch`.
    Always,
    /// Always, and it may have sockets: from the first connection on it does not survive its host.
    UntilConnected,
    /// Never: the run waits for a person only as long as its host lives.
    Never,
}

impl Execution {
    /// An execution with the tools that policy allows and no other options.
    pub fn new(request: RunRequest, caller: impl Into<String>) -> Self {
        Self {
            request,
            language_left_out: false,
            hosts: None,
            tools: ToolGrants::default(),
            intent: None,
            durability: RunDurability::IfAsked,
            caller: caller.into(),
            max_output_tokens: None,
            cache: None,
            observer: Arc::new(NoObserver),
            listener: None,
        }
    }

    /// The request for the host, the context of its tool calls, and the listener for its output.
    fn into_parts(
        self,
        id: &RunId,
        session: Option<SessionId>,
    ) -> (RunRequest, RunContext, Option<Arc<dyn Listener>>) {
        let Self { request, tools, caller, observer, listener, .. } = self;
        let context = RunContext {
            run_id: id.clone(),
            session,
            caller,
            grants: tools,
            tool_timeout: request.limits.tool_timeout,
            code: request.code.clone(),
            observer,
        };
        (request, context, listener)
    }
}

impl Executor {
    /// An executor for a project's servers and store. Without them, runs have no tools and leave no
    /// trace.
    pub fn new(sandbox: Sandbox, bridge: Option<Bridge>, store: Option<Store>) -> Self {
        let state = store.as_ref().and_then(|store| store.path().parent());
        let liveness = state.and_then(|state| {
            let failed = |error: &std::io::Error| {
                tracing::warn!(%error, "cannot announce this process to other hosts")
            };
            announce_process(state).inspect_err(failed).ok()
        });
        let (active_runs, meter) = (ActiveIds::default(), Arc::default());
        let (is_stopping, abort_reason) = (Arc::default(), Arc::default());
        Self {
            sandbox,
            bridge,
            store,
            network: Arc::default(),
            active_runs,
            meter,
            _liveness: liveness,
            is_stopping,
            abort_reason,
        }
    }

    /// The same, with the rules of `[net]` in the files.
    #[must_use]
    pub(crate) fn with_network(self, network: NetworkSettings) -> Self {
        Self { network: Arc::new(network), ..self }
    }

    /// Registers the meter for metrics. Only the first call has an effect.
    pub(crate) fn measure_with(&self, meter: BackgroundMeter) {
        let _ = self.meter.set(meter);
    }

    /// The meter, if one is registered.
    pub(crate) fn meter(&self) -> Option<&BackgroundMeter> {
        self.meter.get()
    }

    /// The sandbox of its runs.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The bridge to the project's servers.
    pub fn bridge(&self) -> Option<&Bridge> {
        self.bridge.as_ref()
    }

    /// Records decisions about calls; `None` without a store.
    pub fn decisions(&self) -> Option<Decisions> {
        match &self.bridge {
            Some(bridge) => bridge.decisions(),
            None => Some(Decisions::new(self.store.clone()?, None)),
        }
    }

    /// The project's store; `None` if the project keeps no state.
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Call this before the host stops: durable runs that are aborted or dropped afterwards stay
    /// resumable, and the next host resumes them.
    pub fn prepare_to_stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Call this before this process aborts its runs, for example because of a signal: a run that ends
    /// without a value afterwards was aborted for this reason, whatever else went wrong. Only the first
    /// reason counts.
    pub fn abort_because(&self, reason: &'static str) {
        let _ = self.abort_reason.set(reason);
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Whether a durable run is active in this process.
    pub(crate) fn is_active(&self, id: &RunId) -> bool {
        self.active_runs.has(id)
    }

    /// Runs the code to its end, or until `abort` completes. Every failure is part of the result.
    pub async fn execute(
        &self,
        execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        self.execute_as(run_id(), execution, abort).await
    }

    /// Like [`execute`](Self::execute), with a run id chosen by the caller.
    pub async fn execute_as(
        &self,
        id: RunId,
        mut execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let language = self.settle_language(&mut execution).await;
        self.sandbox.choose_engine(&mut execution.request);
        let mut abort = Abort::new(abort);
        let mut run = self.open(&id, execution.request.language).await;
        run.language = language;
        run.max_output_tokens = execution.max_output_tokens;
        let prepared = async {
            if self.bridge.is_some() {
                run.tools = self.inject(&mut execution).await;
            }
            if let Some(ttl) = execution.cache
                && let Some(cached) = self.cached(&mut execution, ttl, &mut run).await
            {
                execution.observer.run_begins(&id);
                return Err(RunResult { id: id.clone(), ..cached });
            }
            Ok(self.needs_journal(&execution).await)
        };
        let result = match abort.unless(prepared).await {
            None => abort::not_started(id),
            Some(Err(cached)) => cached,
            Some(Ok(keeps_journal)) => {
                if keeps_journal {
                    run.clock = ClockNote::of(&execution);
                }
                let prepared = PreparedRun { keeps_journal, tools: &run.tools.injected };
                execution.observer.run_prepared(prepared);
                match &self.store {
                    Some(store) if keeps_journal => {
                        self.begin_durable(execution, store, &mut run, &mut abort).await
                    }
                    _ => {
                        execution.observer.run_begins(&id);
                        self.run_plain(None, id, execution, &mut abort).await
                    }
                }
            }
        };
        abort.look_again(&result).await;
        self.finish(run, result).await
    }

    /// Runs the code in a session, with a run id chosen by the caller. Tools, budget and audit work
    /// as in any run. There is no journal and no cache, because the answer depends on earlier runs
    /// of the session.
    pub async fn execute_in(
        &self,
        session: &Session,
        id: RunId,
        mut execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        if execution.durability == RunDurability::Always {
            let message = "a run in a session cannot be durable";
            let error = RunError::new(ErrorCode::RequestInvalid, message)
                .with_hint("omit `durable`, or run without a session");
            return self.refuse(id, execution.request.language, error).await;
        }
        let mut abort = Abort::new(abort);
        let mut run = self.open(&id, execution.request.language).await;
        run.max_output_tokens = execution.max_output_tokens;
        if self.bridge.is_some() {
            match abort.unless(self.inject(&mut execution)).await {
                Some(tools) => run.tools = tools,
                None => return self.finish(run, abort::not_started(id)).await,
            }
        }
        let result = self.run_plain(Some(session), id, execution, &mut abort).await;
        abort.look_again(&result).await;
        self.finish(run, result).await
    }

    /// The result of a request that is refused before it runs.
    pub(crate) async fn refuse(&self, id: RunId, language: Language, error: RunError) -> RunResult {
        let run = self.open(&id, language).await;
        self.finish(run, RunResult::not_run(id, RunStatus::Failed, error)).await
    }

    /// Decides whether a run keeps a journal.
    async fn needs_journal(&self, execution: &Execution) -> bool {
        let may_wait = execution.observer.may_wait();
        match (execution.durability, &self.bridge) {
            (RunDurability::Always | RunDurability::UntilConnected, _) => true,
            (RunDurability::Never, _) | (RunDurability::IfAsked, None) => false,
            (RunDurability::IfAsked, Some(bridge)) => {
                may_wait && bridge.may_ask(&execution.tools).await
            }
        }
    }

    /// Runs code without a journal: in a session, or in a cell of its own.
    async fn run_plain(
        &self,
        session: Option<&Session>,
        id: RunId,
        execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let session_id = session.map(|session| session.id().clone());
        let plan = match session {
            Some(session) if session.has_hosts() => {
                Some(self.network_plan_in(session, &execution, &id))
            }
            None if !execution.request.grants.net.is_empty() => {
                match self.network_plan(&execution, &id, None) {
                    Ok(plan) => Some(plan),
                    Err(error) => return RunResult::not_run(id, RunStatus::Failed, error),
                }
            }
            Some(_) | None => None,
        };
        let (request, context, listener) = execution.into_parts(&id, session_id);
        let (mut link, mut calls, mut sink) = (None, None, None);
        if let Some(bridge) = &self.bridge {
            let (tools, BridgeLink { asks, inputs, .. }) = ToolLink::pair(None);
            let inputs = sink.insert(RunInputs::new(inputs)).clone();
            let run = RunBridge::plain(bridge, context, move |input| inputs.send(input));
            (link, calls) = (Some(tools), Some(serve(run, asks)));
        }
        let network = plan.map(|plan| plan.options(self.bridge.as_ref(), sink)).unwrap_or_default();
        let options = RunOptions { id: Some(id), tools: link, listener, network };
        let run = async {
            match session {
                None => self.sandbox.host.run_with(request, options, abort).await,
                Some(session) => session.run_with(request, options, abort).await,
            }
        };
        match calls {
            Some(calls) => tokio::join!(run, calls).0,
            None => run.await,
        }
    }

    /// Posts an event without waiting for the disk (F4).
    async fn post(&self, id: &RunId, name: &str, data: &(impl serde::Serialize + Sync)) {
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

/// Passes on what the code asks for until its run ends. The error says that a replay did not repeat
/// everything in its journal.
async fn serve(
    mut calls: RunBridge,
    mut asks: mpsc::UnboundedReceiver<GuestAsk>,
) -> Result<(), ToolFault> {
    while let Some(ask) = asks.recv().await {
        calls.ask(ask);
    }
    calls.finish()
}

/// The current time in milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
