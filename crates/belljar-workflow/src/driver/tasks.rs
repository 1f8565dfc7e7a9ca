//! What is being performed at the moment.

use std::collections::HashMap;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    driver::{Job, Performer, round::intent_key},
    effect::{Failure, Outcome, Start},
    machine::Files,
};

use std::sync::Arc;

/// Something that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) instance: String,
    pub(super) attempt: u32,
    /// Its intent.
    pub(super) key: String,
    pub(super) outcome: Outcome,
}

/// Futures of a performer. Dropping this drops them.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    running: JoinSet<Outcome>,
    known: HashMap<Id, Known>,
}

#[derive(Debug)]
struct Known {
    instance: String,
    attempt: u32,
    key: String,
    cancel: CancellationToken,
    abort: AbortHandle,
    /// When it is dropped, if it does not end by itself.
    drop_at_ms: Option<i64>,
}

impl Tasks {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Begins to perform something.
    pub(super) fn start<P: Performer + 'static>(
        &mut self,
        performer: &Arc<P>,
        flow: &str,
        start: Start,
        files: Option<Files>,
    ) {
        let (instance, attempt, key) = (start.instance.clone(), start.attempt, intent_key(&start));
        let cancel = CancellationToken::new();
        let job = Job { flow: flow.to_owned(), start, files, cancel: cancel.clone() };
        let performer = Arc::clone(performer);
        let abort = self.running.spawn(async move { performer.perform(job).await });
        let known = Known { instance, attempt, key, cancel, abort, drop_at_ms: None };
        self.known.insert(known.abort.id(), known);
    }

    /// Answers for something that was cancelled before it began: it is not begun at all.
    pub(super) fn skip(&mut self, start: &Start) {
        let (instance, attempt, key) = (start.instance.clone(), start.attempt, intent_key(start));
        // Another host may have begun it.
        let failure = Failure {
            may_have_acted: start.again,
            ..Failure::new("cancelled", "it was cancelled before it began")
        };
        let abort = self.running.spawn(std::future::ready(Outcome::failed(failure)));
        let cancel = CancellationToken::new();
        let known = Known { instance, attempt, key, cancel, abort, drop_at_ms: None };
        self.known.insert(known.abort.id(), known);
    }

    /// Asks something to end, at the latest then.
    pub(super) fn cancel(&mut self, instance: &str, attempt: u32, drop_at_ms: i64) {
        for known in self.known.values_mut() {
            if known.instance == instance && known.attempt == attempt {
                known.cancel.cancel();
                known.drop_at_ms.get_or_insert(drop_at_ms);
            }
        }
    }

    /// Asks everything to end.
    pub(super) fn cancel_all(&mut self) {
        for known in self.known.values() {
            known.cancel.cancel();
        }
    }

    /// When the next one that was cancelled is dropped.
    pub(super) fn next_drop_ms(&self) -> Option<i64> {
        self.known.values().filter_map(|known| known.drop_at_ms).min()
    }

    /// Drops what was cancelled and has not ended in time.
    pub(super) fn drop_late(&mut self, now_ms: i64) {
        for known in self.known.values_mut() {
            if known.drop_at_ms.is_some_and(|drop_at_ms| drop_at_ms <= now_ms) {
                known.abort.abort();
                // Told once; it ends when it is next polled.
                known.drop_at_ms = None;
            }
        }
    }

    /// Drops everything.
    pub(super) fn drop_all(&mut self) {
        self.running.abort_all();
        self.known.clear();
    }

    /// Waits for the next one to end. `None`: nothing runs.
    pub(super) async fn next(&mut self) -> Option<Ended> {
        loop {
            let joined = self.running.join_next_with_id().await?;
            if let Some(ended) = self.ended(joined) {
                return Some(ended);
            }
        }
    }

    /// One that has ended already.
    pub(super) fn try_next(&mut self) -> Option<Ended> {
        loop {
            let joined = self.running.try_join_next_with_id()?;
            if let Some(ended) = self.ended(joined) {
                return Some(ended);
            }
        }
    }

    fn ended(&mut self, joined: Result<(Id, Outcome), JoinError>) -> Option<Ended> {
        let (id, outcome) = match joined {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => (error.id(), lost(&error)),
        };
        let Known { instance, attempt, key, .. } = self.known.remove(&id)?;
        Some(Ended { instance, attempt, key, outcome })
    }
}

/// The outcome of what was dropped or fell over: nobody knows how far it came.
fn lost(error: &JoinError) -> Outcome {
    let mut failure = if error.is_cancelled() {
        Failure::new("cancelled", "it did not end in time after it was cancelled")
    } else {
        Failure::new("performer.failed", "what performs it fell over")
    };
    failure.may_have_acted = true;
    Outcome::failed(failure)
}
