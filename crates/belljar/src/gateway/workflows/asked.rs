//! What clients send, made into workflows and commands.

use belljar_flow::{
    Command, Dag, Task,
    formats::{self, CodeExecution, Format, Options},
};
use belljar_server::{WorkflowError, Written};
use serde_json::{Map, Value, json};

/// What faults call a workflow that has no file.
const NAME: &str = "workflow";
/// The spellings of what a task depends on.
const DEPENDS_ON: [&str; 4] = ["depends_on", "dependsOn", "dependencies", "deps"];

/// Reads a workflow, with what is tolerated in it. Code is for a DAG in JSON, and for all else if the
/// operator says so.
pub(super) fn workflow(
    written: Written,
    code: CodeExecution,
) -> Result<(Dag, Vec<String>), WorkflowError> {
    let (text, is_json) = match written {
        Written::Json(given) => (given.to_string(), true),
        Written::Text(text) => {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            (text, is_json)
        }
    };
    let read = formats::read(NAME, &text, &Options { code: CodeExecution::On });
    let read = match read {
        Ok(read) if is_json && read.format == Format::Dag => Ok(read),
        Err(faults) if is_json => Err(faults),
        Ok(_) | Err(_) => formats::read(NAME, &text, &Options { code }),
    };
    let read = read.map_err(|faults| {
        let told = |fault: &formats::Fault| in_words(fault, is_json);
        WorkflowError::Faulty { faults: faults.iter().map(told).collect() }
    })?;
    let warnings = read.warnings.iter().map(|warning| in_words(&warning.0, is_json)).collect();
    Ok((read.dag, warnings))
}

/// Lines of what was sent as an object are nobody's.
fn in_words(fault: &formats::Fault, is_json: bool) -> String {
    if !is_json {
        return fault.to_string();
    }
    let node = fault.node.as_ref().map(|node| format!("`{node}`: ")).unwrap_or_default();
    let help = fault.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    format!("{node}{}{help}", fault.message)
}

/// Reads a command; a field that it does not take is refused.
pub(super) fn command(mut given: Map<String, Value>) -> Result<Command, WorkflowError> {
    let bad = |why: String| WorkflowError::BadCommand { why };
    let name = given.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
    let takes_tasks = matches!(name.as_str(), "inject_tasks" | "replan");
    if let (true, Some(Value::Array(tasks))) = (takes_tasks, given.get("tasks")) {
        let tasks = read_tasks(tasks)?;
        let tasks = serde_json::to_value(tasks).map_err(|error| bad(error.to_string()))?;
        given.insert("tasks".to_owned(), tasks);
    }
    let names: Vec<String> = given.keys().cloned().collect();
    let command: Command = serde_json::from_value(Value::Object(given))
        .map_err(|error| bad(format!("{name}: {error}")))?;
    let taken = serde_json::to_value(&command).map_err(|error| bad(error.to_string()))?;
    match names.iter().find(|field| taken.get(field.as_str()).is_none()) {
        Some(field) => Err(bad(format!("{name} takes no `{field}`"))),
        None => Ok(command),
    }
}

/// Tasks as workflows have them, which may depend on tasks that are not among them.
fn read_tasks(given: &[Value]) -> Result<Vec<Task>, WorkflowError> {
    let mut given = given.to_vec();
    let mut depend = Vec::new();
    for task in &mut given {
        let fields = task.as_object_mut();
        let named =
            fields.and_then(|fields| DEPENDS_ON.into_iter().find_map(|name| fields.remove(name)));
        depend.push(names(named.as_ref())?);
    }
    let text = json!({"tasks": given}).to_string();
    // What the workflow's own terms do not allow is refused when it is done.
    let options = Options { code: CodeExecution::On };
    let read = formats::read(NAME, &text, &options).map_err(|faults| {
        let told = |fault: &formats::Fault| in_words(fault, true);
        WorkflowError::Faulty { faults: faults.iter().map(told).collect() }
    })?;
    let mut tasks = read.dag.tasks;
    for (task, on) in tasks.iter_mut().zip(depend) {
        task.depends_on = on;
    }
    Ok(tasks)
}

fn names(given: Option<&Value>) -> Result<Vec<String>, WorkflowError> {
    match given {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(given) => serde_json::from_value(given.clone()).map_err(|_| {
            WorkflowError::BadCommand { why: "depends_on: a list of names of tasks".to_owned() }
        }),
    }
}

#[cfg(test)]
mod tests;
