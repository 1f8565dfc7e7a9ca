//! Durable runs (D8): started with a journal, resumed from it after the host has died.

use std::{future::Future, sync::Arc, time::Duration};

use belljar_contract::{ErrorCode, ErrorKind, RunError, RunId, RunResult, RunStatus, hex};
use belljar_runtime::{BridgeLink, Durable, RunOptions, ToolLink};
use belljar_store::{ClaimReason, Lease, NewRun, RunRecord, RunSummary, Store, StoreError};
use belljar_tools::{CallObserver, JournalError, RunBridge, crash_point, has_connections};
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;

use super::{
    Execution, Executor, RunDurability,
    abort::Abort,
    clock_note::ClockNote,
    finish::OpenRun,
    network::{NetworkPlan, RunFetchPort, RunInputs},
    now_ms, serve,
    stored::StoredRequest,
    this_process,
};
use crate::{active::ActiveGuard, is_owner_alive};

/// Delay before a failed write to the store is retried.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The event of a run that a host continues.
pub(super) const RESUMED: &str = "code_execution_resumed";

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
    Unknown(RunId),
    /// The run kept no journal.
    #[error("run {0} is not durable, so it has no journal to resume from")]
    NotDurable(RunId),
    /// Another process runs it.
    #[error("run {id} is still running in process {process}")]
    StillRunning {
        /// The id of the run.
        id: RunId,
        /// Number of the process that runs it.
        process: String,
    },
    /// The stored request cannot be read.
    #[error("cannot read the stored request of run {id}: {source}")]
    Unreadable {
        /// The id of the run.
        id: RunId,
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
        execution: Execution,
        store: &Store,
        run: &mut OpenRun,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let Execution { request, tools, max_output_tokens, caller, .. } = &execution;
        let id = run.id().clone();
        if self.bridge.is_none() {
            execution.observer.run_begins(&id);
            return not_durable(id, "there is no tool bridge, so there is no journal");
        }
        if execution.durability == RunDurability::Always
            && !request.grants.net.is_empty()
            && !request.engine().row().fetches
        {
            execution.observer.run_begins(&id);
            let message = format!(
                "a durable run of {} cannot reach hosts: its connections cannot be replayed",
                request.engine()
            );
            let error = RunError::new(ErrorCode::RequestInvalid, message)
                .with_hint("omit `durable`, or use `fetch` in TypeScript or Python");
            return RunResult::not_run(id, RunStatus::Failed, error);
        }
        let mut stored = StoredRequest::of(request, tools, *max_output_tokens);
        stored.hosts.clone_from(&execution.hosts);
        stored.report = Some(run.tools.clone());
        stored.has_no_sockets = execution.durability == RunDurability::Always;
        let started_ms = now_ms();
        let seed = seed();
        // Before it is in the store, so that no host finds it there without an owner.
        let Some(active) = self.active_runs.enter(&id) else {
            return not_durable(id, "a run with this id is already running");
        };
        let begun = async {
            let run = NewRun {
                id: id.clone(),
                caller: caller.clone(),
                work: request.language.into(),
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
        match begun {
            Ok(lease) => run.journal = Some(RunJournal { lease, active: Some(active) }),
            Err(error) => return not_durable(id, &error),
        }
        let durable = Durable { seed, now_ms: started_ms as f64 };
        let result = self.run_durable(execution, store, run, durable, abort).await;
        result.unwrap_or_else(|error| not_durable(id, &error.to_string()))
    }

    /// Resumes a durable run from its journal.
    pub async fn resume(
        &self,
        id: &RunId,
        observer: Arc<dyn CallObserver>,
        abort: impl Future<Output = ()>,
    ) -> Result<ResumeOutcome, ResumeError> {
        self.resume_claiming(id, ClaimReason::Asked, observer, abort).await
    }

    /// Resumes an abandoned run that this host found by itself.
    pub(crate) async fn resume_found(
        &self,
        id: &RunId,
        observer: Arc<dyn CallObserver>,
        abort: impl Future<Output = ()>,
    ) -> Result<ResumeOutcome, ResumeError> {
        self.resume_claiming(id, ClaimReason::Found, observer, abort).await
    }

    async fn resume_claiming(
        &self,
        id: &RunId,
        why: ClaimReason,
        observer: Arc<dyn CallObserver>,
        abort: impl Future<Output = ()>,
    ) -> Result<ResumeOutcome, ResumeError> {
        let store = self.store.as_ref().ok_or(ResumeError::NoStore)?;
        let record = store.run(id).await?.ok_or_else(|| ResumeError::Unknown(id.clone()))?;
        let unreadable = |source| ResumeError::Unreadable { id: id.clone(), source };
        if let Some(result) = record.result_json {
            let result = serde_json::from_str(&result).map_err(unreadable)?;
            return Ok(ResumeOutcome::Ended(result));
        }
        if !record.summary.durable {
            return Err(ResumeError::NotDurable(id.clone()));
        }
        let still_running = |owner: &str| {
            let process = owner.split(':').next().unwrap_or_default().to_owned();
            ResumeError::StillRunning { id: id.clone(), process }
        };
        let owner = &record.summary.owner;
        let is_running = record.summary.status == RunStatus::Running && is_owner_alive(owner);
        let active = self.active_runs.enter(id).filter(|_| !is_running);
        let active = active.ok_or_else(|| still_running(owner))?;
        let RunRecord { summary, code, request_json, .. } = record;
        let stored: StoredRequest = serde_json::from_str(&request_json).map_err(unreadable)?;
        let max_output_tokens = stored.max_output_tokens;
        let report = stored.report.clone().unwrap_or_default();
        let execution = Execution { observer, ..stored.into_execution(code, summary.caller) };
        let seen = Lease { run_id: id.clone(), fence: summary.fence };
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
        self.post(id, RESUMED, &lease.fence).await;
        let mut run = self.opened(id);
        (run.tools, run.max_output_tokens) = (report, max_output_tokens);
        run.clock = ClockNote::of(&execution);
        run.journal = Some(RunJournal { lease, active: Some(active) });
        if self.has_connections(store, id).await? {
            let result = self.finish(run, connections_in_doubt(id.clone())).await;
            return Ok(ResumeOutcome::Ran(Box::new(result)));
        }
        let mut abort = Abort::new(abort);
        let resumed = self.run_durable(execution, store, &mut run, durable, &mut abort).await;
        let result = resumed.unwrap_or_else(|error| {
            // Another version may be able to read its journal: its record stays as it is.
            run.journal = None;
            not_durable(id.to_owned(), &error.to_string())
        });
        abort.look_again(&result).await;
        Ok(ResumeOutcome::Ran(Box::new(self.finish(run, result).await)))
    }

    /// Runs the code of a run whose record this process has. The error says that its journal cannot be
    /// read.
    async fn run_durable(
        &self,
        execution: Execution,
        store: &Store,
        run: &mut OpenRun,
        durable: Durable,
        abort: impl Future<Output = ()>,
    ) -> Result<RunResult, JournalError> {
        let id = run.id().clone();
        let (Some(bridge), Some(RunJournal { lease, .. })) = (&self.bridge, &run.journal) else {
            return Ok(not_durable(id, "there is no tool bridge, so there is no journal"));
        };
        let plan = match execution.request.grants.net.is_empty() {
            true => None,
            false => match self.network_plan(&execution, &id, Some(lease)) {
                Ok(plan) => Some(plan),
                Err(error) => return Ok(RunResult::not_run(id, RunStatus::Failed, error)),
            },
        };
        let (request, context, listener) = execution.into_parts(&id, None);
        let began_ms = durable.now_ms;
        let (tools, BridgeLink { asks, inputs, fetches }) = ToolLink::pair(Some(durable));
        let inputs = RunInputs::new(inputs);
        let options = |plan: NetworkPlan| plan.options(Some(bridge), Some(inputs.clone()));
        let network = plan.map(options).unwrap_or_default();
        let sink = move |input| inputs.send(input);
        let journal = (store.clone(), lease.clone());
        let calls = RunBridge::durable(bridge, context, journal, began_ms, sink).await?;
        let calls = calls.with_fetches(Arc::new(RunFetchPort(fetches)));
        let options = RunOptions { id: Some(id), tools: Some(tools), listener, network };
        let run = self.sandbox.host.run_with(request, options, abort);
        let (mut result, finished) = tokio::join!(run, serve(calls, asks));
        if let (true, Err(diverged)) = (ended_by_itself(&result), finished) {
            let error = Some(diverged.into());
            let status = RunStatus::Failed;
            result = RunResult { status, success: false, exit_code: 1, error, ..result };
        }
        crash_point("finished");
        Ok(result)
    }

    /// Whether a run had connections when its host ended.
    async fn has_connections(&self, store: &Store, id: &RunId) -> Result<bool, StoreError> {
        let journal = store.journal(id).await?;
        Ok(has_connections(journal.iter().map(|(_, row)| row)))
    }

    /// Aborts a run without an owner. Hosts no longer resume it; a person can.
    pub(crate) async fn end_run(&self, run: &RunSummary) -> Result<EndRunOutcome, StoreError> {
        let Some(store) = &self.store else { return Ok(EndRunOutcome::Elsewhere) };
        let is_had = run.status == RunStatus::Running && is_owner_alive(&run.owner);
        let active = self.active_runs.enter(&run.id).filter(|_| !is_had);
        let Some(active) = active else { return Ok(EndRunOutcome::Elsewhere) };
        let seen = Lease { run_id: run.id.clone(), fence: run.fence };
        let lease = match store.claim_run(seen, &this_process(), ClaimReason::Asked, now_ms()).await
        {
            Ok(lease) => lease,
            Err(StoreError::Fenced { .. }) => return Ok(EndRunOutcome::Elsewhere),
            Err(error) => return Err(error),
        };
        let mut open = self.opened(&run.id);
        open.journal = Some(RunJournal { lease, active: Some(active) });
        let error = RunError::new(ErrorCode::RunAborted, "the run was ended without a host");
        let ended =
            self.finish(open, RunResult::not_run(run.id.clone(), RunStatus::Aborted, error)).await;
        Ok(match ended.status {
            RunStatus::Aborted => EndRunOutcome::Aborted,
            // This host stops, and the next one resumes it.
            RunStatus::Running
            | RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Interrupted
            | RunStatus::ApprovalRequired
            | RunStatus::InDoubt => EndRunOutcome::Elsewhere,
        })
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

/// The record of a run that this process has, until its end is written.
#[derive(Debug)]
pub(super) struct RunJournal {
    pub(super) lease: Lease,
    /// Keeps other hosts from finding the run and resuming it.
    pub(super) active: Option<ActiveGuard>,
}

impl RunJournal {
    /// Writes how the run ended, with the result as its caller gets it; a run that can resume later is
    /// only set aside.
    pub(super) async fn write_end(self, store: &Store, result: &RunResult) {
        let Self { lease, active: _active } = self;
        let json = || serde_json::to_string(result).unwrap_or_default();
        let is_over = matches!(result.status, RunStatus::Completed | RunStatus::Failed)
            || is_in_doubt_for_good(result);
        let end = RunEnd { status: result.status, result: is_over.then(json) };
        if let Err(error) = end.write(store, &lease).await {
            // The journal has its calls; only its end is missing.
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot write the end of a run; retrying"
            );
            end.retry_write(store, &lease, &error);
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

/// The result of a run whose host ended while it had connections.
fn connections_in_doubt(id: RunId) -> RunResult {
    let message = "the host ended while the run could reach hosts: its requests may have had effects, so it \
                   is not repeated";
    let error = RunError::new(ErrorCode::RunInDoubt, message).with_hint(
        "`belljar audit` lists its connections; check them, then start it again if repeating them is harmless",
    );
    RunResult::not_run(id, RunStatus::InDoubt, error)
}

/// Whether no answer of a person could let the run go on.
fn is_in_doubt_for_good(result: &RunResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.code == ErrorCode::RunInDoubt)
}

fn not_durable(id: RunId, why: &str) -> RunResult {
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
