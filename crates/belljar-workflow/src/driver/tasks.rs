//! The tasks that are being performed.

use std::collections::HashMap;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    driver::{Job, Performer, round::intent_key},
    effect::{TaskFailure, TaskOutcome, TaskStart},
    machine::WorkflowFiles,
};

use std::sync::Arc;

/// An attempt that has ended, and its outcome.
#[derive(Debug)]
pub(super) struct FinishedTask {
    pub(super) instance: String,
    pub(super) attempt: u32,
    /// The key of the intent to close.
    pub(super) key: String,
    pub(super) outcome: TaskOutcome,
}

/// Futures of the performer. Dropping this drops them.
#[derive(Debug, Default)]
pub(super) struct RunningTasks {
    running: JoinSet<TaskOutcome>,
    known: HashMap<Id, TaskHandle>,
}

#[derive(Debug)]
struct TaskHandle {
    instance: String,
    attempt: u32,
    key: String,
    cancel: CancellationToken,
    abort: AbortHandle,
    /// When the task is dropped, once it was cancelled.
    drop_at_ms: Option<i64>,
}

impl RunningTasks {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Begins to perform a task.
    pub(super) fn start<P: Performer + 'static>(
        &mut self,
        performer: &Arc<P>,
        flow: &str,
        start: TaskStart,
        files: Option<WorkflowFiles>,
    ) {
        let (instance, attempt, key) = (start.instance.clone(), start.attempt, intent_key(&start));
        let cancel = CancellationToken::new();
        let job = Job { flow: flow.to_owned(), start, files, cancel: cancel.clone() };
        let performer = Arc::clone(performer);
        let abort = self.running.spawn(async move { performer.perform(job).await });
        let known = TaskHandle { instance, attempt, key, cancel, abort, drop_at_ms: None };
        self.known.insert(known.abort.id(), known);
    }

    /// Answers for a task that was cancelled before it began, without beginning it.
    pub(super) fn skip(&mut self, start: &TaskStart) {
        let (instance, attempt, key) = (start.instance.clone(), start.attempt, intent_key(start));
        // Another host may have begun it.
        let failure = TaskFailure {
            may_have_acted: start.again,
            ..TaskFailure::new("cancelled", "cancelled before it began")
        };
        let abort = self.running.spawn(std::future::ready(TaskOutcome::failed(failure)));
        let cancel = CancellationToken::new();
        let known = TaskHandle { instance, attempt, key, cancel, abort, drop_at_ms: None };
        self.known.insert(known.abort.id(), known);
    }

    /// Asks a task to end before `drop_at_ms`.
    pub(super) fn cancel(&mut self, instance: &str, attempt: u32, drop_at_ms: i64) {
        for known in self.known.values_mut() {
            if known.instance == instance && known.attempt == attempt {
                known.cancel.cancel();
                known.drop_at_ms.get_or_insert(drop_at_ms);
            }
        }
    }

    /// Asks every task to end.
    pub(super) fn cancel_all(&mut self) {
        for known in self.known.values() {
            known.cancel.cancel();
        }
    }

    /// When the next cancelled task is dropped.
    pub(super) fn next_drop_ms(&self) -> Option<i64> {
        self.known.values().filter_map(|known| known.drop_at_ms).min()
    }

    /// Drops cancelled tasks that did not end in time.
    pub(super) fn drop_late(&mut self, now_ms: i64) {
        for known in self.known.values_mut() {
            if known.drop_at_ms.is_some_and(|drop_at_ms| drop_at_ms <= now_ms) {
                known.abort.abort();
                // Aborted once; the task ends when it is next polled.
                known.drop_at_ms = None;
            }
        }
    }

    /// Drops every task, whatever its state.
    pub(super) fn drop_all(&mut self) {
        self.running.abort_all();
        self.known.clear();
    }

    /// Waits for the next task to end. `None`: nothing runs.
    pub(super) async fn next(&mut self) -> Option<FinishedTask> {
        loop {
            let joined = self.running.join_next_with_id().await?;
            if let Some(ended) = self.ended(joined) {
                return Some(ended);
            }
        }
    }

    /// A task that has ended already.
    pub(super) fn try_next(&mut self) -> Option<FinishedTask> {
        loop {
            let joined = self.running.try_join_next_with_id()?;
            if let Some(ended) = self.ended(joined) {
                return Some(ended);
            }
        }
    }

    fn ended(&mut self, joined: Result<(Id, TaskOutcome), JoinError>) -> Option<FinishedTask> {
        let (id, outcome) = match joined {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => (error.id(), lost(&error)),
        };
        let TaskHandle { instance, attempt, key, .. } = self.known.remove(&id)?;
        Some(FinishedTask { instance, attempt, key, outcome })
    }
}

/// The outcome of a task that was dropped or panicked: how far it came is unknown.
fn lost(error: &JoinError) -> TaskOutcome {
    let mut failure = if error.is_cancelled() {
        TaskFailure::new("cancelled", "cancelled, and did not end in time")
    } else {
        TaskFailure::new("performer.failed", "the performer panicked")
    };
    failure.may_have_acted = true;
    TaskOutcome::failed(failure)
}
