//! Reads workflows and commands that clients send.

use belljar_contract::{JsonMap, JsonValue, exact_json, json_value};
use belljar_server::{WorkflowApiError, WorkflowSource};
use belljar_workflow::{Dag, Task, WorkflowCommand};
use belljar_workflow_formats::{self as formats, CodeExecution, FormatOptions};

/// The file name in faults of a workflow that came without a file.
const NAME: &str = "workflow";

/// Reads a workflow, with its warnings. Code is accepted only if the operator allows it.
pub(super) fn workflow(
    written: WorkflowSource,
    code: CodeExecution,
) -> Result<(Dag, Vec<String>), WorkflowApiError> {
    let (text, is_json) = match written {
        WorkflowSource::Json(given) => (given.to_string(), true),
        WorkflowSource::Text(text) => {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            (text, is_json)
        }
    };
    let read = formats::read(NAME, &text, &FormatOptions { code }).map_err(|faults| {
        let worded = |fault: &formats::FileFault| in_words(fault, is_json);
        WorkflowApiError::Faulty { faults: faults.iter().map(worded).collect() }
    })?;
    let warnings = read.warnings.iter().map(|warning| in_words(&warning.0, is_json)).collect();
    Ok((read.dag, warnings))
}

/// A fault of a workflow sent as JSON is shown without a line: the client never saw the lines.
fn in_words(fault: &formats::FileFault, is_json: bool) -> String {
    if !is_json {
        return fault.to_string();
    }
    let node = fault.node.as_ref().map(|node| format!("`{node}`: ")).unwrap_or_default();
    let help = fault.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    format!("{node}{}{help}", fault.message)
}

/// Reads a command; unknown fields are refused.
pub(super) fn command(mut given: JsonMap) -> Result<WorkflowCommand, WorkflowApiError> {
    let bad = |why: String| WorkflowApiError::BadCommand { why };
    let name = given.get("command").and_then(JsonValue::as_str).unwrap_or_default().to_owned();
    let takes_tasks = matches!(name.as_str(), "inject_tasks" | "replan");
    if let (true, Some(JsonValue::Array(tasks))) = (takes_tasks, given.get("tasks")) {
        let tasks = read_tasks(tasks)?;
        let tasks = json_value::to_value(&tasks).map_err(|error| bad(error.to_string()))?;
        given.insert("tasks".to_owned(), tasks);
    }
    let names: Vec<String> = given.keys().cloned().collect();
    let command: WorkflowCommand = json_value::from_value(JsonValue::Object(given))
        .map_err(|error| bad(format!("{name}: {error}")))?;
    let taken = json_value::to_value(&command).map_err(|error| bad(error.to_string()))?;
    match names.iter().find(|field| taken.get(field.as_str()).is_none()) {
        Some(field) => Err(bad(format!("{name} has no field `{field}`"))),
        None => Ok(command),
    }
}

/// Reads tasks in the format of workflow files. They may depend on tasks of the running workflow.
fn read_tasks(given: &[JsonValue]) -> Result<Vec<Task>, WorkflowApiError> {
    let text = exact_json!({"tasks": given}).to_string();
    // The workflow's own permissions decide whether code may run.
    let options = FormatOptions { code: CodeExecution::WithShell };
    formats::read_tasks(NAME, &text, &options).map_err(|faults| {
        let worded = |fault: &formats::FileFault| in_words(fault, true);
        WorkflowApiError::Faulty { faults: faults.iter().map(worded).collect() }
    })
}

#[cfg(test)]
mod tests;
