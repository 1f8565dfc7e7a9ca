//! The embedded store with something wrong with it: a flaw of its own, or a host that dies at a
//! point.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use belljar_workflow::{
    SqliteWorkflowStore, WorkflowStoreError,
    workflow_store::{
        CheckpointRow, CommandRow, GiveBack, LeaseRequest, LoadedWorkflow, NewWorkflowRow,
        QueuedCommand, ResumeExclusions, SentCommand, WorkflowBatch, WorkflowEventRow,
        WorkflowFilter, WorkflowLease, WorkflowRow, WorkflowStore,
    },
};

/// The flaw of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    IgnoresFences,
    LosesTheLastEvent,
    QueuesRepeatedCommands,
    ForgetsAnswers,
    ClaimsWhatIsHeld,
    LosesLargeValues,
}

/// Where a host may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrashPoint {
    BeforeCommit,
    AfterCommit,
}

/// Told at each point; whoever stops there never comes back.
pub(crate) type CrashRule = Arc<dyn Fn(CrashPoint) -> bool + Send + Sync>;

#[derive(Clone)]
pub(crate) struct FlawedStore {
    store: SqliteWorkflowStore,
    flaw: Option<Flaw>,
    dies: Option<CrashRule>,
    /// Commits until the disk is full.
    room: Option<Arc<AtomicI64>>,
    pause: Option<Arc<Pause>>,
}

/// A host that stands still before a commit, as one that is swapped out or frozen.
#[derive(Debug)]
pub(crate) struct Pause {
    commits: AtomicI64,
    reached: Notify,
    over: Notify,
}

impl Pause {
    pub(crate) fn before(commit: i64) -> Arc<Self> {
        let commits = AtomicI64::new(commit);
        Arc::new(Self { commits, reached: Notify::new(), over: Notify::new() })
    }

    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }

    pub(crate) fn end(&self) {
        self.over.notify_one();
    }

    async fn pass(&self) {
        if self.commits.fetch_sub(1, Ordering::SeqCst) == 0 {
            self.reached.notify_one();
            self.over.notified().await;
        }
    }
}

impl fmt::Debug for FlawedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlawedStore").field("flaw", &self.flaw).finish_non_exhaustive()
    }
}

impl FlawedStore {
    pub(crate) fn flawed(store: SqliteWorkflowStore, flaw: Flaw) -> Self {
        Self { store, flaw: Some(flaw), dies: None, room: None, pause: None }
    }

    pub(crate) fn mortal(store: SqliteWorkflowStore, dies: CrashRule) -> Self {
        Self { store, flaw: None, dies: Some(dies), room: None, pause: None }
    }

    /// One whose disk is full after so many commits.
    pub(crate) fn with_room(store: SqliteWorkflowStore, commits: i64) -> Self {
        let room = Some(Arc::new(AtomicI64::new(commits)));
        Self { store, flaw: None, dies: None, room, pause: None }
    }

    /// One whose host stands still.
    pub(crate) fn paused(store: SqliteWorkflowStore, pause: Arc<Pause>) -> Self {
        Self { store, flaw: None, dies: None, room: None, pause: Some(pause) }
    }

    async fn pass(&self, point: CrashPoint) {
        if self.dies.as_ref().is_some_and(|dies| dies(point)) {
            std::future::pending::<()>().await;
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

impl WorkflowStore for FlawedStore {
    async fn create(&self, flow: NewWorkflowRow) -> Result<(), WorkflowStoreError> {
        self.store.create(flow).await
    }

    async fn claim(
        &self,
        flow: &str,
        request: LeaseRequest,
    ) -> Result<WorkflowLease, WorkflowStoreError> {
        let take_over = request.take_over || self.has(Flaw::ClaimsWhatIsHeld);
        self.store.claim(flow, LeaseRequest { take_over, ..request }).await
    }

    async fn renew(&self, lease: &WorkflowLease, until_ms: i64) -> Result<(), WorkflowStoreError> {
        self.store.renew(lease, until_ms).await
    }

    async fn release(
        &self,
        lease: &WorkflowLease,
        how: GiveBack,
    ) -> Result<(), WorkflowStoreError> {
        self.store.release(lease, how).await
    }

    async fn commit(
        &self,
        lease: &WorkflowLease,
        mut batch: WorkflowBatch,
    ) -> Result<u64, WorkflowStoreError> {
        self.pass(CrashPoint::BeforeCommit).await;
        if let Some(pause) = &self.pause {
            pause.pass().await;
        }
        if self.room.as_ref().is_some_and(|room| room.fetch_sub(1, Ordering::SeqCst) <= 0) {
            return Err(WorkflowStoreError::Failed("the disk is full".into()));
        }
        let mut lease = lease.clone();
        if self.has(Flaw::IgnoresFences) {
            lease.fence = self.store.find(&lease.workflow_id).await?.map_or(0, |row| row.fence);
        }
        if self.has(Flaw::LosesTheLastEvent) {
            batch.events.pop();
        }
        if self.has(Flaw::ForgetsAnswers) {
            batch.answers.clear();
        }
        if self.has(Flaw::LosesLargeValues) {
            batch.inputs.iter_mut().for_each(|input| input.body.truncate(1 << 20));
        }
        let committed = self.store.commit(&lease, batch).await;
        self.pass(CrashPoint::AfterCommit).await;
        committed
    }

    async fn load(
        &self,
        flow: &str,
        checkpoint: Option<u64>,
    ) -> Result<LoadedWorkflow, WorkflowStoreError> {
        self.store.load(flow, checkpoint).await
    }

    async fn checkpoints(
        &self,
        flow: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, WorkflowStoreError> {
        self.store.checkpoints(flow, before, limit).await
    }

    async fn find(&self, flow: &str) -> Result<Option<WorkflowRow>, WorkflowStoreError> {
        self.store.find(flow).await
    }

    async fn list(
        &self,
        filter: WorkflowFilter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRow>, WorkflowStoreError> {
        self.store.list(filter, before, limit).await
    }

    async fn abandoned(
        &self,
        now_ms: i64,
        but: ResumeExclusions,
        limit: u32,
    ) -> Result<Vec<WorkflowRow>, WorkflowStoreError> {
        self.store.abandoned(now_ms, but, limit).await
    }

    async fn fork(
        &self,
        flow: &str,
        checkpoint: u64,
        new_id: &str,
        now_ms: i64,
        command: Option<QueuedCommand>,
    ) -> Result<(), WorkflowStoreError> {
        self.store.fork(flow, checkpoint, new_id, now_ms, command).await
    }

    async fn send(
        &self,
        flow: &str,
        mut command: QueuedCommand,
    ) -> Result<SentCommand, WorkflowStoreError> {
        let known = self.store.command(flow, &command.id, Duration::ZERO).await?.is_some();
        if known && self.has(Flaw::QueuesRepeatedCommands) {
            command.id.push_str(" again");
        }
        self.store.send(flow, command).await
    }

    async fn commands(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> Result<Vec<CommandRow>, WorkflowStoreError> {
        self.store.commands(flow, after, limit, timeout).await
    }

    async fn command(
        &self,
        flow: &str,
        id: &str,
        timeout: Duration,
    ) -> Result<Option<CommandRow>, WorkflowStoreError> {
        // One that never answers is found out without waiting for it.
        let timeout = if self.flaw.is_some() { Duration::ZERO } else { timeout };
        self.store.command(flow, id, timeout).await
    }

    async fn events(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> Result<Vec<WorkflowEventRow>, WorkflowStoreError> {
        let timeout =
            if self.flaw.is_some() { timeout.min(Duration::from_millis(300)) } else { timeout };
        self.store.events(flow, after, limit, timeout).await
    }

    async fn put_blob(
        &self,
        flow: &str,
        bytes: Vec<u8>,
        now_ms: i64,
    ) -> Result<String, WorkflowStoreError> {
        self.store.put_blob(flow, bytes, now_ms).await
    }

    async fn blob(&self, id: &str) -> Result<Option<Vec<u8>>, WorkflowStoreError> {
        self.store.blob(id).await
    }
}
