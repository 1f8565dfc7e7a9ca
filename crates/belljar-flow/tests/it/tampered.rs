//! The embedded engine with something wrong with it: a flaw of its own, or a host that dies at a
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

use belljar_flow::{
    Embedded, EngineError,
    engine::{
        Batch, CheckpointRow, CommandRow, DurableEngine, EventRow, Filter, FlowRow, GiveBack,
        Lease, LeaseRequest, LeftAlone, Loaded, NewFlow, QueuedCommand, Sent,
    },
};

/// What is wrong with an engine.
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
pub(crate) enum Point {
    BeforeCommit,
    AfterCommit,
}

/// Told at each point; whoever stops there never comes back.
pub(crate) type Dies = Arc<dyn Fn(Point) -> bool + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Tampered {
    engine: Embedded,
    flaw: Option<Flaw>,
    dies: Option<Dies>,
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

impl fmt::Debug for Tampered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tampered").field("flaw", &self.flaw).finish_non_exhaustive()
    }
}

impl Tampered {
    pub(crate) fn flawed(engine: Embedded, flaw: Flaw) -> Self {
        Self { engine, flaw: Some(flaw), dies: None, room: None, pause: None }
    }

    pub(crate) fn mortal(engine: Embedded, dies: Dies) -> Self {
        Self { engine, flaw: None, dies: Some(dies), room: None, pause: None }
    }

    /// One whose disk is full after so many commits.
    pub(crate) fn with_room(engine: Embedded, commits: i64) -> Self {
        let room = Some(Arc::new(AtomicI64::new(commits)));
        Self { engine, flaw: None, dies: None, room, pause: None }
    }

    /// One whose host stands still.
    pub(crate) fn paused(engine: Embedded, pause: Arc<Pause>) -> Self {
        Self { engine, flaw: None, dies: None, room: None, pause: Some(pause) }
    }

    async fn pass(&self, point: Point) {
        if self.dies.as_ref().is_some_and(|dies| dies(point)) {
            std::future::pending::<()>().await;
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

impl DurableEngine for Tampered {
    async fn create(&self, flow: NewFlow) -> Result<(), EngineError> {
        self.engine.create(flow).await
    }

    async fn claim(&self, flow: &str, request: LeaseRequest) -> Result<Lease, EngineError> {
        let take_over = request.take_over || self.has(Flaw::ClaimsWhatIsHeld);
        self.engine.claim(flow, LeaseRequest { take_over, ..request }).await
    }

    async fn renew(&self, lease: &Lease, until_ms: i64) -> Result<(), EngineError> {
        self.engine.renew(lease, until_ms).await
    }

    async fn release(&self, lease: &Lease, how: GiveBack) -> Result<(), EngineError> {
        self.engine.release(lease, how).await
    }

    async fn commit(&self, lease: &Lease, mut batch: Batch) -> Result<u64, EngineError> {
        self.pass(Point::BeforeCommit).await;
        if let Some(pause) = &self.pause {
            pause.pass().await;
        }
        if self.room.as_ref().is_some_and(|room| room.fetch_sub(1, Ordering::SeqCst) <= 0) {
            return Err(EngineError::Failed("the disk is full".into()));
        }
        let mut lease = lease.clone();
        if self.has(Flaw::IgnoresFences) {
            lease.fence = self.engine.find(&lease.workflow_id).await?.map_or(0, |row| row.fence);
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
        let committed = self.engine.commit(&lease, batch).await;
        self.pass(Point::AfterCommit).await;
        committed
    }

    async fn load(&self, flow: &str, checkpoint: Option<u64>) -> Result<Loaded, EngineError> {
        self.engine.load(flow, checkpoint).await
    }

    async fn checkpoints(
        &self,
        flow: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, EngineError> {
        self.engine.checkpoints(flow, before, limit).await
    }

    async fn find(&self, flow: &str) -> Result<Option<FlowRow>, EngineError> {
        self.engine.find(flow).await
    }

    async fn list(
        &self,
        filter: Filter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FlowRow>, EngineError> {
        self.engine.list(filter, before, limit).await
    }

    async fn abandoned(
        &self,
        now_ms: i64,
        but: LeftAlone,
        limit: u32,
    ) -> Result<Vec<FlowRow>, EngineError> {
        self.engine.abandoned(now_ms, but, limit).await
    }

    async fn fork(
        &self,
        flow: &str,
        checkpoint: u64,
        new_id: &str,
        now_ms: i64,
        command: Option<QueuedCommand>,
    ) -> Result<(), EngineError> {
        self.engine.fork(flow, checkpoint, new_id, now_ms, command).await
    }

    async fn copy(&self, flow: &str, new_id: &str, now_ms: i64) -> Result<(), EngineError> {
        self.engine.copy(flow, new_id, now_ms).await
    }

    async fn prune(&self, flow: &str) -> Result<u64, EngineError> {
        self.engine.prune(flow).await
    }

    async fn forget(&self, flow: &str, now_ms: i64) -> Result<(), EngineError> {
        self.engine.forget(flow, now_ms).await
    }

    async fn send(&self, flow: &str, mut command: QueuedCommand) -> Result<Sent, EngineError> {
        let known = self.engine.command(flow, &command.id, Duration::ZERO).await?.is_some();
        if known && self.has(Flaw::QueuesRepeatedCommands) {
            command.id.push_str(" again");
        }
        self.engine.send(flow, command).await
    }

    async fn commands(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> Result<Vec<CommandRow>, EngineError> {
        self.engine.commands(flow, after, limit, patience).await
    }

    async fn command(
        &self,
        flow: &str,
        id: &str,
        patience: Duration,
    ) -> Result<Option<CommandRow>, EngineError> {
        // One that never answers is found out without waiting for it.
        let patience = if self.flaw.is_some() { Duration::ZERO } else { patience };
        self.engine.command(flow, id, patience).await
    }

    async fn events(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> Result<Vec<EventRow>, EngineError> {
        let patience =
            if self.flaw.is_some() { patience.min(Duration::from_millis(300)) } else { patience };
        self.engine.events(flow, after, limit, patience).await
    }

    async fn put_blob(
        &self,
        flow: &str,
        bytes: Vec<u8>,
        now_ms: i64,
    ) -> Result<String, EngineError> {
        self.engine.put_blob(flow, bytes, now_ms).await
    }

    async fn blob(&self, id: &str) -> Result<Option<Vec<u8>>, EngineError> {
        self.engine.blob(id).await
    }
}
