//! Renders a task into work that can be performed, and gives it a key.

use belljar_contract::hex;
use belljar_contract::json_value;
use belljar_contract::{JsonMap, JsonValue, exact_json};
use sha2::{Digest, Sha256};

use super::Machine;
use super::names::NameLookup;
use super::parts::{NodeId, TaskNode};
use crate::dag::{Action, Code, Compensation, SandboxAction, Task, ToolAction};
use crate::effect::{TaskFailure, TaskWork};
use crate::template::{TemplateError, TemplateNames, render, render_map, render_text};

impl Machine {
    /// The work of a node; `None` for tasks that perform nothing.
    pub(super) fn work_of(
        &self,
        node: &TaskNode,
        def: &Task,
        assume: Option<(NodeId, &JsonValue)>,
    ) -> Result<Option<TaskWork>, TemplateError> {
        let place = NameLookup { assume, ..NameLookup::of(self, node) };
        Ok(match &def.action {
            Action::McpTool(call) => Some(TaskWork::McpTool(tool(call, &place)?)),
            Action::CodeExecution(code) => {
                Some(TaskWork::CodeExecution(Box::new(rendered_code(code, &place)?)))
            }
            Action::Sandbox(action) => {
                Some(TaskWork::Sandbox { action: rendered_sandbox(action, &place)? })
            }
            Action::Approval { .. }
            | Action::Foreach(_)
            | Action::Loop(_)
            | Action::Workflow { .. }
            | Action::Wait(_)
            | Action::Pass { .. } => None,
        })
    }

    /// The compensation of a node that has ended with `result`.
    pub(super) fn undo_of(
        &self,
        node: &TaskNode,
        def: &Task,
        result: &JsonValue,
    ) -> Result<Option<TaskWork>, TemplateError> {
        let args = node.work.as_ref().map_or(JsonValue::Null, arguments);
        let place =
            NameLookup { result: Some(result), args: Some(&args), ..NameLookup::of(self, node) };
        Ok(match &def.compensate {
            None => None,
            Some(Compensation::Tool(call)) => Some(TaskWork::McpTool(tool(call, &place)?)),
            Some(Compensation::Code(code)) => {
                let mut code = rendered_code(code, &place)?;
                code.context.insert("result".to_owned(), result.clone());
                code.context.insert("args".to_owned(), args.clone());
                Some(TaskWork::CodeExecution(Box::new(code)))
            }
        })
    }

    /// The key that identifies an effect: workflow, branch, instance and work.
    pub(super) fn key(&self, instance: &str, work: &TaskWork) -> String {
        let mut text = String::new();
        let effect = match self.made_ms {
            0 => exact_json!([self.flow, self.branch, instance, work]),
            made_ms => exact_json!([self.flow, made_ms, self.branch, instance, work]),
        };
        canonical(&effect, &mut text);
        hex::encode(&Sha256::digest(text.as_bytes()))
    }

    /// Whether a node's code sees the workflow's files.
    pub(super) fn wants_files(&self, node: &TaskNode, work: &TaskWork) -> bool {
        let shared = self.home(node.scope).is_some_and(|home| home.settings.files);
        match work {
            TaskWork::CodeExecution(code) => (code.files || shared) && !code.no_room,
            TaskWork::McpTool(_) | TaskWork::Sandbox { .. } | TaskWork::RestoreSandbox { .. } => {
                false
            }
        }
    }
}

fn tool(call: &ToolAction, names: &dyn TemplateNames) -> Result<ToolAction, TemplateError> {
    Ok(ToolAction { tool: call.tool.clone(), arguments: render_map(&call.arguments, names)? })
}

fn rendered_code(code: &Code, place: &NameLookup<'_>) -> Result<Code, TemplateError> {
    let mut context = render_map(&code.context, place)?;
    let deps = place.deps().unwrap_or_default();
    if !deps.is_empty() || !context.contains_key("deps") {
        context.insert("deps".to_owned(), JsonValue::Object(deps));
    }
    for name in ["item", "index"] {
        if let Some(value) = place.whole(name)
            && !context.contains_key(name)
        {
            context.insert(name.to_owned(), value);
        }
    }
    let mut rendered = Code { context, ..code.clone() };
    if code.template {
        rendered.code = as_text(render_text(&code.code, place)?);
    }
    Ok(rendered)
}

fn rendered_sandbox(
    action: &SandboxAction,
    names: &dyn TemplateNames,
) -> Result<SandboxAction, TemplateError> {
    Ok(match action {
        SandboxAction::Create { .. } | SandboxAction::List => action.clone(),
        SandboxAction::Execute { sandbox_id, code, limits } => {
            let code = as_text(render_text(code, names)?);
            SandboxAction::Execute {
                sandbox_id: render(sandbox_id, names)?,
                code,
                limits: limits.clone(),
            }
        }
        SandboxAction::Destroy { sandbox_id } => {
            SandboxAction::Destroy { sandbox_id: render(sandbox_id, names)? }
        }
    })
}

/// A value as text: text is itself, anything else is JSON.
pub(super) fn as_text(value: JsonValue) -> String {
    if let JsonValue::String(text) = value {
        return text;
    }
    value.to_string()
}

/// The value that a compensation sees as `args`.
fn arguments(work: &TaskWork) -> JsonValue {
    match work {
        TaskWork::McpTool(call) => JsonValue::Object(call.arguments.clone()),
        TaskWork::CodeExecution(code) => JsonValue::Object(code.context.clone()),
        TaskWork::Sandbox { action } => json_value::to_value(action).unwrap_or_default(),
        // It is a compensation, and compensations are not undone.
        TaskWork::RestoreSandbox { .. } => JsonValue::Null,
    }
}

/// A task with some arguments changed; the others stay.
pub(super) fn with_arguments(def: &Task, given: &JsonMap) -> Result<Task, String> {
    let mut task = def.clone();
    let arguments = match &mut task.action {
        Action::McpTool(call) => &mut call.arguments,
        Action::CodeExecution(code) => &mut code.context,
        Action::Workflow { inputs, .. } => inputs,
        Action::Sandbox(_)
        | Action::Approval { .. }
        | Action::Foreach(_)
        | Action::Loop(_)
        | Action::Wait(_)
        | Action::Pass { .. } => return Err(format!("task {} takes no arguments", def.id)),
    };
    arguments.extend(given.clone());
    Ok(task)
}

/// JSON with sorted keys and no spaces, whatever order the keys came in.
fn canonical(value: &JsonValue, out: &mut String) {
    match value {
        JsonValue::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for key in keys {
                out.push_str(&JsonValue::String(key.clone()).to_string());
                out.push(':');
                canonical(map.get(key).unwrap_or(&JsonValue::Null), out);
                out.push(',');
            }
            out.push('}');
        }
        JsonValue::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) | JsonValue::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

/// A failed template as a failure of the task.
pub(super) fn template_failure(error: &TemplateError) -> TaskFailure {
    TaskFailure { lasting: true, ..TaskFailure::new("template", error.to_string()) }
}
