//! The canonical result as a tool's answer: structured content, and the same JSON as text.
//!
//! Empty fields are left out (E5): a model pays for every empty list. Values over the budget were
//! replaced by the backend; a text that is still huge is left to structured content.

#[cfg(test)]
mod tests;

use belljar_contract::{
    ApprovalKind, Artifact, Change, ErrorCode, ErrorKind, RunError, RunId, RunResult, RunStatus,
    SessionId, ToolReport, Truncation, decision_command,
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    backend::{ApprovalRequest, RunReport, RunState, ToolsFound},
    request::RequestError,
    sessions::SessionError,
};

/// Above this, the text only says where the answer is.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// A value of more parts is not part of an answer: each takes some 80 bytes, however short it is.
const MAX_UNFOLDED_PARTS: usize = 1 << 18;
/// Fields of the canonical result that are passed on when they say something.
#[derive(Debug, Serialize)]
struct OptionalFields<'a> {
    error: &'a Option<RunError>,
    session_id: &'a Option<SessionId>,
    artifacts: &'a [Artifact],
    changes: &'a [Change],
    truncated: &'a Truncation,
    tools: &'a ToolReport,
    cached: bool,
    lossy: bool,
}

impl<'a> OptionalFields<'a> {
    fn of(result: &'a RunResult) -> Self {
        let RunResult { error, session_id, artifacts, changes, truncated, tools, .. } = result;
        let (cached, lossy) = (result.cached, result.lossy);
        Self { error, session_id, artifacts, changes, truncated, tools, cached, lossy }
    }
}

/// The answer for a run that has ended, or for how it stands.
pub(crate) fn run(report: &RunReport) -> CallToolResult {
    if let Some(first) = report.waiting.first() {
        return waiting(&first.run_id, &report.waiting);
    }
    let mut shown = Map::new();
    let mut show = |name: &str, value: Value| drop(shown.insert(name.to_owned(), value));
    show("status", json!(report.status()));
    if !report.id().is_empty() {
        show("run_id", json!(report.id()));
    }
    match &report.run {
        RunState::Ended(result) => {
            show("result", unfolded(&result.result));
            show("logs", json!(result.logs));
            show("metrics", json!(result.metrics));
            if result.logs.is_empty() && !result.stdout.is_empty() {
                show("stdout", json!(result.stdout));
            }
            // The code's own value is passed on, even if it is false or null.
            let state = unfolded(&result.state);
            if state != json!({}) {
                show("state", state);
            }
            if let Value::Object(fields) = json!(OptionalFields::of(result)) {
                for (name, value) in fields.into_iter().filter(|(_, value)| !is_empty(value)) {
                    show(&name, without_nulls(&value));
                }
            }
        }
        RunState::Unfinished(run) => {
            if let Some(message) = &run.message {
                show("message", json!(message));
            }
        }
    }
    let failed = match report.status() {
        RunStatus::Failed | RunStatus::Aborted | RunStatus::Interrupted => true,
        RunStatus::Completed => report.result().is_some_and(|result| !result.success),
        RunStatus::Running | RunStatus::ApprovalRequired | RunStatus::InDoubt => false,
    };
    structured(Value::Object(shown), failed)
}

/// The value of a run as structured content. One that is too large for a model is named instead: it
/// would take many times its size here.
fn unfolded(result: &RawValue) -> Value {
    let text = result.get();
    if parts(text) > MAX_UNFOLDED_PARTS {
        return json!({
            "bytes": text.len(),
            "note": "The value is too large to be shown here: return less, or ask for a smaller output.",
        });
    }
    serde_json::from_str(text).unwrap_or_default()
}

/// How many parts a JSON text has, more or less: what begins a list or an object, or parts its items.
fn parts(text: &str) -> usize {
    let (mut count, mut is_quoted, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' | b'[' | b'{' if !is_quoted => count += 1,
            _ => {}
        }
    }
    count
}

/// A run that waits for a person whom the client cannot ask.
pub(crate) fn waiting(run_id: &RunId, waiting: &[ApprovalRequest]) -> CallToolResult {
    structured(waiting_value(run_id, waiting), false)
}

/// The same for a tool with an output schema of its own, which this would not match.
pub(crate) fn tool_waiting(run_id: &RunId, waiting: &[ApprovalRequest]) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(waiting_value(run_id, waiting).to_string())])
}

fn waiting_value(run_id: &RunId, waiting: &[ApprovalRequest]) -> Value {
    let commands: Vec<_> = waiting.iter().map(command).collect();
    let (status, what) = match waiting.iter().any(|one| one.kind == ApprovalKind::InDoubt) {
        true => (RunStatus::InDoubt, "decide about a call that may have happened"),
        false => (
            RunStatus::ApprovalRequired,
            if waiting.len() > 1 { "allow these calls" } else { "allow this call" },
        ),
    };
    let commands = match waiting {
        [first, _, ..] if waiting.iter().all(|one| one.kind == ApprovalKind::Call) => {
            // One decision for all of them.
            let run = format!("--run {}", first.run_id);
            format!("`{}`", decision_command("approve", &run, first.project.as_deref()))
        }
        _ => commands.join(", "),
    };
    let place = waiting.first().and_then(|one| one.project.as_deref());
    let place = place.map(|project| format!(" (project {project})")).unwrap_or_default();
    let message = format!(
        "A person has to {what}{place}, in a terminal: {commands}. Tell the user, then call get_run."
    );
    let mut value = json!({
        "status": status,
        "run_id": run_id,
        "approval": waiting.first(),
        "message": message,
    });
    if let (Some(object), [_, rest @ ..]) = (value.as_object_mut(), waiting)
        && !rest.is_empty()
    {
        object.insert("more_approvals".to_owned(), json!(rest));
    }
    value
}

/// How a person decides.
fn command(one: &ApprovalRequest) -> String {
    let (id, command) = (&one.id, &one.command);
    match one.kind {
        ApprovalKind::Call => format!("`{command}`"),
        ApprovalKind::InDoubt => format!(
            "`{command}` to make it again, `use {id} --result JSON` if it \
             happened, `deny {id}` to have it fail"
        ),
    }
}

/// A run that has not ended.
pub(crate) fn running(run_id: &RunId) -> CallToolResult {
    let message = "Still running; call get_run for the result.";
    structured(json!({"status": RunStatus::Running, "run_id": run_id, "message": message}), false)
}

/// A call that has not ended, of a tool with an output schema of its own.
pub(crate) fn tool_running(run_id: &RunId) -> CallToolResult {
    let text = format!("Still running as {run_id}; call get_run for the result.");
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// A run that has no report.
pub(crate) fn no_report(run_id: Option<&RunId>, code: ErrorCode, message: &str) -> CallToolResult {
    let is_aborted = code == ErrorCode::RunAborted;
    let status = if is_aborted { RunStatus::Aborted } else { RunStatus::Failed };
    let error = json!({"type": code.kind(), "code": code, "message": message});
    let mut value = json!({"status": status, "error": error});
    if let (Some(run_id), Some(object)) = (run_id, value.as_object_mut()) {
        object.insert("run_id".to_owned(), json!(run_id));
    }
    structured(value, true)
}

/// A session that did not take a run.
pub(crate) fn not_in_session(error: &SessionError) -> CallToolResult {
    let error = json!({
        "type": ErrorKind::SandboxError, "code": error.code(), "message": error.to_string(),
        "hint": error.hint(),
    });
    structured(json!({"status": RunStatus::Failed, "error": without_nulls(&error)}), true)
}

/// Arguments that were not understood.
pub(crate) fn refused(error: &RequestError) -> CallToolResult {
    let code = ErrorCode::RequestInvalid;
    let error = json!({"type": code.kind(), "code": code, "message": error.to_string()});
    structured(json!({"status": RunStatus::Failed, "error": error}), true)
}

/// Tools that were found.
pub(crate) fn matches(found: &ToolsFound) -> CallToolResult {
    structured(json!(found), false)
}

/// A search that failed: there is nothing structured to say.
pub(crate) fn search_failed(message: &str) -> CallToolResult {
    structured(json!({"tools": [], "message": message}), true)
}

/// The answer of an upstream tool, as it came.
pub(crate) fn tool(value: &Value) -> CallToolResult {
    serde_json::from_value(value.clone())
        .unwrap_or_else(|_| CallToolResult::success(vec![ContentBlock::text(value.to_string())]))
}

/// The answer of an upstream tool, looked at through `get_run`.
pub(crate) fn tool_as_run(run_id: &RunId, value: &Value) -> CallToolResult {
    let failed = value.get("isError").is_some_and(|flag| flag == true);
    let status = if failed { RunStatus::Failed } else { RunStatus::Completed };
    structured(json!({"status": status, "run_id": run_id, "result": value}), failed)
}

/// A value as structured content, and as text.
pub(crate) fn structured(value: Value, failed: bool) -> CallToolResult {
    let text = value.to_string();
    let text = if text.len() <= MAX_TEXT_BYTES {
        text
    } else {
        let brief = json!({
            "status": value.get("status"), "run_id": value.get("run_id"),
            "message": format!("{} bytes, in structuredContent only", text.len()),
        });
        brief.to_string()
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(value);
    result.is_error = Some(failed);
    result
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // `truncated: {stdout: false, …}` and `tools: {discovered: [], …}` say nothing either.
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value.clone()
        }
    }
}
