//! The port beneath a workflow: it stores workflows and decides which host may write to each.
//!
//! A workflow store holds bytes and numbers and knows nothing of tasks. Drivers rely on four
//! promises, which the conformance suite (`tests/it/conformance`) checks:
//!
//! - an acknowledged write is durable, and a batch is stored as a whole or not at all;
//! - of two hosts that claim a workflow one gets it; a superseded host gets an error and changes
//!   nothing;
//! - numbers have no gap, and the same batch committed twice is committed once;
//! - commands are taken in the order they were sent, once each, and their answers stay.
//!
//! Time is an argument. Rows are plain data, shared with the store.

use std::{error::Error as StdError, time::Duration};

use thiserror::Error;

pub use belljar_store::{
    CheckpointRow, ClaimReason, CommandRow, GiveBack, IntentChange, IntentRow, LeaseRequest,
    LoadedWorkflow, NewWorkflowRow, QueuedCommand, ResumeExclusions, SentCommand, WorkflowBatch,
    WorkflowEventRow, WorkflowFilter, WorkflowInputRow, WorkflowLease, WorkflowRow,
    WorkflowStatusUpdate,
};

/// Why an operation failed. Whatever the variant, nothing was changed, with one exception: after
/// [`Failed`](Self::Failed) a commit may be durable or not; the same batch may be committed again.
#[derive(Debug, Error)]
pub enum WorkflowStoreError {
    /// Another host has claimed the workflow since: this writer has to stop.
    #[error("workflow {flow} was taken over: fence {held} is held, {current} is current")]
    Superseded {
        /// The id of the workflow.
        flow: String,
        /// The fence of the lease that was used.
        held: i64,
        /// The fence it has now.
        current: i64,
    },
    /// A host holds the workflow, or the workflow has not ended yet.
    #[error("workflow {flow} is claimed by `{owner}` until {until_ms}")]
    Held {
        /// The id of the workflow.
        flow: String,
        /// The host that holds it.
        owner: String,
        /// When the claim lapses unless it is renewed, in milliseconds since 1970.
        until_ms: i64,
    },
    /// No workflow has this id.
    #[error("there is no workflow {0}")]
    Unknown(String),
    /// The id is taken.
    #[error("workflow {0} exists already")]
    Exists(String),
    /// The workflow has no such checkpoint, or has it no longer.
    #[error("workflow {flow} has no checkpoint {checkpoint}")]
    NoCheckpoint {
        /// The id of the workflow.
        flow: String,
        /// The number in the request.
        checkpoint: u64,
    },
    /// The number or id holds something else already, or a number was left out.
    #[error("{0}")]
    Conflict(String),
    /// The storage itself failed.
    #[error("the workflow store failed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}

/// Stores workflows. Handles in several processes may share one storage.
pub trait WorkflowStore: Send + Sync {
    /// Stores a new workflow that no host holds, with its state before the first input.
    fn create(
        &self,
        flow: NewWorkflowRow,
    ) -> impl Future<Output = Result<(), WorkflowStoreError>> + Send;

    /// Claims a workflow: its fence grows. Refused while another host holds it, unless the request
    /// takes it over.
    fn claim(
        &self,
        flow: &str,
        request: LeaseRequest,
    ) -> impl Future<Output = Result<WorkflowLease, WorkflowStoreError>> + Send;

    /// Extends a claim until a later time.
    fn renew(
        &self,
        lease: &WorkflowLease,
        until_ms: i64,
    ) -> impl Future<Output = Result<(), WorkflowStoreError>> + Send;

    /// Gives a workflow back. The lease is void afterwards, also while the workflow rests.
    fn release(
        &self,
        lease: &WorkflowLease,
        how: GiveBack,
    ) -> impl Future<Output = Result<(), WorkflowStoreError>> + Send;

    /// Commits a batch and returns the number of the last input. When the lease was superseded,
    /// nothing of the batch is durable.
    fn commit(
        &self,
        lease: &WorkflowLease,
        batch: WorkflowBatch,
    ) -> impl Future<Output = Result<u64, WorkflowStoreError>> + Send;

    /// A workflow as it is, or as it was at a checkpoint; checkpoint 0 is its beginning.
    fn load(
        &self,
        flow: &str,
        checkpoint: Option<u64>,
    ) -> impl Future<Output = Result<LoadedWorkflow, WorkflowStoreError>> + Send;

    /// Checkpoints, newest first; only those before a number, if it is given.
    fn checkpoints(
        &self,
        flow: &str,
        before: Option<u64>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<CheckpointRow>, WorkflowStoreError>> + Send;

    /// A workflow's row: its owner, status and times, without its history.
    fn find(
        &self,
        flow: &str,
    ) -> impl Future<Output = Result<Option<WorkflowRow>, WorkflowStoreError>> + Send;

    /// Workflows, newest first; only those before an id, if it is given.
    fn list(
        &self,
        filter: WorkflowFilter,
        before: Option<&str>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<WorkflowRow>, WorkflowStoreError>> + Send;

    /// Workflows that a host should claim: the lease has lapsed, and they are due or have commands
    /// that were not taken. `but` names those to leave alone.
    fn abandoned(
        &self,
        now_ms: i64,
        but: ResumeExclusions,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<WorkflowRow>, WorkflowStoreError>> + Send;

    /// Makes a workflow from another's state at a checkpoint, without its commands and open
    /// intents: tasks under way belong to the other, and the fork has begun nothing. `command` is
    /// queued for the fork in the same transaction.
    fn fork(
        &self,
        flow: &str,
        checkpoint: u64,
        new_id: &str,
        now_ms: i64,
        command: Option<QueuedCommand>,
    ) -> impl Future<Output = Result<(), WorkflowStoreError>> + Send;

    /// Queues a command; the queue assigns its `seq`. Sending the same id twice queues one command.
    fn send(
        &self,
        flow: &str,
        command: QueuedCommand,
    ) -> impl Future<Output = Result<SentCommand, WorkflowStoreError>> + Send;

    /// Commands after a number, oldest first, taken or not; waits up to `timeout` for the first.
    fn commands(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Vec<CommandRow>, WorkflowStoreError>> + Send;

    /// A command by its id; waits up to `timeout` for its answer and returns it without one after
    /// that. `None` when no command has the id.
    fn command(
        &self,
        flow: &str,
        id: &str,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<CommandRow>, WorkflowStoreError>> + Send;

    /// Events after a number, oldest first; waits up to `timeout` for the first.
    fn events(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Vec<WorkflowEventRow>, WorkflowStoreError>> + Send;

    /// Stores bytes for as long as the workflow or one of its forks exists; returns their id.
    fn put_blob(
        &self,
        flow: &str,
        bytes: Vec<u8>,
        now_ms: i64,
    ) -> impl Future<Output = Result<String, WorkflowStoreError>> + Send;

    /// Bytes by the id that [`put_blob`](Self::put_blob) returned.
    fn blob(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, WorkflowStoreError>> + Send;
}
