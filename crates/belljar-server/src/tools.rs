//! The tools that a model always sees, described in as few words as teach their use (E4).
//!
//! All descriptions together stay under 400 tokens, however many tools are behind the gateway; a test
//! counts them with a tokenizer. Every property has a type, because clients with strict schemas refuse one
//! without. Descriptions of all properties do not fit: docs/benchmarks.md says what was tried. The manual
//! ([`manual`]), which `search_tools` returns if it is called without an intent, describes every argument,
//! also those that are rarely needed and not in the list.

mod manual;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::Arc};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::backend::PassThrough;

/// Runs code in a sandbox, alone or in a session.
pub(crate) const EXECUTE: &str = "execute_code";
/// Finds upstream tools by intent.
pub(crate) const SEARCH: &str = "search_tools";
/// Gives the state or the result of a run.
pub(crate) const GET_RUN: &str = "get_run";
/// Creates, uses and ends sessions.
pub(crate) const SANDBOX: &str = "sandbox";
/// Starts a workflow from its source.
pub(crate) const RUN_WORKFLOW: &str = "run_workflow";
/// Sends a command to a workflow.
pub(crate) const WORKFLOW_COMMAND: &str = "workflow_command";
/// Gives the state or the events of a workflow.
pub(crate) const GET_WORKFLOW: &str = "get_workflow";
/// All of these names, whether the tools are offered or not.
pub(crate) const NAMES: &[&str] =
    &[EXECUTE, SEARCH, GET_RUN, SANDBOX, RUN_WORKFLOW, WORKFLOW_COMMAND, GET_WORKFLOW];

/// The arguments of its own tools whose values must stay exact: they are for code.
pub(crate) const EXACT_ARGUMENTS: &[(&str, &[&str])] = &[
    (EXECUTE, &["context"]),
    (SANDBOX, &["context"]),
    (RUN_WORKFLOW, &["workflow", "inputs"]),
    (WORKFLOW_COMMAND, &["command", "tasks", "arguments", "value", "how"]),
];
/// The tools whose answers may have files in them.
pub(crate) const ANSWER_WITH_FILES: &[&str] = &[EXECUTE, GET_RUN, SANDBOX];

pub(crate) use manual::manual;

const EXECUTE_TEXT: &str = "Run code in a sandbox: no npm or pip. Only its `return` value, prints and \
    /work/out come back: filter in code. Tools: `await mcp.server.tool({})` (Python: no await).";
const SEARCH_TEXT: &str = "Find tools. No intent: manual.";
const GET_RUN_TEXT: &str = "Result of a run.";
const SANDBOX_TEXT: &str = "Sessions keep state.";
const RUN_WORKFLOW_TEXT: &str = "Run a durable DAG.";
const WORKFLOW_COMMAND_TEXT: &str = "Steer it.";
const GET_WORKFLOW_TEXT: &str = "State of it.";

/// Whether the tools for workflows are offered: the operator may have switched them off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkflowTools {
    /// They are in the list of tools.
    Offered,
    /// They are not in the list.
    Off,
}

/// The definitions of the gateway's own tools.
pub(crate) fn own(workflows: WorkflowTools) -> Vec<Tool> {
    // Tools that change something get no annotations: the code decides what they do, and the
    // defaults (writes, destroys, open world) are the honest ones.
    let (acts, looks) = (ToolAnnotations::new(), ToolAnnotations::new().read_only(true));
    let text = || of_type("string");
    let search_input = inputs(json!({"intent": text()}));
    let get_input = inputs(json!({"run_id": text()}));
    let mut all = vec![
        tool(EXECUTE, "Run code", EXECUTE_TEXT, execute_input(), &acts),
        tool(SEARCH, "Find tools", SEARCH_TEXT, search_input, &looks),
        tool(GET_RUN, "Get run", GET_RUN_TEXT, get_input, &looks),
        tool(SANDBOX, "Sandbox", SANDBOX_TEXT, sandbox_input(), &acts),
    ];
    if workflows == WorkflowTools::Offered {
        let workflow = described("string", "{tasks: [{id, tool, arguments | code, depends_on}]}");
        let run = inputs(json!({"workflow": workflow, "inputs": text()}));
        let command = inputs(json!({"id": text(), "command": text()}));
        let get = inputs(json!({"id": text()}));
        all.extend([
            tool(RUN_WORKFLOW, "Run workflow", RUN_WORKFLOW_TEXT, run, &acts),
            tool(WORKFLOW_COMMAND, "Command", WORKFLOW_COMMAND_TEXT, command, &acts),
            tool(GET_WORKFLOW, "Get workflow", GET_WORKFLOW_TEXT, get, &looks),
        ]);
    }
    all
}

fn tool(
    name: &'static str,
    title: &str,
    text: &'static str,
    input: Value,
    hints: &ToolAnnotations,
) -> Tool {
    Tool::new(name, text, object(input))
        .with_title(title)
        .with_raw_output_schema(object(output(name)).into())
        .with_annotations(hints.clone())
}

fn of_type(kind: &str) -> Value {
    json!({ "type": kind })
}

fn described(kind: &str, text: &str) -> Value {
    json!({ "type": kind, "description": text })
}

fn inputs(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// The output schema of a tool. Clients check answers against it; few of them show it to models.
fn output(name: &str) -> Value {
    match name {
        EXECUTE | GET_RUN => run_output(),
        SEARCH => {
            let found = inputs(json!({
                "name": of_type("string"), "call": of_type("string"), "description": of_type("string"),
            }));
            let tools = json!({ "type": "array", "items": found });
            inputs(json!({ "tools": tools, "manual": of_type("string") }))
        }
        _ => of_type("object"),
    }
}

fn run_output() -> Value {
    let text = || of_type("string");
    let number = || of_type("number");
    let error = inputs(json!({
        "type": text(), "code": text(), "message": text(), "hint": text(), "line": of_type("integer"),
        "column": of_type("integer"), "stack": text(), "toolName": text(),
    }));
    let metrics = inputs(json!({
        "startupTimeMs": number(), "executionTimeMs": number(), "cpuTimeMs": number(),
        "memoryUsedMB": number(), "toolCalls": of_type("integer"),
    }));
    let file = inputs(json!({
        "path": text(), "mediaType": text(), "bytes": of_type("integer"), "uri": text(),
        "pixels": { "type": "array", "items": of_type("integer") }, "note": text(),
    }));
    let left = inputs(json!({ "path": text(), "bytes": of_type("integer") }));
    let not_returned = inputs(json!({
        "files": { "type": "array", "items": left }, "more": of_type("boolean"), "hint": text(),
    }));
    let any = json!(["object", "array", "string", "number", "boolean", "null"]);
    let mut output = inputs(json!({
        "status": text(), "run_id": text(), "result": { "type": any }, "logs": text(),
        "stdout": text(), "error": error, "metrics": metrics,
        "state": { "type": ["object", "array", "string", "number", "boolean", "null"] },
        "session_id": text(), "message": text(), "not_returned": not_returned,
        "artifacts": { "type": "array", "items": file }, "artifacts_note": text(),
        "truncated": of_type("object"), "cached": of_type("boolean"), "lossy": of_type("boolean"),
    }));
    if let Some(output) = output.as_object_mut() {
        output.insert("required".to_owned(), json!(["status"]));
    }
    output
}

fn execute_input() -> Value {
    let text = || of_type("string");
    let mut input = inputs(json!({
        "code": text(),
        "language": described("string", "python, bash or typescript (default)"),
        "context": described("string", "JSON"),
        "network": described("string", "hosts"),
        // A text, not an object: strict clients close objects, and nobody could state a setting that is not
        // listed here.
        "sandbox_config": described("string", "{timeoutMs}"),
        "session_id": text(),
        "max_output_tokens": described("integer", "default 2000"),
    }));
    if let Some(input) = input.as_object_mut() {
        input.insert("required".to_owned(), json!(["code"]));
    }
    input
}

fn sandbox_input() -> Value {
    let text = || of_type("string");
    let action = described("string", "create, checkpoint, rollback, fork, destroy, list");
    inputs(json!({ "action": action, "session_id": text(), "checkpoint_id": text() }))
}

/// An upstream tool, as its server describes it.
pub(crate) fn upstream_tool(tool: PassThrough) -> Tool {
    let mut shown = Tool::new_with_raw(
        Cow::Owned(tool.name),
        tool.description.map(Cow::Owned),
        Arc::new(tool.input_schema),
    );
    shown.title = tool.title;
    shown.output_schema = tool.output_schema.map(Arc::new);
    shown.annotations = tool.annotations.and_then(|hints| serde_json::from_value(hints).ok());
    shown
}

/// The literals above are objects; anything else would fail the first test.
fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}
