//! The four tools a model always sees, in as few words as teach their use (E4).
//!
//! All that is said of the four together stays under 400 tokens, however many tools are behind the
//! gateway; a test holds them to it. What a word less would cost in wrong calls was weighed: field
//! names speak for themselves, and a wrong field is answered with the right one.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::Arc};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::backend::PassThrough;

/// Runs code.
pub(crate) const EXECUTE: &str = "execute_code";
/// Finds tools.
pub(crate) const SEARCH: &str = "search_tools";
/// Looks at a run.
pub(crate) const GET_RUN: &str = "get_run";
/// Keeps sandboxes between runs.
pub(crate) const SANDBOX: &str = "sandbox";
/// All four.
pub(crate) const NAMES: &[&str] = &[EXECUTE, SEARCH, GET_RUN, SANDBOX];

const EXECUTE_TEXT: &str = "Run code in a sandbox; only what it returns comes back. Call tools in \
    it: `const r = await mcp.server.tool({...})` (Python: no await); find them with search_tools. \
    Loop, join and filter in code, `return` a small value. `context` is a global. If status is \
    approval_required, tell the user; then get_run.";
const SEARCH_TEXT: &str = "Find tools for code.";
const GET_RUN_TEXT: &str = "How a run stands.";
const SANDBOX_TEXT: &str = "Sandboxes that keep state between runs.";

/// The definitions of the gateway's own tools.
pub(crate) fn own() -> Vec<Tool> {
    let output = || object(json!({"type": "object"}));
    let execute = Tool::new(EXECUTE, EXECUTE_TEXT, object(execute_input()))
        .with_title("Run code")
        .with_raw_output_schema(output().into())
        .with_annotations(ToolAnnotations::new());
    let search_input = json!({"type": "object", "required": ["intent"], "properties": {
        "intent": {}, "k": {}}});
    let search = Tool::new(SEARCH, SEARCH_TEXT, object(search_input))
        .with_title("Find tools")
        .with_raw_output_schema(output().into())
        .with_annotations(ToolAnnotations::new().read_only(true));
    let get_input = json!({"type": "object", "properties": {"run_id": {}, "wait_ms": {}}});
    let get_run = Tool::new(GET_RUN, GET_RUN_TEXT, object(get_input))
        .with_title("Get run")
        .with_raw_output_schema(output().into())
        .with_annotations(ToolAnnotations::new().read_only(true));
    // Those that change something say nothing of it: what the code calls decides what they do, and
    // the defaults (writes, destroys, open world) are the honest ones.
    let sandbox = Tool::new(SANDBOX, SANDBOX_TEXT, object(sandbox_input()))
        .with_title("Sandbox")
        .with_raw_output_schema(output().into())
        .with_annotations(ToolAnnotations::new());
    vec![execute, search, get_run, sandbox]
}

fn execute_input() -> Value {
    json!({"type": "object", "required": ["code"], "properties": {
        "code": {"type": "string"},
        "language": {"enum": ["typescript", "javascript", "python", "bash"]},
        "intent": {},
        "tools": {"type": "array", "items": {"type": "string"}},
        "context": {},
        "sandbox_config": {"description":
            "timeoutMs, heapLimitMB, allowedReadPaths, allowNetwork, allowWrite"},
        "session_id": {},
        "max_output_tokens": {},
        "durable": {}}})
}

fn sandbox_input() -> Value {
    json!({"type": "object", "properties": {
        "action": {"enum": ["create", "execute", "checkpoint", "rollback", "fork", "destroy", "list"]},
        "session_id": {}, "language": {}, "code": {}, "checkpoint_id": {}, "count": {}}})
}

/// An upstream tool, as its server describes it.
pub(crate) fn passed(tool: PassThrough) -> Tool {
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

/// A literal above is an object; anything else would show at once in the first test.
fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}
