//! The handle: what callers hold, and how an operation gets to a connection.
//!
//! The operations themselves are `impl Store` blocks beside the tables they are about.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
};

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use crate::{
    StoreError, Trouble,
    behind::BehindQueue,
    open::{Found, OpenedStore, open_alone, open_writer},
    place::Place,
    readers::Readers,
    writer::{self, Awaited, Counters, Queued, Urgency},
};

/// What can be set when a store is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Bytes of values the cache keeps; the oldest go first.
    pub cache_bytes: u64,
    /// Rows nobody waits for that may be queued before who adds one waits, too.
    pub behind_queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 64 << 20, behind_queue: 4096 }
    }
}

/// How many operations were done, in how many transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteCounts {
    /// Operations that were applied, successful or not.
    pub operations: u64,
    /// Transactions they were grouped into.
    pub transactions: u64,
}

/// A project's durable state. Clones share one writer; dropping the last one writes what is
/// queued, and waits for that.
///
/// Methods that read use a blocking thread of the runtime they are called from.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    /// Which file it is.
    place: Arc<Place>,
    found: Found,
    /// Why nothing can be written, if that was so from the beginning.
    unwritable: Option<Arc<rusqlite::Error>>,
    /// Taken when the store is dropped: the writer ends when the sender is gone.
    queue: Option<Sender<Box<dyn Queued>>>,
    writer: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    readers: Readers,
    behind: BehindQueue,
    /// Wakes who waits for a decision that is made in this process.
    decided: Notify,
    /// Wakes who waits for a command to a workflow that is sent in this process.
    commanded: Notify,
    /// Wakes who waits for what a workflow commits in this process.
    progressed: Notify,
    options: Options,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("readers", &self.shared.readers).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in `directory`, a project's `.belljar/`, and makes it if there is none.
    ///
    /// Blocks: it reads and perhaps writes the disk.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        Self::open_with(directory, Options::default())
    }

    /// As [`open`](Self::open), with settings.
    ///
    /// On a disk without any room a store that is there is opened all the same if nobody else has
    /// it open; then it can only be read ([`writable`](Self::writable)).
    pub fn open_with(directory: &Path, options: Options) -> Result<Self, StoreError> {
        let OpenedStore { path, connection, found } = match open_writer(directory) {
            Err(StoreError::Unusable { path, trouble: Trouble::Full, source }) => {
                return Self::open_unwritable(path, source, options);
            }
            opened => opened?,
        };
        let place = Arc::new(Place::of(path.clone()));
        let (queue, received) = mpsc::channel::<Box<dyn Queued>>();
        let counters = Arc::<Counters>::default();
        let writer = thread::Builder::new()
            .name("belljar-store".to_owned())
            .spawn({
                let (counters, place) = (Arc::clone(&counters), Arc::clone(&place));
                move || writer::run(connection, &place, &received, &counters)
            })
            .map_err(|source: io::Error| StoreError::Open { path: path.clone(), source })?;
        let mut shared = Shared::new(place, Readers::new(path), options);
        (shared.found, shared.counters) = (found, counters);
        (shared.queue, shared.writer) = (Some(queue), Some(writer));
        Ok(Self { shared: Arc::new(shared) })
    }

    fn open_unwritable(
        path: PathBuf,
        full: Arc<rusqlite::Error>,
        options: Options,
    ) -> Result<Self, StoreError> {
        let Ok(connection) = open_alone(&path) else {
            return Err(StoreError::Unusable { path, trouble: Trouble::Full, source: full });
        };
        let place = Arc::new(Place::of(path.clone()));
        let readers = Readers::alone(path, connection);
        let mut shared = Shared::new(place, readers, options);
        shared.unwritable = Some(full);
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What was at the path when it was opened.
    pub fn found(&self) -> Found {
        self.shared.found
    }

    /// Where the database file is.
    pub fn path(&self) -> &Path {
        self.shared.place.path()
    }

    /// Whether what is written now would be kept: the file is where it was, and there was room for
    /// a writer when it was opened.
    pub fn writable(&self) -> Result<(), StoreError> {
        match self.shared.refusal() {
            Some(refusal) => Err(refusal),
            None => self.shared.place.told(),
        }
    }

    /// Waits until everything queued so far is on disk. Fails if a row nobody waited for
    /// could not be written since the last time.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.write(|_| Ok(())).await?;
        self.shared.behind.take_failure().map_or(Ok(()), Err)
    }

    /// How many operations were done, in how many transactions.
    pub fn write_counts(&self) -> WriteCounts {
        WriteCounts {
            operations: self.shared.counters.operations.load(Ordering::Relaxed),
            transactions: self.shared.counters.transactions.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn options(&self) -> Options {
        self.shared.options
    }

    pub(crate) fn decided(&self) -> &Notify {
        &self.shared.decided
    }

    pub(crate) fn commanded(&self) -> &Notify {
        &self.shared.commanded
    }

    pub(crate) fn progressed(&self) -> &Notify {
        &self.shared.progressed
    }

    pub(crate) fn behind(&self) -> &BehindQueue {
        &self.shared.behind
    }

    /// Does `work` in the next transaction and waits until that is on disk. Once queued it is
    /// done, whether or not the caller goes on waiting.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.queue(Box::new(Awaited::new(work, reply)))?;
        let answer = answer.await.unwrap_or(Err(StoreError::Closed));
        answer.map_err(|error| error.at(self.path()))
    }

    /// Hands an operation to the writer.
    pub(crate) fn queue(&self, operation: Box<dyn Queued>) -> Result<(), StoreError> {
        if let Some(refusal) = self.shared.refusal() {
            return Err(refusal);
        }
        let queue = self.shared.queue.as_ref().ok_or(StoreError::Closed)?;
        let urgency = operation.urgency();
        queue.send(operation).map_err(|_| StoreError::Closed)?;
        if urgency == Urgency::Now {
            self.shared.wake_writer();
        }
        Ok(())
    }

    /// Reads on a blocking thread.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let store = self.clone();
        let reading = tokio::task::spawn_blocking(move || store.shared.readers.read(work));
        reading.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Shared {
    fn new(place: Arc<Place>, readers: Readers, options: Options) -> Self {
        Self {
            place,
            found: Found::Store,
            unwritable: None,
            queue: None,
            writer: None,
            counters: Arc::default(),
            readers,
            behind: BehindQueue::new(options.behind_queue),
            decided: Notify::new(),
            commanded: Notify::new(),
            progressed: Notify::new(),
            options,
        }
    }

    fn refusal(&self) -> Option<StoreError> {
        let (path, source) = (self.place.path().to_owned(), self.unwritable.clone()?);
        Some(StoreError::Unusable { path, trouble: Trouble::Full, source })
    }

    /// Has the writer look at its queue now, if it waits for company.
    fn wake_writer(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The readers first: the last connection to close copies the log back into the file.
        self.readers.close();
        drop(self.queue.take());
        self.wake_writer();
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the thread that writes the store had panicked");
        }
    }
}
