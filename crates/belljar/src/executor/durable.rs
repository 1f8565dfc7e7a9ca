//! Runs that survive their host (D8): begun with a journal, resumed from it.

use std::{
    collections::BTreeSet,
    fs,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use belljar_runtime::{
    Bridged, Durable, ErrorCode, ErrorKind, RunError, RunResult, Status, ToolLink, unrun,
};
use belljar_store::{Lease, NewRun, RunRecord, Store, StoreError};
use belljar_tools::{Observer, RunBridge, RunContext, crash_point};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::value::RawValue;
use thiserror::Error;

use super::{Execution, Executor, budget, link, now_ms, stored::StoredRequest};

/// The status of a run that some process is at.
const RUNNING: &str = "running";

/// What became of a run that was resumed.
#[derive(Debug)]
pub enum Resumed {
    /// It went on from where it was.
    Ran(Box<RunResult>),
    /// It had ended before; this is its result.
    Ended(Box<RawValue>),
}

/// Why a run cannot be resumed.
#[derive(Debug, Error)]
pub enum ResumeError {
    /// There is nothing to resume from.
    #[error("this project has no runs")]
    NoStore,
    /// There is no such run.
    #[error("there is no run {0}")]
    Unknown(String),
    /// It left no journal.
    #[error("run {0} is not durable, so nothing is known of what it did")]
    NotDurable(String),
    /// Somebody is at it.
    #[error("run {id} is still running, in process {process}")]
    StillRunning {
        /// The run.
        id: String,
        /// Whose it is.
        process: String,
    },
    /// What is kept of it cannot be read.
    #[error("what is kept of run {id} cannot be read: {source}")]
    Unreadable {
        /// The run.
        id: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Executor {
    /// Runs code with a journal.
    pub(super) async fn begin_durable(
        &self,
        id: String,
        execution: Execution,
        store: &Store,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let Execution { request, tools, max_output_tokens, caller, report, .. } = &execution;
        let mut stored = StoredRequest::of(request, tools, *max_output_tokens);
        stored.report.clone_from(report);
        let started_ms = now_ms();
        let seed = seed();
        let begun = async {
            let run = NewRun {
                id: id.clone(),
                caller: caller.clone(),
                language: format!("{:?}", request.language).to_lowercase(),
                code: request.code.clone(),
                request_json: serde_json::to_string(&stored).map_err(|error| error.to_string())?,
                durable: true,
                seed: seed.clone(),
                owner: this_process(),
                started_ms,
            };
            store.begin_run(run).await.map_err(|error| error.to_string())
        };
        let lease = match begun.await {
            Ok(lease) => lease,
            Err(error) => return not_kept(id, &error),
        };
        let durable = Durable { seed, now_ms: started_ms as f64 };
        self.run_durable(execution, store, lease, durable, abort).await
    }

    /// Starts a run again that was begun with a journal, and lets it go on from where it was.
    pub async fn resume(
        &self,
        id: &str,
        observer: Arc<dyn Observer>,
        abort: impl Future<Output = ()>,
    ) -> Result<Resumed, ResumeError> {
        let store = self.store.as_ref().ok_or(ResumeError::NoStore)?;
        let record = store.run(id).await?.ok_or_else(|| ResumeError::Unknown(id.to_owned()))?;
        let unreadable = |source| ResumeError::Unreadable { id: id.to_owned(), source };
        if let Some(result) = record.result_json {
            return RawValue::from_string(result).map(Resumed::Ended).map_err(unreadable);
        }
        if !record.summary.durable {
            return Err(ResumeError::NotDurable(id.to_owned()));
        }
        let still_running = |owner: &str| {
            let process = owner.split(':').next().unwrap_or_default().to_owned();
            ResumeError::StillRunning { id: id.to_owned(), process }
        };
        let owner = &record.summary.owner;
        let is_running = record.summary.status == RUNNING && is_owner_alive(owner);
        if is_running || self.under_way.has(id) {
            return Err(still_running(owner));
        }
        let RunRecord { summary, code, request_json, .. } = record;
        let stored: StoredRequest = serde_json::from_str(&request_json).map_err(unreadable)?;
        let tools = stored.tools.clone();
        let max_output_tokens = stored.max_output_tokens;
        let report = Some(stored.report.clone().unwrap_or_default());
        let execution = Execution {
            tools,
            report,
            max_output_tokens,
            observer,
            ..Execution::new(stored.into_request(code), summary.caller)
        };
        let seen = Lease { run_id: id.to_owned(), fence: summary.fence };
        let lease = match store.claim_run(seen, &this_process(), now_ms()).await {
            Ok(lease) => lease,
            // Somebody else was faster.
            Err(StoreError::Fenced { .. }) => {
                let faster = store.run(id).await?.map(|record| record.summary.owner);
                return Err(still_running(&faster.unwrap_or_default()));
            }
            Err(error) => return Err(error.into()),
        };
        crash_point("claimed");
        let durable = Durable { seed: summary.seed, now_ms: summary.started_ms as f64 };
        self.post(id, "code_execution_resumed", &lease.fence).await;
        let result = self.run_durable(execution, store, lease, durable, abort).await;
        Ok(Resumed::Ran(Box::new(self.close(result, max_output_tokens).await)))
    }

    async fn run_durable(
        &self,
        execution: Execution,
        store: &Store,
        lease: Lease,
        durable: Durable,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let Execution {
            request, tools, caller, observer, listener, max_output_tokens, report, ..
        } = execution;
        let id = lease.run_id.clone();
        let _under_way = self.under_way.enter(&id);
        let context = RunContext {
            run_id: id.clone(),
            caller,
            grants: tools,
            tool_timeout: request.limits.tool_timeout,
            code: request.code.clone(),
            observer,
        };
        let Some(bridge) = &self.bridge else {
            return not_kept(id, "there is no bridge to keep a journal of");
        };
        let began_ms = durable.now_ms;
        let (tools, far) = ToolLink::pair(Some(durable));
        let link::Far { asks, sink } = link::Far::of(far);
        let journal = (store.clone(), lease.clone());
        let calls = RunBridge::durable(bridge, context, journal, began_ms, sink).await;
        let calls = match calls {
            Ok(calls) => calls,
            Err(error) => return not_kept(id, &error.to_string()),
        };
        let given_up = GivenUp { store: store.clone(), lease: Some(lease.clone()) };
        let bridged = Bridged { id, tools: Some(tools), listener };
        let run = self.sandbox.run_bridged(request, Some(bridged), abort);
        let (mut result, finished) = tokio::join!(run, link::serve(calls, asks));
        given_up.not();
        result.tools = report.unwrap_or_default();
        if let (true, Err(diverged)) = (ended_by_itself(&result), finished) {
            let error = Some(link::run_error(diverged));
            result =
                RunResult { status: Status::Failed, success: false, exit_code: 1, error, ..result };
        }
        crash_point("finished");
        self.settle(store, &lease, result, max_output_tokens).await
    }

    /// Writes down how a run ended; one that can go on later is only set aside.
    async fn settle(
        &self,
        store: &Store,
        lease: &Lease,
        result: RunResult,
        max_output_tokens: Option<u32>,
    ) -> RunResult {
        let written = match result.status {
            Status::Completed | Status::Failed => {
                // Whoever asks for it later gets what whoever waits for it gets.
                let mut kept = result.clone();
                if let Some(tokens) = max_output_tokens {
                    budget::fit(&mut kept, tokens, Some(store)).await;
                }
                let json = serde_json::to_string(&kept).unwrap_or_default();
                let status = if result.success { "completed" } else { "failed" };
                store.finish_run(lease, status, json, now_ms()).await
            }
            Status::Aborted => store.set_run_status(lease, "aborted", now_ms()).await,
            Status::ApprovalRequired => {
                store.set_run_status(lease, "approval_required", now_ms()).await
            }
            Status::InDoubt => store.set_run_status(lease, "in_doubt", now_ms()).await,
        };
        match written {
            Ok(()) => result,
            Err(error) => {
                // Its calls are in the journal; only its end is not, and a resume finds that out.
                tracing::error!(error = &error as &dyn std::error::Error, "a result was not kept");
                result
            }
        }
    }
}

/// Whether it was the code that ended the run, and no limit, and nothing that broke: only then
/// does it matter that it did less than before.
fn ended_by_itself(result: &RunResult) -> bool {
    let is_code = |error: &RunError| {
        !matches!(
            error.kind,
            ErrorKind::TimeoutError
                | ErrorKind::MemoryError
                | ErrorKind::LimitError
                | ErrorKind::SandboxError
        )
    };
    match result.status {
        Status::Completed => true,
        Status::Failed => result.error.as_ref().is_some_and(is_code),
        Status::Aborted | Status::ApprovalRequired | Status::InDoubt => false,
    }
}

/// The durable runs this executor and its clones are at.
#[derive(Debug, Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<BTreeSet<String>>>);

impl UnderWay {
    fn has(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// One more, until the guard is dropped.
    fn enter(&self, id: &str) -> Entered {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        Entered { all: self.clone(), id: id.to_owned() }
    }
}

struct Entered {
    all: UnderWay,
    id: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// A run whose caller loses interest half way is set aside, so that it can be resumed.
struct GivenUp {
    store: Store,
    lease: Option<Lease>,
}

impl GivenUp {
    fn not(mut self) {
        self.lease = None;
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        let store = self.store.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = store.set_run_status(&lease, "aborted", now_ms()).await;
            });
        }
    }
}

fn not_kept(id: String, why: &str) -> RunResult {
    let message = format!("the run could not be made durable, so it was not started: {why}");
    let error = RunError::new(ErrorCode::SandboxFailed, message);
    RunResult { id, ..unrun(Status::Failed, error) }
}

fn seed() -> String {
    let mut bytes = [0; 32];
    // Without randomness the seed is merely not secret; it is kept in the store anyway.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// This process, told apart from any later one with its number.
pub(crate) fn this_process() -> String {
    let id = std::process::id();
    format!("{id}:{}", started_at(id).unwrap_or_default())
}

/// Whether a run with this owner, as the store names it, is being run by another process.
pub fn is_owner_alive(owner: &str) -> bool {
    let Some((id, started)) = owner.split_once(':') else { return false };
    let Ok(id) = id.parse() else { return false };
    id != std::process::id() && started_at(id).is_some_and(|now| now == started)
}

/// Whether a run with this owner is this process's own.
pub(crate) fn is_owner_this_process(owner: &str) -> bool {
    owner == this_process()
}

/// When a process started, in the kernel's ticks.
fn started_at(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // One that was killed is there until its parent asks for its end, and does nothing any more.
    let is_dead = fields.next().is_none_or(|state| state == "Z" || state == "X");
    if is_dead { None } else { fields.nth(18).map(str::to_owned) }
}
