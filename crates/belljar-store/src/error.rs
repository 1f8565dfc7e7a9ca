//! Why the store could not do what was asked.

use std::{io, path::PathBuf, sync::Arc};

use thiserror::Error;

use crate::FlowError;

/// Why the store could not do what was asked. Whatever the variant, nothing was changed.
///
/// One exception: after [`Commit`](Self::Commit) the disk may hold the change or not, as with
/// every commit whose answer was lost. The journal is there to be asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The directory or the file could not be made ready.
    #[error("could not open the store at {path}")]
    Open {
        /// What could not be opened.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file was written by a later version of this program.
    #[error(
        "the store at {path} has schema version {found}, this program knows up to {known}: \
         use the newer belljar"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The last version this program knows.
        known: i64,
    },
    /// The file holds something this program did not put there.
    #[error("the file at {path} is not a store of belljar: {reason}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is odd about it.
        reason: &'static str,
    },
    /// SQLite refused.
    #[error("the database refused the operation")]
    Sqlite(#[from] rusqlite::Error),
    /// The transaction the operation was part of could not be committed.
    #[error("the transaction could not be committed")]
    Commit(#[source] Arc<rusqlite::Error>),
    /// Somebody else has claimed the run or the workflow since; this writer has to stop.
    #[error("{run_id} was taken over: this writer holds fence {held}, it is at {current} now")]
    Fenced {
        /// The run, or the workflow.
        run_id: String,
        /// The fence of the lease that was used.
        held: i64,
        /// The fence it has now.
        current: i64,
    },
    /// There is no such run.
    #[error("there is no run {0}")]
    UnknownRun(String),
    /// There is such a run already.
    #[error("run {0} exists already")]
    RunExists(String),
    /// There is no such approval.
    #[error("there is no approval {0}")]
    UnknownApproval(String),
    /// Several approvals begin like this.
    #[error("{matches} approvals begin with {prefix}: write more of the id")]
    AmbiguousId {
        /// What was looked for.
        prefix: String,
        /// How many there are.
        matches: usize,
    },
    /// What is on disk is not what was put there.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// Which value.
        what: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// What was asked of a workflow cannot be.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The thread that writes is gone.
    #[error("the store is closed")]
    Closed,
}
