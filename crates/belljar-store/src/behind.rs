//! Write-behind: writes that no caller waits for.
//!
//! They are committed together with the next write. The queue is bounded: when it is full the caller
//! waits for a place, and nothing is dropped. A failure is logged and returned by the next
//! [`Store::flush`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    Store, StoreError,
    writer::{QueuedWrite, Urgency},
};

/// Shared by the callers that queue such writes and the writer that does them.
#[derive(Debug, Clone)]
pub(crate) struct BehindQueue {
    /// A write holds a place until it is on disk.
    places: Arc<Semaphore>,
    /// The first failure since the last flush.
    failed: Arc<Mutex<Option<StoreError>>>,
}

impl BehindQueue {
    pub(crate) fn new(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places.max(1))), failed: Arc::default() }
    }

    /// The first failure since the last call.
    pub(crate) fn take_failure(&self) -> Option<StoreError> {
        self.failure().take()
    }

    fn failure(&self) -> MutexGuard<'_, Option<StoreError>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// Queues `work` and does not wait for it, unless the queue is full.
    pub(crate) async fn write_behind<F>(&self, work: F) -> Result<(), StoreError>
    where
        F: FnOnce(&Connection) -> Result<(), StoreError> + Send + 'static,
    {
        let queue = self.behind().clone();
        let place = Arc::clone(&queue.places).acquire_owned().await;
        let place = place.map_err(|_| StoreError::Closed)?;
        let (work, outcome) = (Some(work), Ok(()));
        self.queue(Box::new(UnawaitedWrite { work, outcome, queue, _place: place }))
    }
}

struct UnawaitedWrite<F> {
    work: Option<F>,
    outcome: Result<(), StoreError>,
    queue: BehindQueue,
    _place: OwnedSemaphorePermit,
}

impl<F> QueuedWrite for UnawaitedWrite<F>
where
    F: FnOnce(&Connection) -> Result<(), StoreError> + Send,
{
    fn urgency(&self) -> Urgency {
        Urgency::Soon
    }

    fn apply(&mut self, connection: &Connection) -> bool {
        if let Some(work) = self.work.take() {
            self.outcome = work(connection);
        }
        self.outcome.is_ok()
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<rusqlite::Error>>) {
        let outcome = self.outcome.and_then(|()| committed.map_err(StoreError::Commit));
        if let Err(error) = outcome {
            tracing::error!(%error, "a background write failed");
            self.queue.failure().get_or_insert(error);
        }
    }
}
