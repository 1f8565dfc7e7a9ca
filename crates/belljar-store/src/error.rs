//! Errors of the store, and what each one asks the operator to do.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use belljar_contract::{ApprovalId, RunId};
use rusqlite::{ErrorCode, ffi};
use thiserror::Error;

use crate::WorkflowRecordError;

/// Why the store could not do what was asked. Whatever the variant, nothing was changed.
///
/// One exception: after [`Commit`](Self::Commit) the disk may hold the change or not, as with
/// every commit whose answer was lost. Read the journal to find out.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The directory or the file could not be made ready.
    #[error("could not open the store at {path}")]
    Open {
        /// The file that was to be opened.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file was written by a later version of this program.
    #[error(
        "the store at {path} has schema version {found}, this program reads up to {known}: \
         use a newer belljar"
    )]
    Newer {
        /// The file that was to be opened.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The last version this program knows.
        known: i64,
    },
    /// The file holds something this program did not put there.
    #[error(
        "the file at {path} is not a Belljar store: {reason}; move it away, or put a backup in its \
         place (docs/operating.md)"
    )]
    Foreign {
        /// The file that was refused.
        path: PathBuf,
        /// The sign that it is not a store of Belljar.
        reason: &'static str,
    },
    /// The file cannot be used as it is, or its disk is full. The message says what to do.
    #[error("{}", trouble.message(path))]
    Unusable {
        /// The file that cannot be used.
        path: PathBuf,
        /// Why it cannot be used.
        trouble: Trouble,
        /// The error of SQLite that showed it.
        source: Arc<rusqlite::Error>,
    },
    /// SQLite refused an operation; the transaction around it may still be good.
    #[error("the database refused the operation")]
    Sqlite(#[from] rusqlite::Error),
    /// The transaction the operation was part of could not be committed.
    #[error("the transaction could not be committed")]
    Commit(#[source] Arc<rusqlite::Error>),
    /// Another process has claimed the run or the workflow since; this writer has to stop.
    #[error(
        "{run_id} was taken over by another process: this writer holds fence {held}, the current one \
         is {current}"
    )]
    Fenced {
        /// The id of the run or the workflow.
        run_id: String,
        /// The fence of the lease that was used.
        held: i64,
        /// The fence it has now.
        current: i64,
    },
    /// There is no such run.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// There is such a run already.
    #[error("run {0} exists already")]
    RunExists(RunId),
    /// There is no such approval.
    #[error("there is no approval {0}")]
    UnknownApproval(ApprovalId),
    /// Several approvals begin like this.
    #[error("{matches} approvals begin with {prefix}: write more of the id")]
    AmbiguousId {
        /// The beginning that was given.
        prefix: String,
        /// How many approvals have it.
        matches: usize,
    },
    /// The bytes on disk are not the ones that were written.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// The value, named for a person: a blob's id, a workflow, a journal.
        what: String,
        /// The sign of the damage.
        reason: &'static str,
    },
    /// The operation does not fit the workflow as it is recorded.
    #[error(transparent)]
    Workflow(#[from] WorkflowRecordError),
    /// The writer thread has ended.
    #[error("the store is closed")]
    Closed,
}

/// Why a store cannot be used as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The disk has no room for the write.
    Full,
    /// The file is damaged.
    Damaged,
    /// The file was deleted or replaced while it was open.
    Moved,
}

impl Trouble {
    fn message(&self, path: &Path) -> String {
        let shown = path.display();
        match self {
            Self::Full => format!(
                "no space left on the file system of {shown}: free at least 16 MiB, then run \
                 `belljar gc` to remove old records (it needs room to write)"
            ),
            Self::Damaged => format!(
                "the store at {shown} is damaged: stop every belljar process that uses it, move \
                 {shown} and {shown}-wal away, then put a backup in their place \
                 (docs/operating.md), or start with an empty store"
            ),
            Self::Moved => format!(
                "the store at {shown} was deleted or replaced while it was in use; nothing more is \
                 written to it: restart this process to use the file that is there now"
            ),
        }
    }

    /// The trouble that an error of SQLite shows, if it is one of these.
    fn of(error: &rusqlite::Error) -> Option<Self> {
        let rusqlite::Error::SqliteFailure(failure, _) = error else { return None };
        match (failure.code, failure.extended_code) {
            // The log's index could not be made as large as it has to be.
            (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => Some(Self::Full),
            (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => Some(Self::Damaged),
            (_, ffi::SQLITE_READONLY_DBMOVED) => Some(Self::Moved),
            _ => None,
        }
    }
}

impl StoreError {
    /// The same error; it names the file where that helps the operator.
    pub(crate) fn at(self, path: &Path) -> Self {
        let trouble = if let Self::Sqlite(error) = &self {
            Trouble::of(error)
        } else if let Self::Commit(error) = &self {
            Trouble::of(error)
        } else {
            None
        };
        match (self, trouble) {
            (Self::Sqlite(error), Some(trouble)) => {
                Self::Unusable { path: path.to_owned(), trouble, source: Arc::new(error) }
            }
            (Self::Commit(source), Some(trouble)) => {
                Self::Unusable { path: path.to_owned(), trouble, source }
            }
            (other, _) => other,
        }
    }

    /// The error for a file that is damaged in this way.
    pub(crate) fn damaged(path: &Path, reason: &str) -> Self {
        let corrupt = ffi::Error::new(ffi::SQLITE_CORRUPT);
        let source = Arc::new(rusqlite::Error::SqliteFailure(corrupt, Some(reason.to_owned())));
        Self::Unusable { path: path.to_owned(), trouble: Trouble::Damaged, source }
    }
}
