//! `belljar workflow show`, `events` and `list`.

use std::{io, io::Write as _, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonValue, exact_json};
use belljar_project::{
    Project, ProjectWorkflows, TaskQuestion, is_looked_after, needs_attention, now_ms, status_of,
    task_question, task_questions, with_task,
};
use belljar_workflow::{
    Machine, SqliteWorkflowStore, WorkflowStore as _, Workflows,
    workflow_store::{CheckpointRow, WorkflowFilter, WorkflowRow},
};

use super::{
    board::TaskBoard,
    event_line::{decision_text, event_line, failure_text, rollback_text, task_question_text},
    find_workflow, graph,
    pause::{paused, paused_and_left},
    stored_workflows,
};
use crate::cli::{
    arguments::{WorkflowEventsArguments, WorkflowListArguments, WorkflowShowArguments},
    print_json,
    project::existing_store,
    terminal::{
        columns::columns,
        elapsed::ago,
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// Checkpoints that are shown to people, and those in the JSON output.
const SHOWN_CHECKPOINTS: usize = 10;
const MAX_CHECKPOINTS: u32 = 10_000;
/// Events fetched at once, and how long one poll for more waits.
const PAGE: u32 = 500;
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs `belljar workflow show`.
pub(super) async fn show(
    arguments: &WorkflowShowArguments,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let workflows = stored_workflows(project)?;
    let id = find_workflow(&workflows, &arguments.id).await?;
    let machine = workflows.look(&id, arguments.at).await?;
    if arguments.dot {
        io::stdout().write_all(graph::dot(&machine).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let store = workflows.store();
    let row = store.find(&id).await?.context("the workflow was deleted in the meantime")?;
    let mut checkpoints = store.checkpoints(&id, None, MAX_CHECKPOINTS).await?;
    keep_reachable(&mut checkpoints, &workflows.look(&id, None).await?);
    let inside = task_questions(store.project_store(), &machine).await?;
    if arguments.json {
        print_json(&as_json(&row, &machine, &inside, &checkpoints))?;
    } else {
        checkpoints.truncate(SHOWN_CHECKPOINTS);
        let text = as_text(&row, &machine, &inside, &checkpoints, TextStyle::of_stdout());
        io::stdout().write_all(text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything about a workflow that is driven here, as JSON.
pub(super) async fn full_report(
    workflows: &ProjectWorkflows,
    id: &str,
    at: Option<u64>,
) -> anyhow::Result<JsonValue> {
    let machine = workflows.load(id, at).await?;
    let row = workflows.find(id).await?.context("the workflow was deleted in the meantime")?;
    let inside = workflows.task_questions(&machine).await?;
    let mut checkpoints = workflows.checkpoints(id, None, MAX_CHECKPOINTS).await?;
    keep_reachable(&mut checkpoints, &workflows.load(id, None).await?);
    Ok(as_json(&row, &machine, &inside, &checkpoints))
}

/// Removes checkpoints of branches that were rolled back: no rollback or fork can reach them. Only
/// the newest state of a workflow knows them.
fn keep_reachable(checkpoints: &mut Vec<CheckpointRow>, newest: &Machine) {
    checkpoints.retain(|one| !newest.is_abandoned(one.seq));
}

fn as_json(
    row: &WorkflowRow,
    machine: &Machine,
    inside: &[TaskQuestion],
    checkpoints: &[CheckpointRow],
) -> JsonValue {
    let checkpoints: Vec<JsonValue> = checkpoints
        .iter()
        .map(|one| exact_json!({ "checkpoint": one.seq, "after": one.name, "at_ms": one.at_ms }))
        .collect();
    let decisions = machine.decisions().into_iter().map(|asked| with_task(exact_json!(asked)));
    let decisions: Vec<JsonValue> = decisions.collect();
    exact_json!({
        "id": row.id,
        "name": row.name,
        "caller": row.caller,
        "status": status(row, machine),
        "success": machine.status() == WorkflowStatus::Completed,
        "output": machine.output(),
        "failure": machine.failure(),
        "attention": needs_attention(row),
        "branch": machine.branch(),
        "checkpoint": machine.taken(),
        "last_event": machine.last_event(),
        "created_ms": row.created_ms,
        "updated_ms": row.updated_ms,
        "finished_ms": row.finished_ms,
        "resumable": is_resumable(row),
        "inputs": machine.inputs(),
        "state": machine.state(),
        "results": machine.results(),
        "tasks": machine.tasks().iter().map(|task| with_task(exact_json!(task))).collect::<Vec<_>>(),
        "decisions": decisions,
        "approvals": inside.iter().map(task_question).collect::<Vec<_>>(),
        "checkpoints": checkpoints,
        "rollback": machine.last_rollback(),
        "files": machine.files(),
        "dag": machine.dag(),
    })
}

fn as_text(
    row: &WorkflowRow,
    machine: &Machine,
    inside: &[TaskQuestion],
    checkpoints: &[CheckpointRow],
    style: TextStyle,
) -> String {
    let now = now_ms();
    let (id, status) = (&row.id, status(row, machine));
    let name = style.paint(TextRole::Strong, &visible(&row.name));
    let mut text = format!("{id}  {name}  {status}, created {}\n", ago(row.created_ms, now));
    if let Some(failure) = machine.failure() {
        text += &format!("{}\n", style.paint(TextRole::Bad, &failure_text(failure)));
    }
    if let Some(why) = needs_attention(row) {
        text += &format!("{}\n", style.paint(TextRole::Bad, &why));
    }
    text.push('\n');
    let now = u64::try_from(now).unwrap_or_default();
    for line in TaskBoard::of(&machine.tasks()).lines(now, style, 100) {
        text += &format!("{line}\n");
    }
    for decision in machine.decisions() {
        let asked = decision_text(id, &decision);
        text += &format!("\n{}\n", style.paint(TextRole::Caution, &asked));
    }
    for decision_text in inside {
        text +=
            &format!("\n{}\n", style.paint(TextRole::Caution, &task_question_text(decision_text)));
    }
    if let Some(report) = machine.last_rollback() {
        text += &format!("\n{}\n", rollback_text(report, style));
    }
    if !checkpoints.is_empty() {
        text += &format!("\n{}\n", style.paint(TextRole::Dim, "CHECKPOINT  AFTER"));
        for one in checkpoints {
            text += &format!("{:>10}  {}\n", one.seq, visible(&one.name));
        }
        let back = format!("belljar workflow rollback {id} --to N");
        text += &style.paint(TextRole::Dim, &format!("to roll back: {back}\n"));
    }
    if let Some(how) = how_to_go_on(row) {
        text += &format!("\n{how}\n");
    }
    text
}

/// The status as people see it, including `queued` and `needs_attention`.
fn status(row: &WorkflowRow, machine: &Machine) -> WorkflowStatus {
    let shown = status_of(row);
    let is_of_row = matches!(shown, WorkflowStatus::Queued | WorkflowStatus::NeedsAttention);
    if is_of_row { shown } else { machine.status() }
}

/// The command with which a person continues the workflow, if it needs one.
fn how_to_go_on(row: &WorkflowRow) -> Option<String> {
    let id = &row.id;
    let is_paused = row.finished_ms.is_none() && row.status == WorkflowStatus::Paused;
    match (is_paused, is_resumable(row)) {
        (true, true) => Some(paused_and_left(id)),
        (true, false) => Some(paused(id)),
        (false, true) => Some(format!("to resume it: belljar workflow resume {id}")),
        (false, false) => None,
    }
}

/// Whether the workflow has not ended and no process drives it.
fn is_resumable(row: &WorkflowRow) -> bool {
    row.finished_ms.is_none() && !is_looked_after(row)
}

/// Runs `belljar workflow events`.
pub(super) async fn events(
    arguments: &WorkflowEventsArguments,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let workflows = stored_workflows(project)?;
    let id = find_workflow(&workflows, &arguments.id).await?;
    let style = TextStyle::of_stdout();
    let mut after = arguments.after;
    loop {
        let timeout = if arguments.follow { FOLLOW_TIMEOUT } else { Duration::ZERO };
        let events = workflows.events(&id, after, PAGE, timeout).await?;
        for event in &events {
            after = event.seq;
            if arguments.json {
                writeln!(io::stdout(), "{}", serde_json::to_string(event)?)?;
            } else if let Some(line) = event_line(&id, event, style) {
                writeln!(io::stdout(), "{:>5}  {line}", event.seq)?;
            }
        }
        if events.is_empty() && (!arguments.follow || has_ended(&workflows, &id, after).await?) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

async fn has_ended(
    workflows: &Workflows<SqliteWorkflowStore>,
    id: &str,
    after: u64,
) -> anyhow::Result<bool> {
    let store: &Arc<SqliteWorkflowStore> = workflows.store();
    let row = store.find(id).await?;
    let is_over = row.is_none_or(|row| row.finished_ms.is_some());
    // Includes events between the two queries.
    Ok(is_over && workflows.events(id, after, 1, Duration::ZERO).await?.is_empty())
}

/// Runs `belljar workflow list`.
pub(super) async fn list(
    arguments: &WorkflowListArguments,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let asked = arguments.status.as_deref();
    let status = asked.and_then(WorkflowStatus::from_name);
    // No workflow has a status that does not exist.
    let is_unknown = asked.is_some() && status.is_none();
    let rows = match existing_store(project)? {
        Some(store) if !is_unknown => {
            let filter = WorkflowFilter { status, ..WorkflowFilter::default() };
            SqliteWorkflowStore::new(store).list(filter, None, arguments.limit).await?
        }
        _ => Vec::new(),
    };
    if arguments.json {
        let all: Vec<JsonValue> = rows.iter().map(row_json).collect();
        print_json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        writeln!(io::stderr(), "this project has no workflows yet: belljar workflow run FILE")?;
        return Ok(ExitCode::SUCCESS);
    }
    let now = now_ms();
    let cells: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            let began = ago(row.created_ms, now);
            [
                row.id.clone(),
                status_of(row).to_string(),
                began,
                row.caller.clone(),
                row.name.clone(),
            ]
        })
        .collect();
    let table =
        columns(["WORKFLOW", "STATUS", "CREATED", "BY", "NAME"], &cells, TextStyle::of_stdout());
    io::stdout().write_all(table.as_bytes())?;
    let goes_on = |row: &&WorkflowRow| is_resumable(row) && row.status != WorkflowStatus::Paused;
    if let Some(row) = rows.iter().find(goes_on) {
        writeln!(io::stderr(), "to resume one: belljar workflow resume {}", row.id)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row_json(row: &WorkflowRow) -> JsonValue {
    exact_json!({
        "id": row.id,
        "name": row.name,
        "status": status_of(row),
        "caller": row.caller,
        "resumable": is_resumable(row),
        "created_ms": row.created_ms,
        "updated_ms": row.updated_ms,
        "finished_ms": row.finished_ms,
    })
}
