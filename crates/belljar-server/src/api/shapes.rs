//! The bodies of answers. The canonical result comes from the backend as it is; its shape is
//! written down here for `/openapi.json`, and tests hold the server to it.

use belljar_contract::{ApprovalId, CheckpointId, RunResult, SessionId, SessionInfo};
use schemars::JsonSchema;
use serde::Serialize;

use super::body::ApprovalDecision;
use crate::{
    backend::ApprovalRequest,
    records::{EventInfo, RunInfo},
    sessions::CheckpointInfo,
};

/// The server runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok`, or `unhealthy` (with status 503): nothing can be kept.
    pub(super) status: &'static str,
    /// The version of the running Belljar.
    pub(super) version: &'static str,
    /// The problem, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trouble: Option<String>,
}

/// The stored runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunList {
    pub(super) runs: Vec<RunInfo>,
}

/// The live sessions, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionList {
    pub(super) sessions: Vec<SessionInfo>,
}

/// The checkpoints of one session, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckpointList {
    pub(super) checkpoints: Vec<CheckpointInfo>,
}

/// A session that is as it was.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolledBack {
    pub(super) session_id: SessionId,
    pub(super) checkpoint_id: CheckpointId,
}

/// Sessions that were made of one.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Forked")]
pub(super) struct ForkedSessions {
    pub(super) session_ids: Vec<SessionId>,
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
    pub(super) id: ApprovalId,
    pub(super) decision: ApprovalDecision,
    /// The rule that was approved with the call, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<String>,
    /// Other calls that waited, and that the rule has answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) also: Vec<ApprovalId>,
}

/// The events, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EventList {
    pub(super) events: Vec<EventInfo>,
}

/// The result of a run. Before it has one: its id, its status, and the calls that wait for a
/// person.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "RunResult")]
#[expect(dead_code, reason = "read by the generator of the schema")]
pub(super) struct RunReply {
    #[serde(flatten)]
    result: RunResult,
    /// The calls that wait for a person.
    approvals: Option<Vec<ApprovalRequest>>,
    /// The next step for the client, if there is one.
    message: Option<String>,
}
