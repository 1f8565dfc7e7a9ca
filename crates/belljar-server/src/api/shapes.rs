//! What answers hold. The canonical result comes from the backend as it is; its shape is written
//! down here for `/openapi.json`, and tests hold the server to it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::body::ApprovalDecision;
use crate::{
    backend::ApprovalRequest,
    records::{EventInfo, RunInfo},
    sessions::{CheckpointInfo, SessionInfo},
};

/// The server is there.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok`, or `unhealthy` (with status 503): nothing can be kept.
    pub(super) status: &'static str,
    /// Belljar's version.
    pub(super) version: &'static str,
    /// What is the matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trouble: Option<String>,
}

/// Runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunList {
    pub(super) runs: Vec<RunInfo>,
}

/// Sessions, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionList {
    pub(super) sessions: Vec<SessionInfo>,
}

/// Checkpoints, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckpointList {
    pub(super) checkpoints: Vec<CheckpointInfo>,
}

/// A session that is as it was.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolledBack {
    pub(super) session_id: String,
    pub(super) checkpoint_id: String,
}

/// Sessions that were made of one.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Forked")]
pub(super) struct ForkedSessions {
    pub(super) session_ids: Vec<String>,
}

/// Calls that wait for a person, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ApprovalList {
    pub(super) approvals: Vec<ApprovalRequest>,
}

/// A decision that counts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Decided")]
pub(super) struct RecordedDecision {
    pub(super) id: String,
    pub(super) decision: ApprovalDecision,
}

/// What happened, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EventList {
    pub(super) events: Vec<EventInfo>,
}

/// How a run went. While it goes on: its id, its status, and what it waits for.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "read by the generator of the schema")]
pub(super) struct RunResult {
    /// Its id.
    id: String,
    /// How it stands.
    status: RunStatus,
    /// Whether it ended with a value.
    success: bool,
    /// The value.
    result: Option<Value>,
    /// What was printed to standard output, up to the cap.
    stdout: Option<String>,
    /// What was printed to standard error, up to the cap.
    stderr: Option<String>,
    /// One entry per print, log or denied attempt, in order.
    logs: Option<Vec<String>>,
    /// 0 on success.
    exit_code: Option<i32>,
    /// What went wrong.
    error: Option<RunError>,
    /// Times and sizes, as the host measured them.
    metrics: Option<BTreeMap<String, f64>>,
    /// What held the code.
    isolation: Option<BTreeMap<String, Value>>,
    /// What was cut to its cap.
    truncated: Option<BTreeMap<String, bool>>,
    /// Files that came back.
    artifacts: Option<Vec<BTreeMap<String, Value>>>,
    /// Changes to the workspace.
    changes: Option<Vec<BTreeMap<String, Value>>>,
    /// Tools found and offered.
    tools: Option<BTreeMap<String, Vec<String>>>,
    /// Whether the answer came from a cache.
    cached: Option<bool>,
    /// The session it ran in.
    session_id: Option<String>,
    /// State handed on.
    state: Option<BTreeMap<String, Value>>,
    /// Whether a number in the value was not finite and became null.
    lossy: Option<bool>,
    /// What it waits for, while it does.
    approvals: Option<Vec<ApprovalRequest>>,
    /// What to do next, where that needs saying.
    message: Option<String>,
}

/// How a run stands.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "read by the generator of the schema")]
enum RunStatus {
    Running,
    Completed,
    Failed,
    Aborted,
    /// Its host stopped or died; it goes on by itself.
    Interrupted,
    ApprovalRequired,
    InDoubt,
}

/// What went wrong with a run.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by the generator of the schema")]
struct RunError {
    /// What an agent branches on.
    r#type: String,
    /// The stable, finer name.
    code: String,
    /// What happened.
    message: String,
    /// Frames of the code as it was written.
    stack: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    /// The tool that failed.
    tool_name: Option<String>,
    /// What to do about it.
    hint: Option<String>,
}
