//! Runs that survive their host (D8): begun with a journal, resumed from it.

use std::{future::Future, sync::Arc, time::Duration};

use belljar_contract::{ErrorCode, ErrorKind, RunError, RunResult, RunStatus, hex};
use belljar_runtime::{BridgeLink, Durable, RunOptions, ToolLink};
use belljar_store::{ClaimReason, Lease, NewRun, RunRecord, RunSummary, Store, StoreError};
use belljar_tools::{Observer, RunBridge, RunContext, crash_point};
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;

use super::{
    Execution, Executor, finish::WayOut, now_ms, ownership::RUNNING, serve, stored::StoredRequest,
    this_process,
};
use crate::{active::ActiveGuard, is_owner_alive};

/// How long to wait until something is written again that could not be.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What became of a run that was resumed.
#[derive(Debug)]
pub enum Resumed {
    /// It went on from where it was.
    Ran(Box<RunResult>),
    /// It had ended before; this is its result.
    Ended(Box<RunResult>),
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
    ) -> (RunResult, Option<JournalEnd>) {
        let Execution { request, tools, max_output_tokens, caller, report, .. } = &execution;
        let mut stored = StoredRequest::of(request, tools, *max_output_tokens);
        stored.report.clone_from(report);
        let started_ms = now_ms();
        let seed = seed();
        // Before it is in the store: nobody is to find it there and think that nobody has it.
        let Some(entered) = self.under_way.enter(&id) else {
            return (not_kept(id, "a run of this name is under way"), None);
        };
        let begun = async {
            let run = NewRun {
                id: id.clone(),
                caller: caller.clone(),
                language: request.language.as_str().to_owned(),
                code: request.code.clone(),
                request_json: serde_json::to_string(&stored).map_err(|error| error.to_string())?,
                durable: true,
                seed: seed.clone(),
                owner: this_process(),
                started_ms,
            };
            store.begin_run(run).await.map_err(|error| error.to_string())
        };
        let begun = begun.await;
        execution.observer.run_begins(&id);
        let lease = match begun {
            Ok(lease) => lease,
            Err(error) => return (not_kept(id, &error), None),
        };
        let durable = Durable { seed, now_ms: started_ms as f64 };
        self.run_durable(execution, store, (lease, entered), durable, abort).await
    }

    /// Starts a run again that was begun with a journal, and lets it go on from where it was.
    pub async fn resume(
        &self,
        id: &str,
        observer: Arc<dyn Observer>,
        abort: impl Future<Output = ()>,
    ) -> Result<Resumed, ResumeError> {
        self.go_on(id, ClaimReason::Asked, observer, abort).await
    }

    /// The same for a run that nobody asked for: a host found that nobody has it.
    pub(crate) async fn take_up(
        &self,
        id: &str,
        observer: Arc<dyn Observer>,
        abort: impl Future<Output = ()>,
    ) -> Result<Resumed, ResumeError> {
        self.go_on(id, ClaimReason::Found, observer, abort).await
    }

    async fn go_on(
        &self,
        id: &str,
        why: ClaimReason,
        observer: Arc<dyn Observer>,
        abort: impl Future<Output = ()>,
    ) -> Result<Resumed, ResumeError> {
        let store = self.store.as_ref().ok_or(ResumeError::NoStore)?;
        let record = store.run(id).await?.ok_or_else(|| ResumeError::Unknown(id.to_owned()))?;
        let unreadable = |source| ResumeError::Unreadable { id: id.to_owned(), source };
        if let Some(result) = record.result_json {
            let result = serde_json::from_str(&result).map_err(unreadable)?;
            return Ok(Resumed::Ended(result));
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
        let entered = self.under_way.enter(id).filter(|_| !is_running);
        let entered = entered.ok_or_else(|| still_running(owner))?;
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
        let lease = match store.claim_run(seen, &this_process(), why, now_ms()).await {
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
        let way_out = WayOut {
            announced: self.announced(id),
            tools: execution.report.clone().unwrap_or_default(),
            max_output_tokens,
            cache: None,
        };
        let (result, journal) =
            self.run_durable(execution, store, (lease, entered), durable, abort).await;
        Ok(Resumed::Ran(Box::new(self.finish(way_out, journal, result).await)))
    }

    async fn run_durable(
        &self,
        execution: Execution,
        store: &Store,
        (lease, entered): (Lease, ActiveGuard),
        durable: Durable,
        abort: impl Future<Output = ()>,
    ) -> (RunResult, Option<JournalEnd>) {
        let Execution { request, tools, caller, observer, listener, .. } = execution;
        let id = lease.run_id.clone();
        let context = RunContext {
            run_id: id.clone(),
            caller,
            grants: tools,
            tool_timeout: request.limits.tool_timeout,
            code: request.code.clone(),
            observer,
        };
        let Some(bridge) = &self.bridge else {
            return (not_kept(id, "there is no bridge to keep a journal of"), None);
        };
        let began_ms = durable.now_ms;
        let (tools, BridgeLink { asks, inputs }) = ToolLink::pair(Some(durable));
        let sink = move |input| inputs.send(input);
        let journal = (store.clone(), lease.clone());
        let calls = RunBridge::durable(bridge, context, journal, began_ms, sink).await;
        let calls = match calls {
            Ok(calls) => calls,
            Err(error) => return (not_kept(id, &error.to_string()), None),
        };
        let abandoned =
            AbandonedRun { executor: self.clone(), run: Some((lease.clone(), entered)) };
        let options = RunOptions { id: Some(id), tools: Some(tools), listener };
        let run = self.sandbox.run_with(request, options, abort);
        let (mut result, finished) = tokio::join!(run, serve(calls, asks));
        if let (true, Err(diverged)) = (ended_by_itself(&result), finished) {
            let error = Some(diverged.into());
            let status = RunStatus::Failed;
            result = RunResult { status, success: false, exit_code: 1, error, ..result };
        }
        crash_point("finished");
        (result, Some(JournalEnd { store: store.clone(), lease, abandoned }))
    }

    /// Ends a run that nobody has. It does not go on by itself any more; a person can resume it.
    pub(crate) async fn end_run(&self, run: &RunSummary) -> Result<EndedRun, StoreError> {
        let Some(store) = &self.store else { return Ok(EndedRun::Elsewhere) };
        let is_had = run.status == RUNNING && is_owner_alive(&run.owner);
        let entered = self.under_way.enter(&run.id).filter(|_| !is_had);
        let Some(_entered) = entered else { return Ok(EndedRun::Elsewhere) };
        let seen = Lease { run_id: run.id.clone(), fence: run.fence };
        match store.claim_run(seen, &this_process(), ClaimReason::Asked, now_ms()).await {
            Ok(lease) => {
                store.set_run_status(&lease, RunStatus::Aborted.as_str(), now_ms()).await?
            }
            Err(StoreError::Fenced { .. }) => return Ok(EndedRun::Elsewhere),
            Err(error) => return Err(error),
        }
        self.post(
            &run.id,
            super::finish::FAILED,
            &serde_json::json!({ "status": RunStatus::Aborted }),
        )
        .await;
        Ok(EndedRun::Aborted)
    }
}

/// What became of a run that was to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedRun {
    /// It has ended.
    Aborted,
    /// Somebody has it, here or elsewhere.
    Elsewhere,
}

/// What is left to do when a durable run has ended: its record has to say how.
pub(super) struct JournalEnd {
    store: Store,
    lease: Lease,
    abandoned: AbandonedRun,
}

impl JournalEnd {
    /// Writes how the run ended, with the result as its caller gets it; a run that can resume later is
    /// only set aside.
    pub(super) async fn settle(self, result: &RunResult) {
        let Self { store, lease, abandoned } = self;
        let json = || serde_json::to_string(result).unwrap_or_default();
        let is_over = matches!(result.status, RunStatus::Completed | RunStatus::Failed);
        let end = RunEnd { status: result.status, result: is_over.then(json) };
        // Under way until it is written: nobody is to find it and resume it.
        let _entered = abandoned.is_not();
        if let Err(error) = end.write(&store, &lease).await {
            // Its calls are in the journal; only its end is not.
            tracing::error!(error = &error as &dyn std::error::Error, "a run's end was not kept");
            end.write_later(&store, &lease, &error);
        }
    }
}

/// How a run stands when its host has let go of it.
#[derive(Debug, Clone)]
struct RunEnd {
    status: RunStatus,
    /// Its result as JSON, if it has ended.
    result: Option<String>,
}

impl RunEnd {
    async fn write(&self, store: &Store, lease: &Lease) -> Result<(), StoreError> {
        let status = self.status.as_str();
        match &self.result {
            Some(json) => store.finish_run(lease, status, json.clone(), now_ms()).await,
            None => store.set_run_status(lease, status, now_ms()).await,
        }
    }

    /// Tries again until it is written: as long as it is not, nobody else can know that the run has
    /// been let go of. A run that somebody claims meanwhile is theirs to write about.
    fn write_later(self, store: &Store, lease: &Lease, error: &StoreError) {
        if let StoreError::Fenced { .. } | StoreError::UnknownRun(_) = error {
            return;
        }
        let (store, lease) = (store.clone(), lease.clone());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(WRITE_AGAIN_AFTER).await;
                match self.write(&store, &lease).await {
                    Ok(()) | Err(StoreError::Fenced { .. } | StoreError::UnknownRun(_)) => return,
                    Err(_) => {}
                }
            }
        });
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
        RunStatus::Completed => true,
        RunStatus::Failed => result.error.as_ref().is_some_and(is_code),
        RunStatus::Running
        | RunStatus::Aborted
        | RunStatus::Interrupted
        | RunStatus::ApprovalRequired
        | RunStatus::InDoubt => false,
    }
}

/// A run whose caller loses interest half way is set aside, so that it can be resumed.
struct AbandonedRun {
    executor: Executor,
    run: Option<(Lease, ActiveGuard)>,
}

impl AbandonedRun {
    /// It was not abandoned; the guard says that it is still under way.
    fn is_not(mut self) -> Option<ActiveGuard> {
        self.run.take().map(|(_, entered)| entered)
    }
}

impl Drop for AbandonedRun {
    fn drop(&mut self) {
        let Some((lease, entered)) = self.run.take() else { return };
        let Some(store) = self.executor.store.clone() else { return };
        let status = match self.executor.stops() {
            true => RunStatus::Interrupted,
            false => RunStatus::Aborted,
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let written = RunEnd { status, result: None }.write(&store, &lease).await;
                // Under way until then: nobody is to find it and resume it.
                drop(entered);
                written
            });
        }
    }
}

fn not_kept(id: String, why: &str) -> RunResult {
    let message = format!("the run could not be made durable, so it was not started: {why}");
    let error = RunError::new(ErrorCode::SandboxFailed, message);
    RunResult::not_run(id, RunStatus::Failed, error)
}

fn seed() -> String {
    let mut bytes = [0; 32];
    // Without randomness the seed is merely not secret; it is kept in the store anyway.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    hex::encode(&bytes)
}
