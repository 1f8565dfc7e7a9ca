//! Sessions and their files, as a host lists them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CheckpointId, Language, SessionId};

/// A session that lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// The id by which requests refer to it.
    pub session_id: SessionId,
    /// The language of its code.
    pub language: Language,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time of the last call, in milliseconds since 1970.
    pub last_used_ms: u64,
    /// The time at which it ends unless a call comes before, in milliseconds since 1970.
    pub expires_ms: u64,
    /// The session it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// The ids of its checkpoints, oldest first.
    pub checkpoints: Vec<CheckpointId>,
    /// The number of runs so far.
    pub runs: u64,
    /// Whether it runs code now.
    pub busy: bool,
    /// The memory of the session and its checkpoints, if it could be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// A file of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FileInfo")]
pub struct SessionFile {
    /// The path relative to `/work`.
    pub path: String,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The kind of file at the path.
    pub kind: SessionFileKind,
}

/// The kind of file at a path. A list of changes also has [`EntryKind::Other`](crate::EntryKind); sessions
/// do not list sockets, pipes and devices, because no request can read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "FileKind")]
pub enum SessionFileKind {
    /// A regular file with content.
    File,
    /// A directory, which may be empty.
    Directory,
    /// A symbolic link, which no request follows.
    Link,
}
