//! The port to the world: who calls tools and runs code for a workflow.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    effect::{TaskOutcome, TaskStart},
    machine::WorkflowFiles,
};

/// Something to perform. Its intent is durable.
#[derive(Debug, Clone)]
pub struct Job {
    /// The workflow it is part of.
    pub flow: String,
    /// What.
    pub start: TaskStart,
    /// The files it sees, if it sees files.
    pub files: Option<WorkflowFiles>,
    /// Cancelled when it should end early. One that does not end in time is dropped.
    pub cancel: CancellationToken,
}

/// Performs what workflows ask for.
///
/// The driver relies on two promises: a future that is dropped stops what it was doing, as far as
/// that can be stopped; and what is called repeatable does no harm when it is performed twice under
/// the same key.
pub trait Performer: Send + Sync {
    /// Performs something and says how it went. A failure is an outcome as well.
    fn perform(&self, job: Job) -> impl Future<Output = TaskOutcome> + Send;

    /// Whether it may be performed again when nobody knows how far it came: the tool only reads or
    /// says that repeating is harmless, or the run has a journal of its own.
    fn is_repeatable(&self, start: &TaskStart) -> bool;

    /// Whether something is kept in memory for a workflow that would be gone if its driver left it.
    fn keeps(&self, _flow: &str) -> bool {
        false
    }

    /// Told how long it took to write a step that is one to come back to.
    fn saved(&self, _took: Duration) {}

    /// Told around every step: before it is committed, and when it is durable and about to be
    /// performed. Tests end the host there.
    fn at(&self, _place: CommitPoint) {}
}

/// A place in a step of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitPoint {
    /// Nothing of the step is durable.
    Committing,
    /// All of it is, and nothing of it was performed.
    Committed,
}
