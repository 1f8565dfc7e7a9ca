//! Why the store could not do what was asked.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::{ErrorCode, ffi};
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
        /// The file that was to be opened.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The last version this program knows.
        known: i64,
    },
    /// The file holds something this program did not put there.
    #[error(
        "the file at {path} is not a store of belljar: {reason}; move it away, or put a backup in its \
         place (docs/operating.md)"
    )]
    Foreign {
        /// The file that was refused.
        path: PathBuf,
        /// What is odd about it.
        reason: &'static str,
    },
    /// The file or its disk is in no state to be used. The message says what to do.
    #[error("{}", trouble.told(path))]
    Unusable {
        /// The file that cannot be used.
        path: PathBuf,
        /// What is the matter.
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
        /// The value, named for a person: a blob's id, a workflow, a journal.
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

/// Why a store cannot be used as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// There is no room for what is to be written.
    Full,
    /// The file is damaged.
    Damaged,
    /// The file was deleted or replaced while it was open.
    Moved,
}

impl Trouble {
    fn told(&self, path: &Path) -> String {
        let shown = path.display();
        match self {
            Self::Full => format!(
                "no space left on the file system of {shown}: free some (16 MiB are enough for most), \
                 then have `belljar gc` remove old records, which needs room to write itself"
            ),
            Self::Damaged => format!(
                "the store at {shown} is damaged: stop every belljar that uses it, move {shown} and \
                 {shown}-wal away, and put a backup in their place (docs/operating.md), or begin anew \
                 without one"
            ),
            Self::Moved => format!(
                "the store at {shown} was deleted or replaced while it was in use, and nothing more is \
                 written: start this process again to use what is there now"
            ),
        }
    }

    /// What a refusal of SQLite is a sign of, if it is one of these.
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
    /// The same error, told with the file it is about where that helps.
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

    /// A file with this wrong with it.
    pub(crate) fn damaged(path: &Path, reason: &str) -> Self {
        let corrupt = ffi::Error::new(ffi::SQLITE_CORRUPT);
        let source = Arc::new(rusqlite::Error::SqliteFailure(corrupt, Some(reason.to_owned())));
        Self::Unusable { path: path.to_owned(), trouble: Trouble::Damaged, source }
    }
}
