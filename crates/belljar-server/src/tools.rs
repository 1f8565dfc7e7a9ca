//! The tools that a model always sees, described in as few words as teach their use (E4).
//!
//! All descriptions together stay under 400 tokens, however many tools are behind the gateway; a
//! test checks it. Fewer words would cost wrong calls. Field names speak for themselves, an error
//! names the right field, and the answers about a workflow list its commands.

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

const EXECUTE_TEXT: &str = "Run code in a sandbox; only what it returns comes back. Call tools in \
    it: `await mcp.server.tool({...})` (Python: no await); find them with search_tools. Filter in \
    code, `return` little. `context` is a global. On approval_required tell the user; then get_run.";
const SEARCH_TEXT: &str = "Find tools.";
const GET_RUN_TEXT: &str = "How a run stands.";
const SANDBOX_TEXT: &str = "Keeps state between runs.";
const RUN_WORKFLOW_TEXT: &str = "Run a durable DAG, YAML or {tasks: [{id, tool, arguments | code | \
    type: approval, depends_on}]}.";
const WORKFLOW_COMMAND_TEXT: &str = "Steer a workflow.";
const GET_WORKFLOW_TEXT: &str = "How it stands.";

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
    let search_input = json!({"type": "object", "properties": {"intent": {}}});
    let get_input = json!({"type": "object", "properties": {"run_id": {}, "wait_ms": {}}});
    let mut all = vec![
        tool(EXECUTE, "Run code", EXECUTE_TEXT, execute_input(), &acts),
        tool(SEARCH, "Find tools", SEARCH_TEXT, search_input, &looks),
        tool(GET_RUN, "Get run", GET_RUN_TEXT, get_input, &looks),
        tool(SANDBOX, "Sandbox", SANDBOX_TEXT, sandbox_input(), &acts),
    ];
    if workflows == WorkflowTools::Offered {
        let run = json!({"type": "object", "properties": {"workflow": {}, "inputs": {}}});
        let command = json!({"type": "object", "properties": {"id": {}, "command": {}}});
        let get = json!({"type": "object", "properties": {"id": {}, "wait_ms": {}}});
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

/// The output schema of a tool. Clients check answers against it; few of them show it to models.
fn output(name: &str) -> Value {
    if ![EXECUTE, GET_RUN].contains(&name) {
        return json!({"type": "object"});
    }
    let of_type = |kind: &str| json!({"type": kind});
    json!({"type": "object", "required": ["status"], "properties": {
        "status": of_type("string"), "run_id": of_type("string"),
        "result": {}, "stdout": of_type("string"),
        "logs": {"type": "array", "items": of_type("string")},
        "error": of_type("object"), "metrics": of_type("object"), "state": of_type("object"),
        "session_id": of_type("string"), "message": of_type("string")}})
}

fn execute_input() -> Value {
    json!({"type": "object", "required": ["code"], "properties": {
        "code": {"type": "string"},
        "language": {"enum": ["typescript", "javascript", "python", "bash"]},
        "engine": {},
        "intent": {},
        "tools": {},
        "context": {},
        "sandbox_config": {"description":
            "timeoutMs, allowedReadPaths, allowWrite"},
        "session_id": {},
        "durable": {}}})
}

fn sandbox_input() -> Value {
    json!({"type": "object", "properties": {
        "action": {"enum": ["create", "execute", "checkpoint", "rollback", "fork", "destroy", "list"]},
        "session_id": {}, "language": {}, "code": {}, "checkpoint_id": {}, "count": {}}})
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
