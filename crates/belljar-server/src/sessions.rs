//! The port to sessions: sandboxes that live on between runs, their checkpoints, branches and files.
//!
//! The HTTP API and the MCP server ask, the `belljar` crate answers. Ids and paths arrive as a
//! client wrote them: nothing of them has been checked but that paths are text of a sane length.

use std::{fmt, future::Future, pin::Pin};

use belljar_contract::{
    ExecuteRequest, GrantsRequest, Language, LimitsRequest, WorkspaceRequest, object_or_default,
    optional_object, optional_whole_number,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncRead;

use crate::backend::{RunReport, RunReporter};

/// Keeps sessions. Calls about one session are answered in the order in which they come.
pub trait Sessions: Send + Sync + 'static {
    /// Makes a session.
    fn create_session(
        &self,
        request: SessionRequest,
    ) -> impl Future<Output = Result<SessionInfo, SessionError>> + Send;

    /// The sessions that live, newest first.
    fn sessions(&self) -> impl Future<Output = Result<Vec<SessionInfo>, SessionError>> + Send;

    /// One session. One that has ended is [`SessionError::Ended`] for as long as that is known.
    fn session(&self, id: &str) -> impl Future<Output = Result<SessionInfo, SessionError>> + Send;

    /// Ends a session; its resources are gone when this returns.
    fn destroy_session(&self, id: &str) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// Runs code in a session, after what was asked of it before. What goes wrong with the code is
    /// in the report; an error means that nothing was run. `request.session_id` is not looked at.
    ///
    /// Dropping the future ends the run. Whether the session survives that is the backend's to say,
    /// with [`SessionError::Ended`] from the next call on if it does not.
    fn run_in_session(
        &self,
        id: &str,
        request: ExecuteRequest,
        observer: RunReporter,
    ) -> impl Future<Output = Result<RunReport, SessionError>> + Send;

    /// Keeps the session as it is now, to go back to.
    fn checkpoint(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<CheckpointTaken, SessionError>> + Send;

    /// What a session can go back to, oldest first.
    fn checkpoints(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<Vec<CheckpointInfo>, SessionError>> + Send;

    /// Goes back to a checkpoint, which can be gone back to again.
    fn rollback(
        &self,
        id: &str,
        checkpoint_id: &str,
    ) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// Makes `count` sessions of one, as it is now or at a checkpoint: all or none. Their ids.
    fn fork(
        &self,
        id: &str,
        count: u32,
        checkpoint_id: Option<&str>,
    ) -> impl Future<Output = Result<Vec<String>, SessionError>> + Send;

    /// Writes a file beneath `/work`, with the directories it is in, and replaces what was there.
    /// Half a file is never seen: an upload that breaks off changes nothing.
    fn put_file(
        &self,
        id: &str,
        path: &str,
        content: FileContent,
    ) -> impl Future<Output = Result<FileInfo, SessionError>> + Send;

    /// Reads a file beneath `/work`.
    fn get_file(
        &self,
        id: &str,
        path: &str,
    ) -> impl Future<Output = Result<FileContent, SessionError>> + Send;

    /// The files beneath `/work`, by path; `at_most` of them.
    fn list_files(
        &self,
        id: &str,
        at_most: u32,
    ) -> impl Future<Output = Result<FileList, SessionError>> + Send;

    /// Removes a file beneath `/work`.
    fn delete_file(
        &self,
        id: &str,
        path: &str,
    ) -> impl Future<Output = Result<(), SessionError>> + Send;
}

/// A session as a client asks for it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionRequest {
    /// What its code is written in; TypeScript if absent.
    pub language: Option<Language>,
    /// What its runs may reach.
    #[serde(deserialize_with = "object_or_default")]
    #[schemars(with = "Option<GrantsRequest>")]
    pub grants: GrantsRequest,
    /// What the session may use; a run in it may ask for less.
    #[serde(deserialize_with = "object_or_default")]
    #[schemars(with = "Option<LimitsRequest>")]
    pub limits: LimitsRequest,
    /// The directory it works on, copy-on-write, at `/work`; never committed by itself.
    #[serde(deserialize_with = "optional_object")]
    pub workspace: Option<WorkspaceRequest>,
    /// It ends when nothing was asked of it for so long; 15 minutes if absent.
    #[serde(deserialize_with = "optional_whole_number")]
    pub idle_seconds: Option<u64>,
    /// It ends after so long, used or not; the host's default if absent.
    #[serde(deserialize_with = "optional_whole_number")]
    pub lifetime_seconds: Option<u64>,
}

/// A session that lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionInfo {
    /// What requests name it by.
    pub session_id: String,
    /// What its code is written in.
    pub language: Language,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When something was last asked of it.
    pub last_used_ms: u64,
    /// When it ends unless something is asked of it before.
    pub expires_ms: u64,
    /// The session it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// What it can go back to, oldest first.
    pub checkpoints: Vec<String>,
    /// Runs so far.
    pub runs: u64,
    /// Whether it is at one now.
    pub busy: bool,
    /// What it holds in memory, its checkpoints included, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// A checkpoint that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckpointTaken {
    /// What requests name it by.
    pub checkpoint_id: String,
    /// Older ones that had to go for it.
    pub dropped: Vec<String>,
}

/// A checkpoint there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckpointInfo {
    /// What requests name it by.
    pub checkpoint_id: String,
    /// When it was taken, in milliseconds since 1970.
    pub created_ms: u64,
    /// What it holds in memory of its own, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// A file's bytes, as they come.
pub struct FileContent {
    /// How many there are, where that is known beforehand. A claim, where a client says so.
    pub bytes: Option<u64>,
    /// The bytes. An error means that they broke off.
    pub reader: Pin<Box<dyn AsyncRead + Send>>,
}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileContent").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// A file of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileInfo {
    /// Relative to `/work`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What it is.
    pub kind: FileKind,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which no request follows.
    Link,
}

/// Files of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileList {
    /// By path.
    pub files: Vec<FileInfo>,
    /// Whether there are more.
    pub truncated: bool,
}

/// Why something was not done for a session. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There is none, or it is not this client's.
    #[error("no session is called {id}")]
    Unknown {
        /// What was asked for.
        id: String,
    },
    /// There was one.
    #[error("session {id} has ended: {why}")]
    Ended {
        /// Which.
        id: String,
        /// Why, for people: `idle for 15 min`, `the host was restarted`, …
        why: String,
    },
    /// The session has no such checkpoint (any more).
    #[error("no checkpoint is called {id}")]
    UnknownCheckpoint {
        /// What was asked for.
        id: String,
    },
    /// There is no such file.
    #[error("there is no file {path}")]
    UnknownFile {
        /// What was asked for.
        path: String,
    },
    /// It cannot be done while the session is as it is: code left a thread, or a file open.
    #[error("{why}")]
    Busy {
        /// What stands in the way.
        why: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// It is beyond what the operator allows, or what this machine can do.
    #[error("{why}")]
    Refused {
        /// Why.
        why: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// There are too many already.
    #[error("there are {most} {what} already, which is the most there may be")]
    TooMany {
        /// `sessions`, `checkpoints`, …
        what: &'static str,
        /// How many there may be.
        most: u64,
    },
    /// No file can have this path.
    #[error("not a path of a file in the session: {why}")]
    BadPath {
        /// Why.
        why: String,
    },
    /// It does not fit.
    #[error("{what} is larger than the {most_bytes} bytes it may have")]
    TooLarge {
        /// What.
        what: String,
        /// How large it may be.
        most_bytes: u64,
    },
    /// The host could not do it. The operator's log says more.
    #[error("{message}")]
    Failed {
        /// What happened.
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

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unknown { .. } => Some("GET /v1/sessions lists those there are"),
            Self::Ended { .. } => Some("make a new one"),
            Self::UnknownCheckpoint { .. } => Some("the oldest are dropped when there are many"),
            Self::Busy { hint, .. } | Self::Refused { hint, .. } => hint.as_deref(),
            Self::TooMany { .. } => Some("end what is no longer needed"),
            Self::BadPath { .. } => Some("paths are relative to /work, without `..`"),
            Self::UnknownFile { .. } | Self::TooLarge { .. } | Self::Failed { .. } => None,
        }
    }
}
