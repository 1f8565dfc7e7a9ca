//! Converts the result of a run into the result of the task that started it.

use belljar_contract::{
    Audience, ErrorKind, Grant, JsonMap, JsonValue, RunError, RunResult, RunStatus, exact_json,
    json_value,
};
use belljar_tools::ToolValue;
use belljar_workflow::{ResultShape, TaskFailure, TaskOutcome};
use serde_json::value::RawValue;

use super::{performer::cancelled, tools::Watch};

/// Log lines stored with the workflow, and characters of each.
const LINES: usize = 100;
const LETTERS: usize = 2000;
/// The log of a task whose result is marked lossy.
const LOSSY: &str = "[lossy] JSON cannot hold the value as the code returned it: a number became null, half a \
                     character was replaced, or keys with the same text became one";

/// Whether it is unknown if a call of the run happened. The run stopped for that, or its code got this
/// error after an earlier host had ended in the middle of the call.
pub(super) fn is_in_doubt(result: &RunResult) -> bool {
    let code = result.error.as_ref().map(|error| error.code);
    result.status == RunStatus::InDoubt || code == Some(belljar_contract::ErrorCode::ToolInDoubt)
}

/// Whether the run ended with its host while it had connections, so that its effects are unknown.
pub(super) fn had_connections(result: &RunResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.code == belljar_contract::ErrorCode::RunInDoubt)
}

/// Moves the error one line up, to where its author wrote it: the code ran with a line in front.
pub(super) fn move_error_up(mut result: RunResult) -> RunResult {
    if let Some(error) = &mut result.error {
        error.line = error.line.map(|line| line.saturating_sub(1).max(1));
        error.stack = None;
    }
    result
}

/// The entries that the code put into `state`.
pub(super) fn state(result: &RunResult) -> JsonMap {
    json_value::from_str(result.state.get()).unwrap_or_default()
}

/// The task's outcome. `was_begun`: an earlier host may have made calls already.
pub(super) fn outcome(
    result: RunResult,
    shape: ResultShape,
    watch: &Watch,
    was_begun: bool,
) -> TaskOutcome {
    // A replay does not show the calls that were made before.
    let has_acted = watch.has_acted() || (was_begun && result.metrics.tool_calls > 0);
    let logs = result.logs.iter().take(LINES);
    let mut logs: Vec<String> = logs.map(|line| line.chars().take(LETTERS).collect()).collect();
    if result.lossy {
        logs.push(LOSSY.to_owned());
    }
    let read_only = !has_acted;
    // A node's `state` is the workflow's own, and the node's output contains the changes.
    let state = match shape {
        ResultShape::Value | ResultShape::Report => state(&result),
        ResultShape::Node => JsonMap::new(),
    };
    match result.status {
        RunStatus::Running
        | RunStatus::Aborted
        | RunStatus::Interrupted
        | RunStatus::InDoubt
        | RunStatus::ApprovalRequired => TaskOutcome { logs, ..cancelled(has_acted) },
        RunStatus::Completed | RunStatus::Failed
            if shape == ResultShape::Report && !is_sandbox_failure(&result) =>
        {
            TaskOutcome { logs, read_only, state, ..TaskOutcome::done(report(&result)) }
        }
        RunStatus::Completed => {
            TaskOutcome { logs, read_only, state, ..TaskOutcome::done(parsed(&result.result)) }
        }
        RunStatus::Failed => {
            let error = result.error.as_ref();
            let code = error.map_or("run.failed", |error| error.code.as_str());
            let failure = TaskFailure {
                details: Some(error.map_or_else(|| exact_json!({}), details)),
                may_have_acted: has_acted,
                ..TaskFailure::new(code, message(error))
            };
            TaskOutcome { logs, read_only, ..TaskOutcome::failed(failure) }
        }
    }
}

/// The result in the shape of an agent's `code.execute`.
pub(super) fn report(result: &RunResult) -> JsonValue {
    let error = result.error.as_ref();
    exact_json!({
        "success": result.success,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "return_value": parsed(&result.result),
        "error": error.map(|error| message(Some(error))),
        "error_type": error.map(|error| error.kind),
        "error_code": error.map(|error| error.code),
        "truncated": {
            "stdout": result.truncated.stdout,
            "stderr": result.truncated.stderr,
            "return_value": result.truncated.result,
        },
        "execution_time_ms": result.metrics.execution_ms,
    })
}

/// The same shape for code that did not run, with an error code of the workflow.
pub(super) fn failed_report(code: &str, message: &str) -> JsonValue {
    let mut report = report(&RunResult::default());
    if let Some(fields) = report.as_object_mut() {
        fields.insert("error".to_owned(), message.into());
        fields.insert("error_type".to_owned(), exact_json!(ErrorKind::SandboxError));
        fields.insert("error_code".to_owned(), code.into());
    }
    report
}

/// Whether the sandbox failed, and not the code.
fn is_sandbox_failure(result: &RunResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.kind == ErrorKind::SandboxError)
}

/// The value that a tool gave.
pub(super) fn tool_value(value: ToolValue) -> JsonValue {
    let json = value.into_json();
    std::str::from_utf8(&json)
        .ok()
        .and_then(|json| json_value::parse(json).ok())
        .unwrap_or_default()
}

/// The value of a result.
pub(super) fn parsed(json: &RawValue) -> JsonValue {
    json_value::parse(json.get()).unwrap_or_default()
}

fn message(error: Option<&RunError>) -> String {
    let mut text = error.map_or("the code failed", |error| &error.message).to_owned();
    let missing = error.and_then(|error| error.missing.as_deref());
    if let Some(missing) = missing.filter(|missing| missing.kind == Grant::Modules) {
        text.push_str(&format!("; grant it with {}", missing.phrase(Audience::WorkflowFile)));
    }
    match error.and_then(|error| error.line) {
        Some(line) => format!("line {line}: {text}"),
        None => text,
    }
}

fn details(error: &RunError) -> JsonValue {
    let hint = error.hint_for(Audience::WorkflowFile);
    let all = [
        ("type", exact_json!(error.kind)),
        ("line", exact_json!(error.line)),
        ("column", exact_json!(error.column)),
        ("stack", exact_json!(error.stack)),
        ("toolName", exact_json!(error.tool_name)),
        ("hint", exact_json!(hint)),
    ];
    let stated = all.into_iter().filter(|(_, value)| !value.is_null());
    JsonValue::Object(stated.map(|(name, value)| (name.to_owned(), value)).collect())
}
