//! The answer about calls that wait for a person whom the client cannot ask.
//!
//! The model cannot decide, so it gets enough of each call to tell the user what waits: long arguments are
//! shortened, and of many calls the first ones are shown. A person decides with the whole call in view, by the
//! command that the message names.

use belljar_contract::{ApprovalKind, RunId, RunStatus, decision_command};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::structured;
use crate::{approval::brief_arguments, backend::ApprovalRequest};

/// The calls whose arguments are shown.
const MAX_SHOWN: usize = 4;
/// Bytes of the arguments of all calls that are shown, as JSON.
const MAX_ARGUMENT_BYTES: usize = 1600;
/// Characters of the line of code that makes a call.
const MAX_LINE_CHARS: usize = 120;
/// Ids in the command that decides; the rest wait for the next answer.
const MAX_IDS: usize = 20;

/// A run that waits for a person whom the client cannot ask.
pub(crate) fn waiting(run_id: &RunId, waiting: &[ApprovalRequest]) -> CallToolResult {
    structured(waiting_value(run_id, waiting), false)
}

/// The same for a tool with an output schema of its own, which this would not match.
pub(crate) fn tool_waiting(run_id: &RunId, waiting: &[ApprovalRequest]) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(waiting_value(run_id, waiting).to_string())])
}

fn waiting_value(run_id: &RunId, waiting: &[ApprovalRequest]) -> Value {
    let (status, what) = match waiting.iter().any(|one| one.kind == ApprovalKind::InDoubt) {
        true => (RunStatus::InDoubt, "decide about a call that may have happened"),
        false => (
            RunStatus::ApprovalRequired,
            if waiting.len() > 1 { "allow these calls" } else { "allow this call" },
        ),
    };
    let place = waiting.first().and_then(|one| one.project.as_deref());
    let place = place.map(|project| format!(" (project {project})")).unwrap_or_default();
    let commands = commands(waiting);
    let message = format!(
        "A person has to {what}{place}, in a terminal: {commands}. Tell the user, then call get_run."
    );
    let mut shown = waiting.iter().take(MAX_SHOWN).map(|one| shown(one, waiting.len()));
    let mut value = json!({
        "status": status,
        "run_id": run_id,
        "approval": shown.next(),
        "message": message,
    });
    let rest: Vec<Value> = shown.collect();
    if let Some(object) = value.as_object_mut()
        && !rest.is_empty()
    {
        object.insert("more_approvals".to_owned(), json!(rest));
        let left_out = waiting.len() - 1 - rest.len();
        if left_out > 0 {
            object.insert("approvals_left_out".to_owned(), json!(left_out));
        }
    }
    value
}

/// A call with its arguments, shortened if they are long; `all` calls share the room.
fn shown(one: &ApprovalRequest, all: usize) -> Value {
    let room = MAX_ARGUMENT_BYTES / all.clamp(1, MAX_SHOWN);
    let mut shown = json!(one);
    let Some(fields) = shown.as_object_mut() else { return shown };
    if let Some(line) = &one.code_line
        && let Some((end, _)) = line.char_indices().nth(MAX_LINE_CHARS)
    {
        let beginning = line.get(..end).unwrap_or_default();
        fields.insert("code_line".to_owned(), json!(format!("{beginning}…")));
    }
    if let Some(arguments) = brief_arguments(&one.arguments, room) {
        fields.insert("arguments".to_owned(), arguments);
        fields.insert("arguments_shortened".to_owned(), json!(true));
    }
    shown
}

/// The commands by which a person decides.
fn commands(waiting: &[ApprovalRequest]) -> String {
    if let [first, _, ..] = waiting
        && waiting.iter().all(|one| one.kind == ApprovalKind::Call)
    {
        // One decision for all of them, by their ids: `--run` would also approve a call that the code
        // makes after a person has looked.
        let ids: Vec<&str> = waiting.iter().take(MAX_IDS).map(|one| &*one.id).collect();
        let (project, state) = (first.project.as_deref(), first.state_dir.as_deref());
        let command = decision_command("approve", &ids.join(" "), project, state);
        return format!("`{command}`{}", left_out(waiting.len(), MAX_IDS));
    }
    let commands: Vec<_> = waiting.iter().take(MAX_SHOWN).map(command).collect();
    format!("{}{}", commands.join(", "), left_out(waiting.len(), MAX_SHOWN))
}

/// The calls of which the message has no command.
fn left_out(all: usize, named: usize) -> String {
    match all.saturating_sub(named) {
        0 => String::new(),
        more => format!(" ({more} more wait: `belljar approvals list`)"),
    }
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
