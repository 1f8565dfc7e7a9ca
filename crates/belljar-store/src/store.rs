//! The handle that callers hold, and how an operation gets to a connection.
//!
//! The operations are `impl Store` blocks in the files of their tables.

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
    location::StoreLocation,
    open::{OpenedStore, PriorFile, open_alone, open_writer},
    readers::Readers,
    writer::{self, AwaitedWrite, Counters, QueuedWrite, Urgency},
};

/// Settings of a store.
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// Bytes of values the cache keeps; the oldest go first.
    pub cache_bytes: u64,
    /// How many background writes may be queued; further callers wait for a place.
    pub behind_queue: usize,
}

impl Default for StoreOptions {
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

/// A project's durable state. Clones share one writer; dropping the last one waits until everything
/// queued is written.
///
/// Methods that read use a blocking thread of the runtime they are called from.
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

struct StoreInner {
    location: Arc<StoreLocation>,
    prior_file: PriorFile,
    /// Why the store is read-only, if the disk was full when it was opened.
    unwritable: Option<Arc<rusqlite::Error>>,
    /// Taken when the store is dropped: the writer ends when the sender is gone.
    queue: Option<Sender<Box<dyn QueuedWrite>>>,
    writer: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    readers: Readers,
    behind: BehindQueue,
    /// Notified when an approval is decided in this process.
    decided: Notify,
    /// Notified when this process sends a command to a workflow.
    commanded: Notify,
    /// Notified when this process commits to a workflow.
    progressed: Notify,
    options: StoreOptions,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("readers", &self.inner.readers).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in `directory`, a project's `.belljar/`, and creates it if there is none.
    ///
    /// Blocks: it reads and perhaps writes the disk.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        Self::open_with(directory, StoreOptions::default())
    }

    /// As [`open`](Self::open), with settings.
    ///
    /// If the disk is full, an existing store is opened read-only, provided that no other process has
    /// it open ([`writable`](Self::writable) tells).
    pub fn open_with(directory: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let OpenedStore { path, connection, prior_file } = match open_writer(directory) {
            Err(StoreError::Unusable { path, trouble: Trouble::Full, source }) => {
                return Self::open_unwritable(path, source, options);
            }
            opened => opened?,
        };
        let location = Arc::new(StoreLocation::of(path.clone()));
        let (queue, received) = mpsc::channel::<Box<dyn QueuedWrite>>();
        let counters = Arc::<Counters>::default();
        let writer = thread::Builder::new()
            .name("belljar-store".to_owned())
            .spawn({
                let (counters, location) = (Arc::clone(&counters), Arc::clone(&location));
                move || writer::run(connection, &location, &received, &counters)
            })
            .map_err(|source: io::Error| StoreError::Open { path: path.clone(), source })?;
        let mut inner = StoreInner::new(location, Readers::new(path), options);
        (inner.prior_file, inner.counters) = (prior_file, counters);
        (inner.queue, inner.writer) = (Some(queue), Some(writer));
        Ok(Self { inner: Arc::new(inner) })
    }

    fn open_unwritable(
        path: PathBuf,
        full: Arc<rusqlite::Error>,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let Ok(connection) = open_alone(&path) else {
            return Err(StoreError::Unusable { path, trouble: Trouble::Full, source: full });
        };
        let location = Arc::new(StoreLocation::of(path.clone()));
        let readers = Readers::alone(path, connection);
        let mut inner = StoreInner::new(location, readers, options);
        inner.unwritable = Some(full);
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The state of the path before the store was opened.
    pub fn prior_file(&self) -> PriorFile {
        self.inner.prior_file
    }

    /// Where the database file is.
    pub fn path(&self) -> &Path {
        self.inner.location.path()
    }

    /// Whether a write would be kept now: the file is where it was, and the disk was not full when
    /// the store was opened.
    pub fn writable(&self) -> Result<(), StoreError> {
        match self.inner.refusal() {
            Some(refusal) => Err(refusal),
            None => self.inner.location.require_unmoved(),
        }
    }

    /// Waits until everything queued so far is on disk. Fails if a background write has failed since
    /// the last flush.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.write(|_| Ok(())).await?;
        self.inner.behind.take_failure().map_or(Ok(()), Err)
    }

    /// How many operations were done, in how many transactions.
    pub fn write_counts(&self) -> WriteCounts {
        WriteCounts {
            operations: self.inner.counters.operations.load(Ordering::Relaxed),
            transactions: self.inner.counters.transactions.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn options(&self) -> StoreOptions {
        self.inner.options
    }

    pub(crate) fn decided(&self) -> &Notify {
        &self.inner.decided
    }

    pub(crate) fn commanded(&self) -> &Notify {
        &self.inner.commanded
    }

    pub(crate) fn progressed(&self) -> &Notify {
        &self.inner.progressed
    }

    pub(crate) fn behind(&self) -> &BehindQueue {
        &self.inner.behind
    }

    /// Runs `work` in the next transaction and waits until that is on disk. Once queued it runs, even
    /// if the caller stops waiting.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.queue(Box::new(AwaitedWrite::new(work, reply)))?;
        let answer = answer.await.unwrap_or(Err(StoreError::Closed));
        answer.map_err(|error| error.at(self.path()))
    }

    /// Hands an operation to the writer thread.
    pub(crate) fn queue(&self, operation: Box<dyn QueuedWrite>) -> Result<(), StoreError> {
        if let Some(refusal) = self.inner.refusal() {
            return Err(refusal);
        }
        let queue = self.inner.queue.as_ref().ok_or(StoreError::Closed)?;
        let urgency = operation.urgency();
        queue.send(operation).map_err(|_| StoreError::Closed)?;
        if urgency == Urgency::Now {
            self.inner.wake_writer();
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
        let reading = tokio::task::spawn_blocking(move || store.inner.readers.read(work));
        reading.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl StoreInner {
    fn new(location: Arc<StoreLocation>, readers: Readers, options: StoreOptions) -> Self {
        Self {
            location,
            prior_file: PriorFile::Store,
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
        let (path, source) = (self.location.path().to_owned(), self.unwritable.clone()?);
        Some(StoreError::Unusable { path, trouble: Trouble::Full, source })
    }

    /// Wakes the writer if it is waiting for more operations to group.
    fn wake_writer(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        // The readers first: the last connection to close copies the log back into the file.
        self.readers.close();
        drop(self.queue.take());
        self.wake_writer();
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer thread of the store panicked");
        }
    }
}
