//! The answers about workflows for a model: short, with the next step.

use belljar_contract::{ApprovalKind, TaskStatus, WorkflowStatus};
use belljar_contract::{JsonMap, JsonValue, exact_json};
use rmcp::model::CallToolResult;

use crate::{
    answer,
    approval::{self, QuestionForm},
    workflows::{
        WorkflowApiError, WorkflowCommandAnswer, WorkflowEventInfo, WorkflowQuestion,
        WorkflowReport,
    },
};

/// The names of the commands that a workflow takes.
pub(super) const NAMES: &[&str] = &[
    "abort",
    "pause",
    "continue",
    "approve",
    "reject",
    "modify",
    "skip",
    "modify_args",
    "inject_tasks",
    "replan",
    "resolve",
    "roll_back",
];
/// The same names, with the arguments of each.
pub(super) const COMMANDS: &str = "abort, pause, continue, approve or reject or modify {decision}, \
    skip {task}, modify_args {task, arguments}, inject_tasks or replan {tasks}, resolve {task, how} \
    or roll_back {to}";
/// A larger output is replaced by a preview.
const MAX_OUTPUT_BYTES: usize = 40_000;
/// Length of that preview.
const PREVIEW_CHARS: usize = 2_000;
/// How many tasks are named of those that failed or wait.
const MOST_NAMED: usize = 20;
/// Fields of a report that are passed on if they are present.
const PASSED: &[&str] =
    &["failure", "decisions", "rollback", "approvals", "queue", "attention", "warnings"];

/// The state of a workflow.
pub(super) fn report(report: &WorkflowReport) -> CallToolResult {
    let given = |name: &str| report.value.get(name).filter(|value| !value.is_null());
    let mut shown = JsonMap::new();
    let mut show = |name: &str, value: JsonValue| drop(shown.insert(name.to_owned(), value));
    show("status", exact_json!(report.status));
    show("workflow_id", given("id").cloned().unwrap_or_default());
    for name in PASSED {
        if let Some(value) = given(name).filter(|value| **value != exact_json!([])) {
            show(name, value.clone());
        }
    }
    if let Some(output) = given("output") {
        show("output", within_budget(output));
    }
    if let Some(tasks) = given("tasks").and_then(JsonValue::as_array) {
        let (counted, named) = tasks_in_short(tasks);
        show("tasks", counted);
        if !named.is_empty() {
            show("not_completed", JsonValue::Array(named));
        }
    }
    show("events", exact_json!(report.last_event));
    if !report.is_over {
        show("message", exact_json!(next(report)));
        show("commands", exact_json!(COMMANDS));
    }
    answer::structured_tree(
        &JsonValue::Object(shown),
        matches!(report.status, WorkflowStatus::Failed | WorkflowStatus::Aborted),
    )
}

fn next(report: &WorkflowReport) -> String {
    let id = report.value.get("id").and_then(JsonValue::as_str).unwrap_or_default();
    if let Some(why) = report.value.get("attention").and_then(JsonValue::as_str) {
        return format!("It stays stopped until a person resumes it. Tell the user: {why}.");
    }
    if let Some(doubt) = doubt(report, id) {
        return doubt;
    }
    let person = report.questions.first().map(|question| {
        format!(
            "A person has to decide: `belljar workflow command {id} approve {}` (or reject). Tell \
             the user, then call get_workflow.",
            question.decision
        )
    });
    if let (None, Some(place)) = (&person, report.value.get("queue").and_then(JsonValue::as_u64)) {
        return format!(
            "The maximum number of workflows is running. This one is number {place} in the queue \
             and starts by itself. Call get_workflow for the result."
        );
    }
    let waits = report.value.get("decisions").and_then(JsonValue::as_array);
    match (person, waits.is_some_and(|all| !all.is_empty())) {
        (Some(person), _) => person,
        (None, true) => "Decide with workflow_command; then call get_workflow.".to_owned(),
        (None, false) => "It continues by itself; call get_workflow for the result.".to_owned(),
    }
}

/// The task of a person about a call in doubt, or about a call that waits inside a task's code.
fn doubt(report: &WorkflowReport, id: &str) -> Option<String> {
    let all =
        |name: &str| report.value.get(name).and_then(JsonValue::as_array).into_iter().flatten();
    let text = |of: &JsonValue, name: &str| {
        of.get(name).and_then(JsonValue::as_str).unwrap_or_default().to_owned()
    };
    let is_in_doubt =
        |one: &&JsonValue| one.get("kind") == Some(&exact_json!(ApprovalKind::InDoubt));
    let happened = "A call may or may not have happened, and the task waits until a person has \
                    checked";
    let instruction = "Tell the user, then call get_workflow.";
    if let Some(one) = all("approvals").find(is_in_doubt) {
        let (approval, tool) = (text(one, "id"), text(one, "tool"));
        return Some(format!(
            "{happened} and says what to make of {tool}: retry (make it again: `belljar approvals \
             retry {approval}`), use (it happened: `belljar approvals use {approval} --result JSON`) \
             or deny (it fails in the code: `belljar approvals deny {approval}`). {instruction}"
        ));
    }
    if let Some(one) = all("decisions").find(is_in_doubt) {
        let task = text(one, "task");
        return Some(format!(
            "{happened}: `belljar workflow command {id} resolve '{task}'` with --retry (make it \
             again), --use JSON (it happened) or --fail. {instruction}"
        ));
    }
    let approval = text(all("approvals").next()?, "id");
    Some(format!(
        "A call inside a task waits for a person: `belljar approvals approve {approval}` (or deny). \
         {instruction}"
    ))
}

/// How many tasks have which status, and the tasks that a reader may want to inspect.
fn tasks_in_short(tasks: &[JsonValue]) -> (JsonValue, Vec<JsonValue>) {
    let mut counted: JsonMap = JsonMap::new();
    let mut named = Vec::new();
    for task in tasks {
        let status = task.get("status").and_then(JsonValue::as_str).unwrap_or("unknown");
        let count = counted.get(status).and_then(JsonValue::as_u64).unwrap_or(0);
        counted.insert(status.to_owned(), exact_json!(count + 1));
        let is_plain = matches!(
            TaskStatus::from_name(status),
            Some(
                TaskStatus::Completed
                    | TaskStatus::Skipped
                    | TaskStatus::Waiting
                    | TaskStatus::Ready
            )
        );
        if !is_plain && named.len() < MOST_NAMED {
            let parts = ["task", "status", "failure"];
            let parts = parts.into_iter().filter_map(|part| {
                let value = task.get(part).filter(|value| !value.is_null())?;
                Some((part.to_owned(), value.clone()))
            });
            named.push(JsonValue::Object(parts.collect()));
        }
    }
    (JsonValue::Object(counted), named)
}

/// The value itself, or a preview if it is too large for a model (E5).
fn within_budget(value: &JsonValue) -> JsonValue {
    let text = value.to_string();
    if text.len() <= MAX_OUTPUT_BYTES {
        return value.clone();
    }
    let preview: String = text.chars().take(PREVIEW_CHARS).collect();
    exact_json!({
        "truncated": true, "bytes": text.len(), "preview": preview,
        "hint": "let the workflow's `output` be smaller; a person can see all of it with `belljar \
                 workflow show --json`",
    })
}

/// A list of a workflow's events.
pub(super) fn events(id: &str, events: &[WorkflowEventInfo]) -> CallToolResult {
    answer::structured_tree(&exact_json!({"workflow_id": id, "events": events}), false)
}

/// The workflow's answer to a command.
pub(super) fn command(id: &str, answer: &WorkflowCommandAnswer) -> CallToolResult {
    let mut shown = exact_json!({"workflow_id": id, "command_id": answer.command_id});
    if let Some(fields) = shown.as_object_mut() {
        let (state, more) = match answer.accepted {
            Some(true) => ("accepted", None),
            Some(false) => ("refused", answer.reason.clone()),
            None => ("queued", Some("it is in the queue; call get_workflow".to_owned())),
        };
        fields.insert("status".to_owned(), exact_json!(state));
        if let Some(more) = more {
            fields.insert("message".to_owned(), exact_json!(more));
        }
    }
    answer::structured_tree(&shown, answer.accepted == Some(false))
}

/// A workflow error as the model sees it.
pub(super) fn failed(error: &WorkflowApiError) -> CallToolResult {
    let mut reported = exact_json!({
        "type": "WorkflowError", "code": error.code(), "message": error.to_string(),
    });
    let hint = match error {
        WorkflowApiError::Unknown { .. } => Some("get_workflow without `id` lists the workflows"),
        WorkflowApiError::Off
        | WorkflowApiError::Taken { .. }
        | WorkflowApiError::NotOver { .. }
        | WorkflowApiError::Busy { .. }
        | WorkflowApiError::Faulty { .. }
        | WorkflowApiError::TooLarge { .. }
        | WorkflowApiError::BadCommand { .. }
        | WorkflowApiError::NotYours { .. }
        | WorkflowApiError::Refused { .. }
        | WorkflowApiError::Failed { .. } => error.hint(),
    };
    if let (Some(fields), Some(hint)) = (reported.as_object_mut(), hint) {
        fields.insert("hint".to_owned(), exact_json!(hint));
    }
    answer::structured_tree(
        &exact_json!({"status": WorkflowStatus::Failed, "error": reported}),
        true,
    )
}

/// The form for a question of a workflow.
pub(super) fn question(id: &str, question: &WorkflowQuestion) -> QuestionForm {
    let text = format!("Workflow {id} asks: {}", question.message);
    approval::yes_or_no(&text, &format!("`belljar workflow show {id}`"))
}

#[cfg(test)]
mod tests {
    use belljar_contract::{JsonValue, exact_json};

    use super::{WorkflowReport, WorkflowStatus, next};

    fn told(approvals: &JsonValue, decisions: &JsonValue) -> String {
        let value = exact_json!({"id": "w", "approvals": approvals, "decisions": decisions});
        let status = WorkflowStatus::Running;
        next(&WorkflowReport {
            value,
            status,
            last_event: 0,
            is_over: false,
            questions: Vec::new(),
        })
    }

    #[test]
    fn reliability_10_who_looks_at_a_workflow_in_doubt_is_told_the_answers() {
        let call = exact_json!({"task": "t", "id": "apr_1", "kind": "call", "tool": "a__b"});
        let doubt = exact_json!({"task": "t", "id": "apr_2", "kind": "in_doubt", "tool": "a__b"});
        let both = told(&exact_json!([call, doubt]), &exact_json!([]));
        for part in ["retry apr_2", "use apr_2 --result JSON", "deny apr_2", "a__b", "a person"] {
            assert!(both.contains(part), "{part}: {both}");
        }
        let asked = told(&exact_json!([call]), &exact_json!([]));
        assert!(asked.contains("belljar approvals approve apr_1"), "{asked}");
        let decision = exact_json!({"id": "d1", "task": "pay", "kind": "in_doubt", "by": "human"});
        let task = told(&exact_json!([]), &exact_json!([decision]));
        assert!(task.contains("belljar workflow command w resolve 'pay'"), "{task}");
        assert!(task.contains("--retry") && task.contains("--use JSON"), "{task}");
        // Controls: nothing waits, or the agent itself decides.
        assert!(told(&exact_json!([]), &exact_json!([])).starts_with("It continues by itself"));
        let agent = exact_json!({"id": "d1", "task": "t", "kind": "approval", "by": "agent"});
        assert!(
            told(&exact_json!([]), &exact_json!([agent]))
                .starts_with("Decide with workflow_command")
        );
    }
}
