//! The port through which a workflow acts: calls of tools, runs of code, sessions.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    effect::{TaskOutcome, TaskStart},
    machine::WorkflowFiles,
};

/// A task to perform. Its intent is durable.
#[derive(Debug, Clone)]
pub struct Job {
    /// The id of the workflow.
    pub flow: String,
    /// The task, with its templates rendered.
    pub start: TaskStart,
    /// The workflow's files, if the task sees them.
    pub files: Option<WorkflowFiles>,
    /// Cancelled when the task should end early. A task that does not end in time is dropped.
    pub cancel: CancellationToken,
}

/// Performs the tasks of workflows.
///
/// The driver relies on two promises: dropping the future stops the task as far as it can be
/// stopped; and performing a repeatable task twice under the same key does no harm.
pub trait Performer: Send + Sync {
    /// Performs a task and returns its outcome; a failure is an outcome as well.
    fn perform(&self, job: Job) -> impl Future<Output = TaskOutcome> + Send;

    /// Whether the task may be performed again when its first attempt was lost: the tool only reads
    /// or declares itself idempotent, or the run has a journal of its own.
    fn is_repeatable(&self, start: &TaskStart) -> bool;

    /// Whether the performer holds something in memory for a workflow that would be lost if the
    /// driver left.
    fn keeps(&self, _flow: &str) -> bool {
        false
    }

    /// Called after each commit with a checkpoint, with the time the commit took.
    fn saved(&self, _took: Duration) {}

    /// Called around every commit: before it, and when it is durable but not performed. Tests kill
    /// the host here.
    fn at(&self, _place: CommitPoint) {}
}

/// A point in a step of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitPoint {
    /// Nothing of the step is durable.
    Committing,
    /// All of the step is durable, and nothing of it was performed.
    Committed,
}
