//! The one thread that writes.
//!
//! It runs everything that is queued in one transaction, so that many writers share one
//! synchronisation of the disk (group commit). Each operation has its own savepoint: one that
//! fails undoes itself only. Answers are sent after the commit, never before.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, TryRecvError},
    },
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{StoreError, location::StoreLocation};

#[cfg(test)]
mod tests;

/// Operations in one transaction.
const BATCH: usize = 256;
/// How long background writes wait for others to share a transaction with.
const LINGER: Duration = Duration::from_millis(25);

/// How soon an operation has to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A caller waits for the answer.
    Now,
    /// No caller waits: it may be grouped with later operations.
    Soon,
}

/// An operation in the queue.
pub(crate) trait QueuedWrite: Send {
    /// Whether a caller waits for it.
    fn urgency(&self) -> Urgency;
    /// Runs inside its own savepoint; `false` rolls that savepoint back.
    fn apply(&mut self, connection: &Connection) -> bool;
    /// Sends the outcome to the caller, after the transaction has ended.
    fn answer(self: Box<Self>, committed: Result<(), Arc<rusqlite::Error>>);
}

/// Totals since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) operations: AtomicU64,
    pub(crate) transactions: AtomicU64,
}

/// An operation whose caller waits.
pub(crate) struct AwaitedWrite<T, F> {
    work: Option<F>,
    /// `None` until it has run.
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> AwaitedWrite<T, F> {
    pub(crate) fn new(work: F, reply: oneshot::Sender<Result<T, StoreError>>) -> Self {
        Self { work: Some(work), outcome: None, reply }
    }
}

impl<T, F> QueuedWrite for AwaitedWrite<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
{
    fn urgency(&self) -> Urgency {
        Urgency::Now
    }

    fn apply(&mut self, connection: &Connection) -> bool {
        if let Some(work) = self.work.take() {
            self.outcome = Some(work(connection));
        }
        matches!(self.outcome, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<rusqlite::Error>>) {
        let outcome = match (self.outcome, committed) {
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(_)) | None, Err(error)) => Err(StoreError::Commit(error)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(StoreError::Closed),
        };
        // A caller that stopped waiting needs no answer.
        let _ = self.reply.send(outcome);
    }
}

/// Runs until every sender is gone and the queue is empty.
pub(crate) fn run(
    mut connection: Connection,
    location: &StoreLocation,
    queue: &Receiver<Box<dyn QueuedWrite>>,
    counters: &Counters,
) {
    while let Ok(first) = queue.recv() {
        let batch = gather(first, queue);
        counters.operations.fetch_add(batch.len() as u64, Ordering::Relaxed);
        counters.transactions.fetch_add(1, Ordering::Relaxed);
        commit(&mut connection, Some(location), batch);
    }
}

/// Collects the first operation and everything queued behind it; lingers for more while no caller
/// waits.
///
/// Background writes do not wake the writer thread, so they cost their caller no context switch.
fn gather(
    first: Box<dyn QueuedWrite>,
    queue: &Receiver<Box<dyn QueuedWrite>>,
) -> Vec<Box<dyn QueuedWrite>> {
    let deadline = Instant::now() + LINGER;
    let mut urgent = first.urgency() == Urgency::Now;
    let mut batch = vec![first];
    while batch.len() < BATCH {
        match queue.try_recv() {
            Ok(operation) => {
                urgent |= operation.urgency() == Urgency::Now;
                batch.push(operation);
            }
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if urgent || left.is_zero() {
                    break;
                }
                thread::park_timeout(left);
            }
        }
    }
    batch
}

fn commit(
    connection: &mut Connection,
    location: Option<&StoreLocation>,
    mut batch: Vec<Box<dyn QueuedWrite>>,
) {
    let unmoved = location.map_or(Ok(()), StoreLocation::check_unmoved);
    let committed = unmoved.and_then(|()| apply_all(connection, &mut batch)).map_err(Arc::new);
    if let Err(error) = &committed {
        tracing::error!(%error, operations = batch.len(), "a transaction was not committed");
    }
    for operation in batch {
        operation.answer(committed.clone());
    }
}

fn apply_all(
    connection: &mut Connection,
    batch: &mut [Box<dyn QueuedWrite>],
) -> Result<(), rusqlite::Error> {
    // Immediate: the lock comes first, so that no operation has read what is changed meanwhile.
    // Dropped without a commit, the transaction is rolled back.
    let mut transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for operation in batch {
        let mut savepoint = transaction.savepoint()?;
        if !operation.apply(&savepoint) {
            if savepoint.is_autocommit() {
                // After some errors (disk full) SQLite ends the whole transaction by itself, and
                // what was done before in this one is undone with it.
                return Err(ended());
            }
            savepoint.rollback()?;
        }
        savepoint.commit()?;
    }
    transaction.commit()
}

fn ended() -> rusqlite::Error {
    let aborted = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK);
    rusqlite::Error::SqliteFailure(aborted, Some("the transaction was rolled back".to_owned()))
}
