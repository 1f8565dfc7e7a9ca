//! What clients send, made into workflows and commands.

use belljar_server::{WorkflowApiError, WorkflowSource};
use belljar_workflow::{Dag, Task, WorkflowCommand};
use belljar_workflow_formats::{self as formats, CodeExecution, FormatOptions};
use serde_json::{Map, Value, json};

/// What faults call a workflow that has no file.
const NAME: &str = "workflow";

/// Reads a workflow, with what is tolerated in it. It has code only if the operator says so.
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
        let told = |fault: &formats::FileFault| in_words(fault, is_json);
        WorkflowApiError::Faulty { faults: faults.iter().map(told).collect() }
    })?;
    let warnings = read.warnings.iter().map(|warning| in_words(&warning.0, is_json)).collect();
    Ok((read.dag, warnings))
}

/// Lines of what was sent as an object are nobody's.
fn in_words(fault: &formats::FileFault, is_json: bool) -> String {
    if !is_json {
        return fault.to_string();
    }
    let node = fault.node.as_ref().map(|node| format!("`{node}`: ")).unwrap_or_default();
    let help = fault.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    format!("{node}{}{help}", fault.message)
}

/// Reads a command; a field that it does not take is refused.
pub(super) fn command(mut given: Map<String, Value>) -> Result<WorkflowCommand, WorkflowApiError> {
    let bad = |why: String| WorkflowApiError::BadCommand { why };
    let name = given.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
    let takes_tasks = matches!(name.as_str(), "inject_tasks" | "replan");
    if let (true, Some(Value::Array(tasks))) = (takes_tasks, given.get("tasks")) {
        let tasks = read_tasks(tasks)?;
        let tasks = serde_json::to_value(tasks).map_err(|error| bad(error.to_string()))?;
        given.insert("tasks".to_owned(), tasks);
    }
    let names: Vec<String> = given.keys().cloned().collect();
    let command: WorkflowCommand = serde_json::from_value(Value::Object(given))
        .map_err(|error| bad(format!("{name}: {error}")))?;
    let taken = serde_json::to_value(&command).map_err(|error| bad(error.to_string()))?;
    match names.iter().find(|field| taken.get(field.as_str()).is_none()) {
        Some(field) => Err(bad(format!("{name} takes no `{field}`"))),
        None => Ok(command),
    }
}

/// Tasks as workflows have them, which may depend on tasks that are not among them.
fn read_tasks(given: &[Value]) -> Result<Vec<Task>, WorkflowApiError> {
    let text = json!({"tasks": given}).to_string();
    // Whether code may be among them is in the workflow's own terms.
    let options = FormatOptions { code: CodeExecution::WithShell };
    formats::read_tasks(NAME, &text, &options).map_err(|faults| {
        let told = |fault: &formats::FileFault| in_words(fault, true);
        WorkflowApiError::Faulty { faults: faults.iter().map(told).collect() }
    })
}

#[cfg(test)]
mod tests;
