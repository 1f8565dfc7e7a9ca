//! The contract between Belljar and its callers: requests, limits, grants, results, errors, ids,
//! and their JSON.
//!
//! A leaf crate of plain data. Every other crate speaks these types, so a limit, a grant, a status
//! or an error code is declared once, here. It decides nothing and enforces nothing: the crate that
//! owns a mechanism enforces its limits and grants.

mod approval;
mod engine;
mod error;
mod grants;
pub mod hex;
mod ids;
mod json_text;
pub mod json_value;
mod language;
mod limits;
mod missing;
mod number;
mod object;
pub mod quantity;
mod record;
mod request;
mod result;
mod session;
mod spelling;
mod status;
pub mod tokens;

pub use approval::{
    ApprovalKind, ApprovalQuestion, ConsentRule, ConsentScope, Verdict, decision_command,
    shell_word,
};
pub use engine::{EngineMismatch, EngineName, EngineRow, UnknownEngine};
pub use error::{ErrorCode, ErrorKind, RunError, head_and_tail, shortened};
pub use grants::{
    Access, ClientGrants, CommitExecutable, EngineAbility, Grant, GrantAsk, GrantFlag, GrantKey,
    GrantKind, GrantRefusal, GrantRule, GrantTable, GrantValue, Grants, GrantsRequest,
    IgnoredGrant, NameRule, TaskGrants, VariablesRequest, Workspace, WorkspaceRequest, contained,
    resolved_path,
};
pub use ids::{ApprovalId, CheckpointId, MAX_WORKFLOW_ID, RunId, SessionId, is_workflow_id};
pub use json_text::{JsonText, JsonTextError};
pub use json_value::{JsonMap, JsonNumber, JsonPlace, JsonValue};
pub use language::Language;
pub use limits::{InSession, JsonUnit, Limit, LimitExcess, Limits, LimitsRequest, Quantity};
pub use missing::{Audience, MissingGrant, operator_phrase};
pub use number::{MAX_JSON_INTEGER, optional_whole_number, whole_number};
pub use object::{StrictObject, object_or_default, optional_object};
pub use record::{RecordKind, RecordedWork, StoreSizes};
pub use request::{ExecuteRequest, RunRequest};
pub use result::{
    Artifact, Change, ChangeKind, EntryKind, Isolation, MemoryBound, Metrics, RunResult, Stream,
    Tier, ToolReport, Truncation, UnreturnedFile, UnreturnedFiles,
};
pub use session::{SessionFile, SessionFileKind, SessionInfo, SessionRequest};
pub use spelling::{camel_case, is_spelled_alike};
pub use status::{RunStatus, TaskStatus, WorkflowStatus};

#[cfg(test)]
mod tests;
