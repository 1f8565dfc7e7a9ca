//! The order of a durable run's inputs: each is written to the journal first, then delivered.

use std::sync::{Arc, Mutex, PoisonError};

use belljar_contract::ErrorCode;
use belljar_store::{Lease, Store, StoreError};
use belljar_wire::{GuestInput, StopReason, ToolFault, ToolReply};
use tokio::sync::{mpsc, watch};

use super::run::Sink;
use crate::{
    crash::crash_point,
    record::{CallEntry, JournalEntry, OutcomeEntry},
};

/// An event that is about to become an input of the code.
#[derive(Debug)]
pub(super) enum InputArrival {
    /// A call has ended.
    Ended {
        call: u32,
        /// The `called` entry, if it is not in the journal yet.
        called: Option<CallEntry>,
        outcome: Result<Vec<u8>, Vec<u8>>,
    },
    /// A timer is due.
    Timer { at_ms: f64 },
}

/// Writes arrivals to the journal in batches, and delivers them in that order.
pub(super) struct Sequencer {
    pub(super) store: Store,
    pub(super) lease: Lease,
    pub(super) out: Sink,
    pub(super) clock: GuestClock,
}

/// The clock of guest code: the machine's clock, except that it never goes back.
#[derive(Debug, Clone)]
pub(super) struct GuestClock {
    machine_ms: fn() -> i64,
    last_ms: Arc<Mutex<f64>>,
}

impl GuestClock {
    /// A clock that has shown `last_ms`.
    pub(super) fn new(machine_ms: fn() -> i64, last_ms: f64) -> Self {
        Self { machine_ms, last_ms: Arc::new(Mutex::new(last_ms)) }
    }

    /// The time it would show now.
    pub(super) fn now_ms(&self) -> f64 {
        let last_ms = *self.last_ms.lock().unwrap_or_else(PoisonError::into_inner);
        last_ms.max((self.machine_ms)() as f64)
    }

    /// Moves the clock to now, or to `at_least_ms` if that is later. Whole milliseconds, which survive
    /// the journal unchanged.
    fn show(&self, at_least_ms: f64) -> f64 {
        let now_ms = self.now_ms().max(at_least_ms.ceil());
        *self.last_ms.lock().unwrap_or_else(PoisonError::into_inner) = now_ms;
        now_ms
    }
}

impl Sequencer {
    /// Runs until every sender is dropped.
    pub(super) async fn run(
        self,
        mut arrived: mpsc::UnboundedReceiver<InputArrival>,
        mut is_live: watch::Receiver<bool>,
    ) {
        while let Some(first) = arrived.recv().await {
            // The recorded inputs come first.
            if is_live.wait_for(|live| *live).await.is_err() {
                return;
            }
            let mut batch = vec![first];
            while let Ok(more) = arrived.try_recv() {
                batch.push(more);
            }
            let (entries, answers) = self.inputs(batch);
            let rows = entries.into_iter().map(JournalEntry::into_row).collect();
            let now_ms = (self.clock.machine_ms)();
            crash_point("answered");
            if let Err(error) = self.store.append(&self.lease, rows, now_ms).await {
                (self.out)(GuestInput::Stop(StopReason::Failed(not_written(&error))));
                return;
            }
            crash_point("ended");
            for answer in answers {
                (self.out)(answer);
            }
        }
    }

    /// The journal entries of a batch, and its deliveries.
    fn inputs(&self, batch: Vec<InputArrival>) -> (Vec<JournalEntry>, Vec<GuestInput>) {
        let mut entries = Vec::new();
        let mut answers = Vec::new();
        for arrival in batch {
            match arrival {
                InputArrival::Ended { call, called, outcome } => {
                    let now_ms = self.clock.show(f64::NEG_INFINITY);
                    entries.extend(called.map(JournalEntry::Called));
                    entries.push(JournalEntry::Ended(OutcomeEntry {
                        call,
                        now_ms,
                        outcome: outcome.clone(),
                    }));
                    let now_ms = Some(now_ms);
                    answers.push(GuestInput::Reply(ToolReply { call, now_ms, outcome }));
                }
                InputArrival::Timer { at_ms } => {
                    let now_ms = self.clock.show(at_ms);
                    entries.push(JournalEntry::Timer { now_ms });
                    answers.push(GuestInput::Timer { now_ms });
                }
            }
        }
        (entries, answers)
    }
}

/// The fault of a run whose journal cannot be written. Calls that were sent are in the journal.
pub(super) fn not_written(error: &StoreError) -> ToolFault {
    if let StoreError::Fenced { .. } = error {
        let message = "another process has taken this run over";
        return ToolFault::new(ErrorCode::RunInterrupted, message);
    }
    tracing::error!(error = error as &dyn std::error::Error, "the journal was not written");
    let message = "the run's journal could not be written, so the run was stopped";
    ToolFault::new(ErrorCode::RunInterrupted, message).with_hint(
        "see the host's log; the disk may be full. Nothing is lost: a server resumes the run \
             by itself, `belljar resume` does it at once",
    )
}

#[cfg(test)]
mod tests;
