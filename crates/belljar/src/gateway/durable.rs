//! Durable runs that outlive the host that began them: how they stand, who goes on with them.
//!
//! A host takes up runs that nobody has, in a way that two hosts can do so side by side: the fence of
//! the store lets one of them. Runs of workflows are the workflows' to go on with.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_server::{ApprovalKind, ApprovalRequest, EndRun, Observer, RunInfo, RunReport};
use belljar_store::{Approvals, RunSummary, Store};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{ProjectBackend, records, told::Told};
use crate::{
    ResumeError, Resumed, executor::EndedRun, flows::is_of_workflow, is_owner_alive, now_ms,
    run_status,
};

/// How often a run of another process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Unfinished runs that are looked at.
const MOST: u32 = 10_000;
/// A run is left alone when so many hosts in a row died with it and it got no further.
const MOST_IN_VAIN: u32 = 10;
/// How long a run that stopped again is left alone: twice as long each time, up to a minute.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// What is known of runs that nobody has.
#[derive(Debug, Default)]
pub(super) struct Adoption {
    /// Runs that were taken up here and did not come to their end.
    paused: Mutex<HashMap<String, Pause>>,
    /// There may be more to take up.
    changed: Notify,
}

#[derive(Debug)]
struct Pause {
    until: Instant,
    next: Duration,
}

impl Adoption {
    /// Completes when there may be more to take up.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn look_again(&self) {
        self.changed.notify_one();
    }

    fn is_paused(&self, id: &str) -> bool {
        let paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.get(id).is_some_and(|pause| Instant::now() < pause.until)
    }

    fn pause(&self, id: &str) {
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = paused.entry(id.to_owned());
        let pause = pause.or_insert_with(|| Pause { until: Instant::now(), next: FIRST_PAUSE });
        pause.until = Instant::now() + pause.next;
        pause.next = (pause.next * 2).min(LONGEST_PAUSE);
    }

    fn forget(&self, id: &str) {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

impl ProjectBackend {
    /// Whether a run is this host's to take up now. One that waits for a person is not: it goes on
    /// when they have decided.
    fn is_to_be_taken_up(&self, run: &RunSummary, waits: bool) -> bool {
        if waits {
            self.adoption.forget(&run.id);
            return false;
        }
        let nobody_has = match run.status.as_str() {
            "running" => !is_owner_alive(&run.owner),
            "interrupted" | "in_doubt" | "approval_required" => true,
            // Its client gave it up.
            _ => false,
        };
        run.durable
            && nobody_has
            && run.fruitless_attempts < MOST_IN_VAIN
            && !is_of_workflow(&run.id)
            && !self.executor.is_under_way(&run.id)
            && !self.adoption.is_paused(&run.id)
    }

    pub(super) async fn runs_to_take_up(&self) -> Vec<RunInfo> {
        let Some(store) = self.executor.store() else { return Vec::new() };
        let unfinished = match store.unfinished_runs(MOST, now_ms()).await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "runs were not looked for"
                );
                return Vec::new();
            }
        };
        let mut found: Vec<RunSummary> = unfinished
            .into_iter()
            .filter(|run| self.is_to_be_taken_up(&run.summary, run.has_pending_approval))
            .map(|run| run.summary)
            .collect();
        // Somebody has just decided for these, and looks on.
        found.sort_by_key(|run| matches!(run.status.as_str(), "running" | "interrupted"));
        found.into_iter().map(records::run).collect()
    }

    pub(super) async fn take_up(&self, id: &str, observer: Observer) -> Option<RunReport> {
        let aborted = observer.aborted();
        let resumed = self.executor.take_up(id, Arc::new(Told { observer }), aborted).await;
        let report = match resumed {
            Ok(Resumed::Ran(result)) => super::report(*result),
            Ok(Resumed::Ended(json)) => RunReport::from_json(json.get()).ok()?,
            Err(error) => {
                self.adoption.pause(id);
                if !matches!(error, ResumeError::StillRunning { .. }) {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, id, "a run was not taken up");
                }
                return None;
            }
        };
        match report.value.get("status").and_then(Value::as_str) {
            Some("completed" | "failed" | "aborted") => self.adoption.forget(id),
            // It would stop again for the same reason.
            _ => self.adoption.pause(id),
        }
        Some(report)
    }

    /// Ends a run that nobody has; it is never started for that.
    pub(super) async fn end_stored_run(&self, id: &str) -> EndRun {
        let Some(store) = self.executor.store() else { return EndRun::Over };
        let Ok(Some(record)) = store.run(id).await else { return EndRun::Over };
        if record.result_json.is_some() || record.summary.status == "aborted" {
            return EndRun::Over;
        }
        match self.executor.end_run(&record.summary).await {
            Ok(EndedRun::Aborted) => {
                if let Some(meter) = self.executor.meter() {
                    meter.given_up();
                }
                EndRun::Over
            }
            Ok(EndedRun::Elsewhere) => EndRun::Elsewhere,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    id,
                    "a run was not ended"
                );
                EndRun::Elsewhere
            }
        }
    }

    /// How a run stands that is not under way in this gateway, once it has ended, waits for a person,
    /// rests, or `wait` has passed.
    pub(super) async fn stored_run(&self, id: &str, wait: Duration) -> Option<RunReport> {
        let store = self.executor.store()?;
        let until = Instant::now() + wait;
        loop {
            let record = store.run(id).await.ok().flatten()?;
            if let Some(result) = &record.result_json {
                return RunReport::from_json(result).ok();
            }
            let run = &record.summary;
            // One that was given up waits for nobody any more, whatever it has asked.
            let waiting = match run.status.as_str() {
                "aborted" => Vec::new(),
                _ => waiting(store, id).await,
            };
            let is_next = self.is_to_be_taken_up(run, !waiting.is_empty());
            if is_next {
                self.adoption.look_again();
            }
            let goes_on = is_next || run_status(run) == "running" || self.executor.is_under_way(id);
            if !waiting.is_empty() || !goes_on || Instant::now() >= until {
                return Some(unfinished(run, waiting, goes_on));
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

/// The approvals a run waits for.
async fn waiting(store: &Store, run_id: &str) -> Vec<ApprovalRequest> {
    let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default();
    let of_run = pending.into_iter().filter(|approval| approval.asked.run_id == run_id);
    of_run.map(records::request).collect()
}

/// How a run stands that has no result.
fn unfinished(run: &RunSummary, waiting: Vec<ApprovalRequest>, goes_on: bool) -> RunReport {
    let status = match waiting.first() {
        None => run_status(run),
        Some(_) if waiting.iter().any(|one| one.kind == ApprovalKind::InDoubt) => "in_doubt",
        Some(_) => "approval_required",
    };
    let mut value = json!({ "id": run.id, "status": status, "success": false });
    let goes_on = goes_on || !waiting.is_empty();
    if let (Some(message), Some(fields)) = (message(run, status, goes_on), value.as_object_mut()) {
        fields.insert("message".to_owned(), message.into());
    }
    RunReport { waiting, ..RunReport::ended(value) }
}

/// What is to be said about a run that rests.
fn message(run: &RunSummary, status: &str, goes_on: bool) -> Option<String> {
    let id = &run.id;
    match status {
        "aborted" => Some(format!("It was ended; a person can run `belljar resume {id}`.")),
        "interrupted" if run.fruitless_attempts >= MOST_IN_VAIN => Some(format!(
            "{} hosts in a row ended while they had it, and it got no further: it is left alone. Look \
             at what it does, then `belljar resume {id}`.",
            run.fruitless_attempts
        )),
        "interrupted" => Some("It was interrupted, and goes on by itself.".to_owned()),
        "in_doubt" | "approval_required" if !goes_on && run.durable => {
            Some(format!("It stopped, and is tried again now and then; `belljar resume {id}`."))
        }
        _ => None,
    }
}
