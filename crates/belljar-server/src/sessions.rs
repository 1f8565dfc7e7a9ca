//! The port to sessions: sandboxes that stay alive between runs, with their checkpoints, forks and
//! files.
//!
//! The HTTP API and the MCP server call it; belljar-project implements it. Ids and paths arrive as
//! the client wrote them: the only check so far is that a path is text of a sane length.

use std::{fmt, future::Future, pin::Pin};

use belljar_contract::{
    CheckpointId, ExecuteRequest, SessionFile, SessionId, SessionInfo, SessionRequest,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::io::AsyncRead;

use crate::backend::{RunReport, RunReporter};

/// Keeps sessions. Calls to one session run in order; later calls wait.
pub trait Sessions: Send + Sync + 'static {
    /// Opens a session, and returns once it can run code.
    fn create_session(
        &self,
        request: SessionRequest,
    ) -> impl Future<Output = Result<SessionInfo, SessionError>> + Send;

    /// The sessions that live, newest first.
    fn sessions(&self) -> impl Future<Output = Result<Vec<SessionInfo>, SessionError>> + Send;

    /// One session. An ended session gives [`SessionError::Ended`] as long as its end is
    /// remembered.
    fn session(
        &self,
        id: &SessionId,
    ) -> impl Future<Output = Result<SessionInfo, SessionError>> + Send;

    /// Ends a session; its resources are gone when this returns.
    fn destroy_session(
        &self,
        id: &SessionId,
    ) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// Runs code in a session, after the calls before it. Errors of the code are in the report; an
    /// error of this method means that no code ran. It ignores `request.session_id`.
    ///
    /// Dropping the future ends the run. The backend decides whether the session survives that; if
    /// not, the next call gives [`SessionError::Ended`].
    fn run_in_session(
        &self,
        id: &SessionId,
        request: ExecuteRequest,
        observer: RunReporter,
    ) -> impl Future<Output = Result<RunReport, SessionError>> + Send;

    /// Takes a checkpoint of the session as it is now.
    fn checkpoint(
        &self,
        id: &SessionId,
    ) -> impl Future<Output = Result<CheckpointTaken, SessionError>> + Send;

    /// The checkpoints of a session, oldest first.
    fn checkpoints(
        &self,
        id: &SessionId,
    ) -> impl Future<Output = Result<Vec<CheckpointInfo>, SessionError>> + Send;

    /// Rolls the session back to a checkpoint. The checkpoint stays and can be used again.
    fn rollback(
        &self,
        id: &SessionId,
        checkpoint_id: &CheckpointId,
    ) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// Forks a session, as it is now or at a checkpoint, into `count` new ones: all or none.
    /// Returns their ids.
    fn fork(
        &self,
        id: &SessionId,
        count: u32,
        checkpoint_id: Option<&CheckpointId>,
    ) -> impl Future<Output = Result<Vec<SessionId>, SessionError>> + Send;

    /// Writes a file beneath `/work`, creates its directories, and replaces a file of that name.
    /// Code never sees half a file: an upload that breaks off changes nothing.
    fn put_file(
        &self,
        id: &SessionId,
        path: &str,
        content: FileContent,
    ) -> impl Future<Output = Result<SessionFile, SessionError>> + Send;

    /// Reads a file beneath `/work`.
    fn get_file(
        &self,
        id: &SessionId,
        path: &str,
    ) -> impl Future<Output = Result<FileContent, SessionError>> + Send;

    /// The files beneath `/work`, by path; `at_most` of them.
    fn list_files(
        &self,
        id: &SessionId,
        at_most: u32,
    ) -> impl Future<Output = Result<FileList, SessionError>> + Send;

    /// Removes a file beneath `/work`.
    fn delete_file(
        &self,
        id: &SessionId,
        path: &str,
    ) -> impl Future<Output = Result<(), SessionError>> + Send;
}

/// A checkpoint that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckpointTaken {
    /// The id by which requests refer to it.
    pub checkpoint_id: CheckpointId,
    /// Ids of older checkpoints that were dropped to make room.
    pub dropped: Vec<CheckpointId>,
}

/// A checkpoint of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckpointInfo {
    /// The id by which requests refer to it.
    pub checkpoint_id: CheckpointId,
    /// When it was taken, in milliseconds since 1970.
    pub created_ms: u64,
    /// The memory that only the checkpoint uses, if it could be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// The bytes of a file, as a stream.
pub struct FileContent {
    /// The number of bytes, if known beforehand. In an upload it is only the client's claim.
    pub bytes: Option<u64>,
    /// The bytes. An error means that the stream broke off.
    pub reader: Pin<Box<dyn AsyncRead + Send>>,
}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileContent").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Files of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileList {
    /// The files, sorted by path.
    pub files: Vec<SessionFile>,
    /// Whether there are more.
    pub truncated: bool,
}

/// Why a call to a session was refused. The call changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// No session has this id, or it belongs to another client.
    #[error("there is no session {id}")]
    Unknown {
        /// The id in the request.
        id: SessionId,
    },
    /// The session existed and has ended.
    #[error("session {id} has ended: {why}")]
    Ended {
        /// The id in the request.
        id: SessionId,
        /// The reason, for people: `idle for 15 min`, `the host was restarted`, …
        why: String,
    },
    /// The session has no checkpoint of this id, or no longer has it.
    #[error("there is no checkpoint {id}")]
    UnknownCheckpoint {
        /// The id in the request.
        id: CheckpointId,
    },
    /// There is no such file.
    #[error("there is no file {path}")]
    UnknownFile {
        /// The path in the request.
        path: String,
    },
    /// The state of the session prevents the call: code left a thread or an open file.
    #[error("{why}")]
    Busy {
        /// The thread, file or call that prevents it.
        why: String,
        /// The remedy, if there is one.
        hint: Option<String>,
    },
    /// The operator does not allow it, or this machine cannot do it.
    #[error("{why}")]
    Refused {
        /// The rule or ability that is missing, for people.
        why: String,
        /// The remedy, if there is one.
        hint: Option<String>,
    },
    /// The session or the host has as many as it may have.
    #[error("the maximum of {most} {what} is reached")]
    TooMany {
        /// The plural of the thing: `sessions`, `checkpoints`, …
        what: &'static str,
        /// The maximum number of them.
        most: u64,
    },
    /// No file can have this path.
    #[error("not a path of a file in the session: {why}")]
    BadPath {
        /// The part of the path that is not allowed, for people.
        why: String,
    },
    /// The request or the file is larger than allowed.
    #[error("{what} is larger than its maximum of {most_bytes} bytes")]
    TooLarge {
        /// The thing that is too large, as the subject of the message.
        what: String,
        /// The maximum size, in bytes.
        most_bytes: u64,
    },
    /// The host could not do it. The operator's log says more.
    #[error("{message}")]
    Failed {
        /// The failure in a sentence, without host paths.
        message: String,
    },
}

impl SessionError {
    /// The stable name of the kind.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "session.unknown",
            Self::Ended { .. } => "session.ended",
            Self::UnknownCheckpoint { .. } => "checkpoint.unknown",
            Self::UnknownFile { .. } => "file.unknown",
            Self::Busy { .. } => "session.busy",
            Self::Refused { .. } => "session.refused",
            Self::TooMany { .. } => "session.too_many",
            Self::BadPath { .. } => "file.path",
            Self::TooLarge { .. } => "file.too_large",
            Self::Failed { .. } => "session.failed",
        }
    }

    /// The remedy, if there is one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unknown { .. } => Some("GET /v1/sessions lists the live ones"),
            Self::Ended { .. } => Some("make a new one"),
            Self::UnknownCheckpoint { .. } => {
                Some("if a session has too many checkpoints, Belljar drops the oldest")
            }
            Self::Busy { hint, .. } | Self::Refused { hint, .. } => hint.as_deref(),
            Self::TooMany { .. } => Some("delete a session or checkpoint that you no longer need"),
            Self::BadPath { .. } => Some("paths are relative to /work, without `..`"),
            Self::UnknownFile { .. } | Self::TooLarge { .. } | Self::Failed { .. } => None,
        }
    }
}
