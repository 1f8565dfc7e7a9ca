//! The port beneath a workflow: what keeps it, and decides who may write about it.
//!
//! An engine keeps bytes and numbers and knows nothing of tasks. Whoever drives a workflow relies
//! on four promises, which the conformance suite checks:
//!
//! - what was acknowledged is durable, and a batch is there as a whole or not at all;
//! - of two that claim a workflow one has it, and who was superseded changes nothing and is told;
//! - numbers have no gap, and the same batch committed twice is committed once;
//! - a command is taken in the order it was sent, once, and its answer stays.
//!
//! Time is an argument. Rows are plain data, shared with the store.

use std::{error::Error as StdError, time::Duration};

use thiserror::Error;

pub use belljar_store::{
    CheckpointRow, ClaimReason as Why, CommandRow, GiveBack, IntentChange, IntentRow, LeaseRequest,
    LoadedWorkflow as Loaded, NewWorkflowRow as NewFlow, QueuedCommand,
    ResumeExclusions as LeftAlone, SentCommand as Sent, WorkflowBatch as Batch,
    WorkflowEventRow as EventRow, WorkflowFilter as Filter, WorkflowInputRow as InputRow,
    WorkflowLease as Lease, WorkflowRow as FlowRow, WorkflowStatusUpdate as Standing,
};

/// Why an engine could not do what was asked. Whatever the variant, nothing was changed; after
/// [`Failed`](Self::Failed) a commit may be durable or not, and may be tried again as it was.
#[derive(Debug, Error)]
pub enum EngineError {
    /// Somebody else has claimed the workflow since: this writer has to stop.
    #[error("workflow {flow} was taken over: fence {held} is held, {current} is current")]
    Superseded {
        /// The workflow.
        flow: String,
        /// The fence of the lease that was used.
        held: i64,
        /// The fence it has now.
        current: i64,
    },
    /// Somebody has the workflow, or it has not ended yet.
    #[error("workflow {flow} belongs to `{owner}` until {until_ms}")]
    Held {
        /// The workflow.
        flow: String,
        /// Who has it.
        owner: String,
        /// Until when, unless they renew it.
        until_ms: i64,
    },
    /// There is no such workflow.
    #[error("there is no workflow {0}")]
    Unknown(String),
    /// There is such a workflow already.
    #[error("workflow {0} exists already")]
    Exists(String),
    /// It has no such checkpoint, or not any more.
    #[error("workflow {flow} has no checkpoint {checkpoint}")]
    NoCheckpoint {
        /// The workflow.
        flow: String,
        /// The number that was asked for.
        checkpoint: u64,
    },
    /// Something else is there under this number or id, or a number was left out.
    #[error("{0}")]
    Conflict(String),
    /// The engine itself failed.
    #[error("the durable engine failed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}

/// Keeps workflows. Handles in several processes may share one storage.
pub trait DurableEngine: Send + Sync {
    /// Makes a workflow nobody has yet, with its state before the first input.
    fn create(&self, flow: NewFlow) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Claims a workflow: its fence grows. Refused while somebody has it, unless that is taken
    /// over.
    fn claim(
        &self,
        flow: &str,
        request: LeaseRequest,
    ) -> impl Future<Output = Result<Lease, EngineError>> + Send;

    /// Keeps a workflow until a later time.
    fn renew(
        &self,
        lease: &Lease,
        until_ms: i64,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Gives a workflow back. The lease is void then, also while it rests.
    fn release(
        &self,
        lease: &Lease,
        how: GiveBack,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Commits a batch, and gives back the number of the last input there is. Superseded: nothing
    /// of it is durable.
    fn commit(
        &self,
        lease: &Lease,
        batch: Batch,
    ) -> impl Future<Output = Result<u64, EngineError>> + Send;

    /// A workflow as it is, or as it was at a checkpoint (a number, 0 is the beginning).
    fn load(
        &self,
        flow: &str,
        checkpoint: Option<u64>,
    ) -> impl Future<Output = Result<Loaded, EngineError>> + Send;

    /// Checkpoints, newest first; those before a number, if it is given.
    fn checkpoints(
        &self,
        flow: &str,
        before: Option<u64>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<CheckpointRow>, EngineError>> + Send;

    /// What is known of a workflow without what it did.
    fn find(&self, flow: &str)
    -> impl Future<Output = Result<Option<FlowRow>, EngineError>> + Send;

    /// Workflows, newest first; those before an id, if it is given.
    fn list(
        &self,
        filter: Filter,
        before: Option<&str>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<FlowRow>, EngineError>> + Send;

    /// Workflows that somebody should claim: the lease has lapsed, and they are due or have
    /// commands nobody took; without those that are left alone.
    fn abandoned(
        &self,
        now_ms: i64,
        but: LeftAlone,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<FlowRow>, EngineError>> + Send;

    /// Makes a workflow that is what another was at a checkpoint, without its commands and without
    /// open intents: what was under way is the other's, and the fork has begun nothing. A command of
    /// its own, if one is given, is there as soon as the fork is.
    fn fork(
        &self,
        flow: &str,
        checkpoint: u64,
        new_id: &str,
        now_ms: i64,
        command: Option<QueuedCommand>,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Makes a workflow that is all another is.
    fn copy(
        &self,
        flow: &str,
        new_id: &str,
        now_ms: i64,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Drops what is not needed to go on: earlier checkpoints cannot be brought back any more. How
    /// many inputs were dropped comes back.
    fn prune(&self, flow: &str) -> impl Future<Output = Result<u64, EngineError>> + Send;

    /// Forgets a workflow that has ended and that nobody has; what came from it stays.
    fn forget(
        &self,
        flow: &str,
        now_ms: i64,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Queues a command; its `seq` is given by the queue. The same id twice is one command.
    fn send(
        &self,
        flow: &str,
        command: QueuedCommand,
    ) -> impl Future<Output = Result<Sent, EngineError>> + Send;

    /// Commands after a number, oldest first, taken or not; when there are none, waits this long.
    fn commands(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> impl Future<Output = Result<Vec<CommandRow>, EngineError>> + Send;

    /// A command by its id, when it is answered; waits this long for the answer. Without an answer
    /// the command comes back as it is, if there is one.
    fn command(
        &self,
        flow: &str,
        id: &str,
        patience: Duration,
    ) -> impl Future<Output = Result<Option<CommandRow>, EngineError>> + Send;

    /// Events after a number, oldest first; when there are none, waits this long.
    fn events(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> impl Future<Output = Result<Vec<EventRow>, EngineError>> + Send;

    /// Keeps bytes for as long as a workflow, and what came from it; gives back their id.
    fn put_blob(
        &self,
        flow: &str,
        bytes: Vec<u8>,
        now_ms: i64,
    ) -> impl Future<Output = Result<String, EngineError>> + Send;

    /// Bytes that were kept.
    fn blob(&self, id: &str) -> impl Future<Output = Result<Option<Vec<u8>>, EngineError>> + Send;
}
