//! Sessions, as a client asks for them and as a host lists them, and their files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CheckpointId, EngineName, GrantsRequest, Language, LimitsRequest, SessionId, WorkspaceRequest,
    object_or_default, optional_object, optional_whole_number,
};

/// A session as a client asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionRequest {
    /// The language of its code; that of its engine, or TypeScript, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The engine of all its runs; the usual one for its language if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// The access that its runs need.
    #[serde(deserialize_with = "object_or_default", skip_serializing_if = "is_default")]
    #[schemars(with = "Option<GrantsRequest>")]
    pub grants: GrantsRequest,
    /// The limits of the session; a run in it may ask for less.
    #[serde(deserialize_with = "object_or_default", skip_serializing_if = "is_default")]
    #[schemars(with = "Option<LimitsRequest>")]
    pub limits: LimitsRequest,
    /// The directory it works on, copy-on-write, at `/work`; never committed by itself.
    #[serde(deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceRequest>,
    /// The session ends after so many seconds without a call; 15 minutes if absent.
    #[serde(deserialize_with = "optional_whole_number", skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
    /// The session ends after so many seconds, used or not; the host's default if absent.
    #[serde(deserialize_with = "optional_whole_number", skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

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
