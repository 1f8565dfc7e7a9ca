//! Runs with everything a project gives them: tools, approvals, a journal, a budget, a cache.
//!
//! The sandbox knows nothing of tools and the bridge nothing of cells; here they meet. Every way to
//! run code with tools, from the command line, over MCP or HTTP, goes through [`Executor`].

mod budget;
mod cache;
mod durable;
mod finish;
mod intent;
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

use belljar_contract::{ErrorCode, RunError, RunRequest, RunResult, RunStatus, ToolReport};
use belljar_runtime::{BridgeLink, GuestAsk, Listener, RunOptions, ToolFault, ToolLink, run_id};
use belljar_server::Meter;
use belljar_store::Store;
use belljar_tools::{Bridge, NoObserver, Observer, RunBridge, RunContext, ToolGrants};
use tokio::sync::mpsc;

pub(crate) use crate::owner::{is_owner_alive, is_owner_this_process, this_process};
use crate::{
    Sandbox, Session,
    active::ActiveIds,
    owner::{Enlisted, enlist},
};
use cache::{CacheKey, CacheSlot, UsedTools};
pub(crate) use durable::EndedRun;
pub use durable::{ResumeError, Resumed};
use finish::WayOut;
pub(crate) use one_call::{OneCall, OneCallEnd};
use ownership::RUNNING;
pub use ownership::run_status;

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
        let mut way_out = self.announce(&id, &mut execution).await;
        let key = CacheKey::of(&execution, self.bridge.as_ref());
        if let Some(cached) = self.cached(&execution, key.as_ref()).await {
            execution.observer.run_begins(&id);
            return self.finish(way_out, None, RunResult { id, ..cached }).await;
        }
        let used = Arc::new(UsedTools::hearing_for(execution.observer.clone()));
        execution.observer = used.clone();
        way_out.cache =
            key.zip(execution.cache).map(|(key, ttl)| CacheSlot { key, ttl, used: used.clone() });
        let is_durable = self.is_durable(&execution).await;
        let (result, journal) = match (is_durable, &self.store) {
            (true, Some(store)) => self.begin_durable(id, execution, store, abort).await,
            _ => {
                execution.observer.run_begins(&id);
                let result = self.run_plain(Place::Fresh(&self.sandbox), id, execution, abort);
                (result.await, None)
            }
        };
        self.finish(way_out, journal, result).await
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
            return RunResult::not_run(id, RunStatus::Failed, error);
        }
        let way_out = self.announce(&id, &mut execution).await;
        let result = self.run_plain(Place::In(session), id, execution, abort).await;
        self.finish(way_out, None, result).await
    }

    /// Decides which tools a run gets, and posts that it begins.
    async fn announce(&self, id: &str, execution: &mut Execution) -> WayOut {
        self.inject(execution).await;
        self.post(id, "code_execution_started", &execution.request.language).await;
        WayOut {
            announced: self.announced(id),
            tools: execution.report.clone().unwrap_or_default(),
            max_output_tokens: execution.max_output_tokens,
            cache: None,
        }
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
        place: Place<'_>,
        id: String,
        execution: Execution,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let Execution { request, tools, caller, observer, listener, .. } = execution;
        let Some(bridge) = &self.bridge else {
            let alone = RunOptions { id: Some(id), tools: None, listener };
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
        let (tools, BridgeLink { asks, inputs }) = ToolLink::pair(None);
        let calls = RunBridge::plain(bridge, context, move |input| inputs.send(input));
        let options = RunOptions { id: Some(id), tools: Some(tools), listener };
        let run = place.run(request, options, abort);
        let (result, _) = tokio::join!(run, serve(calls, asks));
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
enum Place<'a> {
    /// In a cell of its own.
    Fresh(&'a Sandbox),
    /// In that of a session.
    In(&'a Session),
}

impl Place<'_> {
    async fn run(
        self,
        request: RunRequest,
        options: RunOptions,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        match self {
            Self::Fresh(sandbox) => sandbox.run_with(request, options, abort).await,
            Self::In(session) => session.run_with(request, options, abort).await,
        }
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

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
