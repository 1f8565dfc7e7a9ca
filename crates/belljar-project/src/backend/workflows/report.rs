//! The status and the events of a workflow, as clients see them.

use belljar_contract::{ApprovalKind, WorkflowStatus};
use belljar_contract::{JsonMap, JsonValue, exact_json};
use belljar_server::{EventEffect, WorkflowEventInfo, WorkflowQuestion, WorkflowReport};
use belljar_workflow::{
    Decider, DecisionKind, Machine, TaskView, WorkflowDecision, WorkflowEvent, WorkflowEventKind,
};

use crate::TaskQuestion;

/// The status of a workflow; with its place in the queue if it waits there, and with the reason if
/// hosts leave it alone.
pub(super) fn of(
    machine: &Machine,
    inside: &[TaskQuestion],
    place: Option<usize>,
    attention: Option<String>,
) -> WorkflowReport {
    let dag = machine.dag();
    let decisions = machine.decisions();
    let status = if attention.is_some() {
        WorkflowStatus::NeedsAttention
    } else if machine.status() == WorkflowStatus::New {
        WorkflowStatus::Queued
    } else {
        machine.status()
    };
    let mut value = exact_json!({
        "id": machine.flow(),
        "name": dag.name,
        "status": status,
        "events": machine.last_event(),
        "branch": machine.branch(),
        "checkpoint": machine.taken(),
        "output": machine.output(),
        "decisions": decisions.iter().map(decision).collect::<Vec<_>>(),
        "approvals": inside.iter().map(task_question).collect::<Vec<_>>(),
        "tasks": machine.tasks().iter().map(task).collect::<Vec<_>>(),
        "state": machine.state(),
    });
    if let Some(fields) = value.as_object_mut() {
        if let Some(place) = place {
            fields.insert("queue".to_owned(), exact_json!(place));
        }
        if let Some(attention) = attention {
            fields.insert("attention".to_owned(), exact_json!(attention));
        }
        if let Some(failure) = machine.failure() {
            fields.insert("failure".to_owned(), exact_json!(failure));
        }
        if let Some(report) = machine.last_rollback() {
            fields.insert("rollback".to_owned(), exact_json!(report));
        }
    }
    let asked = decisions
        .into_iter()
        .filter(|decision| decision.by == Decider::Human && decision.kind != DecisionKind::InDoubt);
    WorkflowReport {
        value,
        status,
        last_event: machine.last_event(),
        is_over: machine.status().is_over(),
        questions: asked.map(question).collect(),
    }
}

/// A tool call inside a task's code that waits for a person, as JSON.
pub fn task_question(question: &TaskQuestion) -> JsonValue {
    let TaskQuestion { task, id, is_in_doubt, tool } = question;
    let kind = if *is_in_doubt { ApprovalKind::InDoubt } else { ApprovalKind::Call };
    exact_json!({ "task": task, "id": id, "kind": kind, "tool": tool, "message": kind.message() })
}

fn decision(decision: &WorkflowDecision) -> JsonValue {
    with_task(exact_json!(decision))
}

fn task(view: &TaskView) -> JsonValue {
    let mut shown = with_task(exact_json!(view));
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    shown
}

/// Renames the field `instance` to `task`, the word clients know, over HTTP and at the command line
/// alike.
pub fn with_task(mut value: JsonValue) -> JsonValue {
    if let Some(fields) = value.as_object_mut()
        && let Some(instance) = fields.remove("instance")
    {
        fields.insert("task".to_owned(), instance);
    }
    value
}

fn question(decision: WorkflowDecision) -> WorkflowQuestion {
    WorkflowQuestion {
        decision: decision.id,
        message: decision.message,
        expires_ms: decision.deadline_ms,
    }
}

/// An event as clients see it.
pub(super) fn event(event: &WorkflowEvent) -> WorkflowEventInfo {
    let WorkflowEvent { seq, at_ms, branch, happened } = event;
    let mut data = match exact_json!(happened) {
        JsonValue::Object(fields) => fields,
        JsonValue::Null
        | JsonValue::Bool(_)
        | JsonValue::Number(_)
        | JsonValue::String(_)
        | JsonValue::Array(_) => JsonMap::new(),
    };
    let name = match data.remove("type") {
        Some(JsonValue::String(name)) => name,
        Some(_) | None => String::new(),
    };
    if let Some(asked) = data.remove("decision") {
        data.insert("decision".to_owned(), with_task(asked));
    }
    data.insert("branch".to_owned(), exact_json!(branch));
    let line = line(&name, &data);
    let effect = if matches!(happened, WorkflowEventKind::WorkflowEnded { .. }) {
        EventEffect::Ends
    } else if matches!(happened, WorkflowEventKind::RollbackStarted { .. }) {
        EventEffect::Resumes
    } else if is_turn(happened) {
        EventEffect::NeedsAttention
    } else {
        EventEffect::Continues
    };
    WorkflowEventInfo {
        seq: *seq,
        name,
        at_ms: *at_ms,
        data: JsonValue::Object(data),
        line,
        effect,
    }
}

fn is_turn(happened: &WorkflowEventKind) -> bool {
    matches!(
        happened,
        WorkflowEventKind::DecisionRequired { .. }
            | WorkflowEventKind::WorkflowPaused
            | WorkflowEventKind::RolledBack { .. }
            | WorkflowEventKind::TaskInDoubt { .. }
    )
}

fn line(name: &str, data: &JsonMap) -> String {
    let what = name.replace('_', " ");
    match data.get("task").and_then(JsonValue::as_str) {
        Some(task) => format!("{what}: {task}"),
        None => what,
    }
}
