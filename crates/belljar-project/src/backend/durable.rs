//! Durable runs that outlive their host: their status, and resuming them.
//!
//! A host resumes runs without a live owner. Several hosts may try at once: the store's fence lets
//! one of them through. Runs of workflow tasks are left to their workflows.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_contract::{ApprovalKind, RunId, RunStatus};
use belljar_server::{ApprovalRequest, EndRun, RunInfo, RunReport, RunReporter};
use belljar_store::{Approvals, RunSummary, Store};
use belljar_tools::Bridge;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{ProjectBackend, client_observer::ClientObserver, records};
use crate::{
    ResumeError, ResumeOutcome, executor::EndRunOutcome, is_owner_alive, now_ms, run_status,
    workflows::is_of_workflow,
};

/// How often a run owned by another process is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Unfinished runs that are considered at once.
const MAX_RUNS: u32 = 10_000;
/// A run is left alone after so many hosts in a row ended while they had it, without progress.
const MAX_FAILED_RESUMES: u32 = 10;
/// How long a run that stopped again is left alone: twice as long each time, up to a minute.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Durable runs without an owner that this host may resume.
#[derive(Debug, Default)]
pub(super) struct Adoption {
    /// Runs that this host resumed and that stopped again before their end.
    paused: Mutex<HashMap<RunId, ResumeDelay>>,
    /// Signalled when more runs may be resumable.
    changed: Notify,
}

#[derive(Debug)]
struct ResumeDelay {
    until: Instant,
    next: Duration,
}

impl Adoption {
    /// Completes when more runs may be resumable.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn notify(&self) {
        self.changed.notify_one();
    }

    fn is_paused(&self, id: &RunId) -> bool {
        let paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.get(id).is_some_and(|pause| Instant::now() < pause.until)
    }

    fn pause(&self, id: &RunId) {
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = paused.entry(id.clone());
        let pause =
            pause.or_insert_with(|| ResumeDelay { until: Instant::now(), next: FIRST_PAUSE });
        pause.until = Instant::now() + pause.next;
        pause.next = (pause.next * 2).min(LONGEST_PAUSE);
    }

    fn forget(&self, id: &RunId) {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

impl ProjectBackend {
    /// Whether this host should resume a run now. A run that waits for a person is resumed after
    /// the decision.
    fn is_resumable_here(&self, run: &RunSummary, waits: bool) -> bool {
        if waits {
            self.adoption.forget(&run.id);
            return false;
        }
        let nobody_has = match run.status {
            RunStatus::Running => !is_owner_alive(&run.owner),
            RunStatus::Interrupted | RunStatus::InDoubt | RunStatus::ApprovalRequired => true,
            // It has ended, or its client aborted it.
            RunStatus::Completed | RunStatus::Failed | RunStatus::Aborted => false,
        };
        run.durable
            && nobody_has
            && run.fruitless_attempts < MAX_FAILED_RESUMES
            && !is_of_workflow(&run.id)
            && !self.executor.is_active(&run.id)
            && !self.adoption.is_paused(&run.id)
    }

    pub(super) async fn runs_to_resume(&self) -> Vec<RunInfo> {
        let Some(store) = self.executor.store() else { return Vec::new() };
        let unfinished = match store.unfinished_runs(MAX_RUNS, now_ms()).await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot list unfinished runs"
                );
                return Vec::new();
            }
        };
        let mut found: Vec<RunSummary> = unfinished
            .into_iter()
            .filter(|run| self.is_resumable_here(&run.summary, run.has_pending_approval))
            .map(|run| run.summary)
            .collect();
        // First the runs that a person has just decided about: that person is waiting.
        found.sort_by_key(|run| matches!(run.status, RunStatus::Running | RunStatus::Interrupted));
        found.into_iter().map(records::run).collect()
    }

    pub(super) async fn resume_found(
        &self,
        id: &RunId,
        observer: RunReporter,
    ) -> Option<RunReport> {
        let aborted = observer.aborted();
        let resumed =
            self.executor.resume_found(id, Arc::new(ClientObserver { observer }), aborted).await;
        let report = match resumed {
            Ok(ResumeOutcome::Ran(result) | ResumeOutcome::Ended(result)) => {
                RunReport::ended(*result)
            }
            Err(error) => {
                self.adoption.pause(id);
                if !matches!(error, ResumeError::StillRunning { .. }) {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, id = id.as_str(), "cannot resume a run");
                }
                return None;
            }
        };
        if report.status().is_final() {
            self.adoption.forget(id);
        } else {
            // It would stop again for the same reason.
            self.adoption.pause(id);
        }
        Some(report)
    }

    /// Ends a run without an owner. The run is not started for that.
    pub(super) async fn end_stored_run(&self, id: &RunId) -> EndRun {
        let Some(store) = self.executor.store() else { return EndRun::Over };
        let Ok(Some(record)) = store.run(id).await else { return EndRun::Over };
        if record.result_json.is_some() || record.summary.status == RunStatus::Aborted {
            return EndRun::Over;
        }
        match self.executor.end_run(&record.summary).await {
            Ok(EndRunOutcome::Aborted) => {
                if let Some(meter) = self.executor.meter() {
                    meter.given_up();
                }
                EndRun::Over
            }
            Ok(EndRunOutcome::Elsewhere) => EndRun::Elsewhere,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    id = id.as_str(),
                    "cannot abort a run"
                );
                EndRun::Elsewhere
            }
        }
    }

    /// The status of a run that is not active in this process. Returns when the run has ended,
    /// waits for a person or rests, or when `wait` has passed.
    pub(super) async fn stored_run(&self, id: &RunId, wait: Duration) -> Option<RunReport> {
        let store = self.executor.store()?;
        let until = Instant::now() + wait;
        loop {
            let record = store.run(id).await.ok().flatten()?;
            if let Some(result) = &record.result_json {
                return serde_json::from_str(result).ok().map(RunReport::ended);
            }
            let run = &record.summary;
            // An aborted run waits for no answer, even if its approvals are still open.
            let waiting = match run.status == RunStatus::Aborted {
                true => Vec::new(),
                false => pending_approvals(store, self.executor.bridge(), id).await,
            };
            let is_next = self.is_resumable_here(run, !waiting.is_empty());
            if is_next {
                self.adoption.notify();
            }
            let goes_on =
                is_next || run_status(run) == RunStatus::Running || self.executor.is_active(id);
            if !waiting.is_empty() || !goes_on || Instant::now() >= until {
                return Some(unfinished_report(run, waiting, goes_on));
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// The approvals that a run waits for.
async fn pending_approvals(
    store: &Store,
    bridge: Option<&Bridge>,
    run_id: &RunId,
) -> Vec<ApprovalRequest> {
    let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default();
    let of_run = pending.into_iter().filter(|approval| approval.asked.run_id == *run_id);
    of_run.map(|one| records::stored_request(one.asked, bridge)).collect()
}

/// The report of a run without a result.
fn unfinished_report(run: &RunSummary, waiting: Vec<ApprovalRequest>, goes_on: bool) -> RunReport {
    let status = match waiting.first() {
        None => run_status(run),
        Some(_) if waiting.iter().any(|one| one.kind == ApprovalKind::InDoubt) => {
            RunStatus::InDoubt
        }
        Some(_) => RunStatus::ApprovalRequired,
    };
    let message = message(run, status, goes_on || !waiting.is_empty());
    RunReport { waiting, ..RunReport::unfinished(&run.id, status, message) }
}

/// Tells the client why a run rests and how to resume it.
fn message(run: &RunSummary, status: RunStatus, goes_on: bool) -> Option<String> {
    let id = &run.id;
    match status {
        RunStatus::Aborted => {
            Some(format!("The run was aborted. A person can resume it: `belljar resume {id}`."))
        }
        RunStatus::Interrupted if run.fruitless_attempts >= MAX_FAILED_RESUMES => Some(format!(
            "{} hosts in a row ended during this run, and it made no progress, so hosts leave it \
             alone. Check its code, then resume it: `belljar resume {id}`.",
            run.fruitless_attempts
        )),
        RunStatus::Interrupted => Some("The run was interrupted and resumes by itself.".to_owned()),
        RunStatus::InDoubt | RunStatus::ApprovalRequired if !goes_on && run.durable => {
            Some(format!(
                "The run stopped and is retried from time to time. To retry now: \
                          `belljar resume {id}`."
            ))
        }
        RunStatus::Running
        | RunStatus::Completed
        | RunStatus::Failed
        | RunStatus::ApprovalRequired
        | RunStatus::InDoubt => None,
    }
}
