//! The canonical result as a tool's answer: structured content, the same JSON as text, and its files.
//!
//! Empty fields are left out (E5): a model pays for every empty list. Values and output over the budget were
//! replaced by the backend. No content of a file is in the JSON: a picture is a block of its own, and any
//! other file is named by a link. The text repeats the structured content, as both revisions of the
//! protocol ask for, because some clients pass only the one to their model and some only the other
//! (decision 22).

#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use waiting::{tool_waiting, waiting};

use belljar_contract::{
    Change, ErrorCode, ErrorKind, JsonValue, Metrics, RunError, RunId, RunResult, RunStatus,
    SessionId, ToolReport, Truncation, UnreturnedFile,
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    backend::{RunReport, RunState, ToolsFound},
    clients::StructuredUse,
    exact_json,
    request::RequestError,
    resources::{FileNote, RunFiles},
    sessions::SessionError,
};

/// Above this, the text only says where the answer is.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// The most changes of a workspace that an answer lists.
const MAX_CHANGES: usize = 20;

/// The parts of a result that a model gets.
#[derive(Debug, Serialize)]
struct RunAnswer<'a> {
    status: RunStatus,
    #[serde(skip_serializing_if = "str::is_empty")]
    run_id: &'a str,
    result: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    /// One text: a list of lines would cost a model a pair of quotes and a comma for each.
    #[serde(skip_serializing_if = "String::is_empty")]
    logs: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    stdout: &'a str,
    /// The code's own value is passed on, even if it is false or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: &'a Option<SessionId>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    artifacts: &'a [FileNote],
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts_note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_returned: Option<NotReturned<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changes: &'a [Change],
    #[serde(skip_serializing_if = "is_zero")]
    more_changes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a ToolReport>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cached: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lossy: bool,
    metrics: &'a Metrics,
}

/// Files that ended with the run, and how to get them the next time.
#[derive(Debug, Serialize)]
struct NotReturned<'a> {
    files: &'a [UnreturnedFile],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    hint: &'static str,
}

impl<'a> RunAnswer<'a> {
    fn of(result: &'a RunResult, files: &'a RunFiles) -> Self {
        let RunResult { changes, unreturned, tools, truncated, .. } = result;
        let logs = result.logs.join("\n");
        let shown = changes.get(..MAX_CHANGES).unwrap_or(changes);
        Self {
            status: result.status,
            run_id: &result.id,
            result: &result.result,
            error: result.error.as_ref().map(error_value),
            stdout: if logs.is_empty() { &result.stdout } else { "" },
            logs,
            state: Some(&*result.state).filter(|state| state.get() != "{}"),
            session_id: &result.session_id,
            artifacts: &files.notes,
            artifacts_note: files.note(),
            not_returned: (!unreturned.files.is_empty() || unreturned.more).then_some(
                NotReturned {
                    files: &unreturned.files,
                    more: unreturned.more,
                    hint: "write files to /work/out to get them back",
                },
            ),
            changes: shown,
            more_changes: changes.len() - shown.len(),
            truncated: (*truncated != Truncation::default()).then(|| only_true(truncated)),
            tools: Some(tools).filter(|tools| **tools != ToolReport::default()),
            cached: result.cached,
            lossy: result.lossy,
            metrics: &result.metrics,
        }
    }
}

/// The answer for a run that has ended, or for how it stands.
pub(crate) fn run(report: &RunReport, client: StructuredUse) -> CallToolResult {
    if let Some(first) = report.waiting.first() {
        return waiting(&first.run_id, &report.waiting);
    }
    let failed = match report.status() {
        RunStatus::Failed | RunStatus::Aborted | RunStatus::Interrupted => true,
        RunStatus::Completed => report.result().is_some_and(|result| !result.success),
        RunStatus::Running | RunStatus::ApprovalRequired | RunStatus::InDoubt => false,
    };
    let result = match &report.run {
        RunState::Ended(result) => result,
        RunState::Unfinished(run) => {
            let mut shown = json!({ "status": run.status, "run_id": run.id });
            if let (Some(message), Some(shown)) = (&run.message, shown.as_object_mut()) {
                shown.insert("message".to_owned(), json!(message));
            }
            return structured(shown, failed);
        }
    };
    let files = RunFiles::of(&result.artifacts);
    let answer = RunAnswer::of(result, &files);
    let text = serde_json::to_string(&answer).unwrap_or_default();
    let mut shown = with_text(text, failed, || {
        format!("{{\"status\":{},\"run_id\":{}", json!(answer.status), json!(answer.run_id))
    });
    if client == StructuredUse::Instead && !files.pictures.is_empty() {
        shown.structured_content = None;
    }
    shown.content.extend(files.pictures);
    shown.content.extend(files.links);
    shown
}

/// JSON as the text of an answer and as its structured content, both as it is written.
fn with_text(json: String, failed: bool, beginning: impl FnOnce() -> String) -> CallToolResult {
    let structured = exact_json::value(&json);
    let text = if json.len() <= MAX_TEXT_BYTES {
        json
    } else {
        format!("{},\"message\":\"{} bytes, in structuredContent only\"}}", beginning(), json.len())
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    result.is_error = Some(failed);
    result
}

fn error_value(error: &RunError) -> Value {
    without_nulls(&json!(error))
}

/// The flags of a report that are set.
fn only_true(flags: &Truncation) -> Value {
    let mut flags = json!(flags);
    if let Some(flags) = flags.as_object_mut() {
        flags.retain(|_, flag| *flag == true);
    }
    flags
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
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
        "hint": crate::call::sandbox::hint(error),
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

/// The manual, for a search without an intent.
pub(crate) fn manual() -> CallToolResult {
    let manual = crate::tools::manual();
    let mut shown = CallToolResult::success(vec![ContentBlock::text(manual)]);
    shown.structured_content = Some(json!({ "tools": [], "manual": manual }));
    shown
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

/// A value whose parts stay exact as structured content, and as text.
pub(crate) fn structured_tree(value: &JsonValue, failed: bool) -> CallToolResult {
    with_text(value.to_string(), failed, || {
        let (status, id) = (&value["status"], &value["workflow_id"]);
        format!("{{\"status\":{status},\"workflow_id\":{id}")
    })
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
