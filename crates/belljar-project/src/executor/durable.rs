//! Durable runs (D8): started with a journal, resumed from it after the host has died.

use std::{future::Future, sync::Arc, time::Duration};

use belljar_contract::{ErrorCode, ErrorKind, RunError, RunResult, RunStatus, hex};
use belljar_runtime::{BridgeLink, Durable, RunOptions, ToolLink};
use belljar_store::{ClaimReason, Lease, NewRun, RunRecord, RunSummary, Store, StoreError};
use belljar_tools::{CallObserver, RunBridge, RunContext, crash_point};
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;

use super::{
    Execution, Executor, finish::RunCompletion, now_ms, serve, stored::StoredRequest, this_process,
};
use crate::{active::ActiveGuard, is_owner_alive};

/// Delay before a failed write to the store is retried.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The outcome of resuming a run.
#[derive(Debug)]
pub enum ResumeOutcome {
    /// The run continued from its journal.
    Ran(Box<RunResult>),
    /// The run had ended before; this is its stored result.
    Ended(Box<RunResult>),
}

/// Why a run cannot be resumed.
#[derive(Debug, Error)]
pub enum ResumeError {
    /// The project has no store.
    #[error("this project has no runs")]
    NoStore,
    /// No run has this id.
    #[error("there is no run {0}")]
    Unknown(String),
    /// The run kept no journal.
    #[error("run {0} is not durable, so it has no journal to resume from")]
    NotDurable(String),
    /// Another process runs it.
    #[error("run {id} is still running in process {process}")]
    StillRunning {
        /// The id of the run.
        id: String,
        /// Number of the process that runs it.
        process: String,
    },
    /// The stored request cannot be read.
    #[error("cannot read the stored request of run {id}: {source}")]
    Unreadable {
        /// The id of the run.
        id: String,
        /// The cause, as the parser reports it.
        source: serde_json::Error,
    },
    /// Reading or writing the store failed.
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
        // Before it is in the store, so that no host finds it there without an owner.
        let Some(active) = self.active_runs.enter(&id) else {
            return (not_durable(id, "a run of this name is under way"), None);
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
            Err(error) => return (not_durable(id, &error), None),
        };
        let durable = Durable { seed, now_ms: started_ms as f64 };
        self.run_durable(execution, store, (lease, active), durable, abort).await
    }

    /// Resumes a durable run from its journal.
    pub async fn resume(
        &self,
        id: &str,
        observer: Arc<dyn CallObserver>,
        abort: impl Future<Output = ()>,
    ) -> Result<ResumeOutcome, ResumeError> {
        self.resume_claiming(id, ClaimReason::Asked, observer, abort).await
    }

    /// Resumes an abandoned run that this host found by itself.
    pub(crate) async fn resume_found(
        &self,
        id: &str,
        observer: Arc<dyn CallObserver>,
        abort: impl Future<Output = ()>,
    ) -> Result<ResumeOutcome, ResumeError> {
        self.resume_claiming(id, ClaimReason::Found, observer, abort).await
    }

    async fn resume_claiming(
        &self,
        id: &str,
        why: ClaimReason,
        observer: Arc<dyn CallObserver>,
        abort: impl Future<Output = ()>,
    ) -> Result<ResumeOutcome, ResumeError> {
        let store = self.store.as_ref().ok_or(ResumeError::NoStore)?;
        let record = store.run(id).await?.ok_or_else(|| ResumeError::Unknown(id.to_owned()))?;
        let unreadable = |source| ResumeError::Unreadable { id: id.to_owned(), source };
        if let Some(result) = record.result_json {
            let result = serde_json::from_str(&result).map_err(unreadable)?;
            return Ok(ResumeOutcome::Ended(result));
        }
        if !record.summary.durable {
            return Err(ResumeError::NotDurable(id.to_owned()));
        }
        let still_running = |owner: &str| {
            let process = owner.split(':').next().unwrap_or_default().to_owned();
            ResumeError::StillRunning { id: id.to_owned(), process }
        };
        let owner = &record.summary.owner;
        let is_running = record.summary.status == RunStatus::Running && is_owner_alive(owner);
        let active = self.active_runs.enter(id).filter(|_| !is_running);
        let active = active.ok_or_else(|| still_running(owner))?;
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
            // Another process claimed it first.
            Err(StoreError::Fenced { .. }) => {
                let faster = store.run(id).await?.map(|record| record.summary.owner);
                return Err(still_running(&faster.unwrap_or_default()));
            }
            Err(error) => return Err(error.into()),
        };
        crash_point("claimed");
        let durable = Durable { seed: summary.seed, now_ms: summary.started_ms as f64 };
        self.post(id, "code_execution_resumed", &lease.fence).await;
        let completion = RunCompletion {
            announced: self.announced(id),
            tools: execution.report.clone().unwrap_or_default(),
            max_output_tokens,
            cache: None,
        };
        let (result, journal) =
            self.run_durable(execution, store, (lease, active), durable, abort).await;
        Ok(ResumeOutcome::Ran(Box::new(self.finish(completion, journal, result).await)))
    }

    async fn run_durable(
        &self,
        execution: Execution,
        store: &Store,
        (lease, active): (Lease, ActiveGuard),
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
            return (not_durable(id, "there is no bridge to keep a journal of"), None);
        };
        let began_ms = durable.now_ms;
        let (tools, BridgeLink { asks, inputs }) = ToolLink::pair(Some(durable));
        let sink = move |input| inputs.send(input);
        let journal = (store.clone(), lease.clone());
        let calls = RunBridge::durable(bridge, context, journal, began_ms, sink).await;
        let calls = match calls {
            Ok(calls) => calls,
            Err(error) => return (not_durable(id, &error.to_string()), None),
        };
        let abandoned = AbandonGuard { executor: self.clone(), run: Some((lease.clone(), active)) };
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

    /// Aborts a run without an owner. Hosts no longer resume it; a person can.
    pub(crate) async fn end_run(&self, run: &RunSummary) -> Result<EndRunOutcome, StoreError> {
        let Some(store) = &self.store else { return Ok(EndRunOutcome::Elsewhere) };
        let is_had = run.status == RunStatus::Running && is_owner_alive(&run.owner);
        let active = self.active_runs.enter(&run.id).filter(|_| !is_had);
        let Some(_active) = active else { return Ok(EndRunOutcome::Elsewhere) };
        let seen = Lease { run_id: run.id.clone(), fence: run.fence };
        match store.claim_run(seen, &this_process(), ClaimReason::Asked, now_ms()).await {
            Ok(lease) => store.set_run_status(&lease, RunStatus::Aborted, now_ms()).await?,
            Err(StoreError::Fenced { .. }) => return Ok(EndRunOutcome::Elsewhere),
            Err(error) => return Err(error),
        }
        self.post(
            &run.id,
            super::finish::FAILED,
            &serde_json::json!({ "status": RunStatus::Aborted }),
        )
        .await;
        Ok(EndRunOutcome::Aborted)
    }
}

/// The outcome of aborting a stored run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndRunOutcome {
    /// The run is aborted.
    Aborted,
    /// A live process has the run.
    Elsewhere,
}

/// Writes the end of a durable run into its record.
pub(super) struct JournalEnd {
    store: Store,
    lease: Lease,
    abandoned: AbandonGuard,
}

impl JournalEnd {
    /// Writes how the run ended, with the result as its caller gets it; a run that can resume later is
    /// only set aside.
    pub(super) async fn write_end(self, result: &RunResult) {
        let Self { store, lease, abandoned } = self;
        let json = || serde_json::to_string(result).unwrap_or_default();
        let is_over = matches!(result.status, RunStatus::Completed | RunStatus::Failed);
        let end = RunEnd { status: result.status, result: is_over.then(json) };
        // Active until its end is written, so that no host finds the run and resumes it.
        let _entered = abandoned.disarm();
        if let Err(error) = end.write(&store, &lease).await {
            // The journal has its calls; only its end is missing.
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot write the end of a run; retrying"
            );
            end.retry_write(&store, &lease, &error);
        }
    }
}

/// The status of a run when its host releases it.
#[derive(Debug, Clone)]
struct RunEnd {
    status: RunStatus,
    /// Its result as JSON, if it has ended.
    result: Option<String>,
}

impl RunEnd {
    async fn write(&self, store: &Store, lease: &Lease) -> Result<(), StoreError> {
        let status = self.status;
        match &self.result {
            Some(json) => store.finish_run(lease, status, json.clone(), now_ms()).await,
            None => store.set_run_status(lease, status, now_ms()).await,
        }
    }

    /// Retries until the end is written: until then, other hosts believe that the run is still
    /// active. If another process claims the run, it owns the record.
    fn retry_write(self, store: &Store, lease: &Lease, error: &StoreError) {
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

/// Whether the code itself ended the run, not a limit or a broken sandbox. Only then does it matter
/// that a replay made fewer calls than before.
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

/// Marks a run as aborted or interrupted if its caller drops it halfway.
struct AbandonGuard {
    executor: Executor,
    run: Option<(Lease, ActiveGuard)>,
}

impl AbandonGuard {
    /// Marks the run as ended normally; until then the guard keeps it active.
    fn disarm(mut self) -> Option<ActiveGuard> {
        self.run.take().map(|(_, active)| active)
    }
}

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        let Some((lease, active)) = self.run.take() else { return };
        let Some(store) = self.executor.store.clone() else { return };
        let status = match self.executor.is_stopping() {
            true => RunStatus::Interrupted,
            false => RunStatus::Aborted,
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let written = RunEnd { status, result: None }.write(&store, &lease).await;
                // Active until then, so that no host finds the run and resumes it.
                drop(active);
                written
            });
        }
    }
}

fn not_durable(id: String, why: &str) -> RunResult {
    let message = format!("cannot make the run durable, so it was not started: {why}");
    let error = RunError::new(ErrorCode::SandboxFailed, message);
    RunResult::not_run(id, RunStatus::Failed, error)
}

fn seed() -> String {
    let mut bytes = [0; 32];
    // Without randomness the seed is merely predictable; the store holds it in clear text anyway.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    hex::encode(&bytes)
}
