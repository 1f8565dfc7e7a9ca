//! Events of a workflow, one line each.

use belljar_contract::WorkflowStatus;
use belljar_project::TaskQuestion;
use belljar_workflow::{
    DecisionKind, RollbackReport, TaskFailure, WhyNot, WorkflowDecision, WorkflowEvent,
    WorkflowEventKind,
};

use crate::cli::terminal::{
    style::{TextRole, TextStyle},
    visible::visible,
};

/// An event without its time; `None` if a person need not see it.
#[expect(clippy::too_many_lines, reason = "a table: an arm for each thing that can happen")]
pub(super) fn event_line(flow: &str, event: &WorkflowEvent, style: TextStyle) -> Option<String> {
    let good = |text: String| Some(style.paint(TextRole::Good, &text));
    let bad = |text: String| Some(style.paint(TextRole::Bad, &text));
    let dim = |text: String| Some(style.paint(TextRole::Dim, &text));
    let caution = |text: String| Some(style.paint(TextRole::Caution, &text));
    match &event.happened {
        WorkflowEventKind::WorkflowStarted { name } => {
            dim(format!("workflow {} started", visible(name)))
        }
        WorkflowEventKind::WorkflowResumed => dim("resumed".to_owned()),
        WorkflowEventKind::WorkflowPaused => caution(WorkflowStatus::Paused.to_string()),
        WorkflowEventKind::WorkflowContinued => dim("continued".to_owned()),
        WorkflowEventKind::WorkflowEnded { status, failure } => match failure {
            None => good(format!("workflow {status}")),
            Some(failure) => bad(format!("workflow {status}: {}", failure_text(failure))),
        },
        WorkflowEventKind::TaskStarted { task, attempt, speculative, .. } => {
            let ahead = if *speculative { " ahead of a decision" } else { "" };
            let again = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
            dim(format!("{} started{again}{ahead}", visible(task)))
        }
        WorkflowEventKind::TaskCompleted { task, ms } => {
            good(format!("{} completed in {ms} ms", visible(task)))
        }
        WorkflowEventKind::TaskFailed { task, failure, continued } => {
            let on = if *continued { ", and the workflow continues" } else { "" };
            bad(format!("{} failed{on}: {}", visible(task), failure_text(failure)))
        }
        WorkflowEventKind::TaskSkipped { task, why } => {
            dim(format!("{} skipped ({why})", visible(task)))
        }
        WorkflowEventKind::TaskCancelled { task } => dim(format!("{} cancelled", visible(task))),
        WorkflowEventKind::TaskRetrying { task, attempt, failure, .. } => caution(format!(
            "{}: attempt {attempt} failed: {}",
            visible(task),
            failure_text(failure)
        )),
        WorkflowEventKind::TaskFallback { task, failure } => {
            caution(format!("{} falls back: {}", visible(task), failure_text(failure)))
        }
        WorkflowEventKind::TaskInDoubt { task, .. } => {
            caution(format!("{}: it is unknown whether it happened", visible(task)))
        }
        WorkflowEventKind::TaskLogged { task, lines } => {
            let lines: Vec<String> =
                lines.iter().map(|line| format!("{} | {}", visible(task), visible(line))).collect();
            dim(lines.join("\n"))
        }
        WorkflowEventKind::DecisionRequired { decision } => caution(decision_text(flow, decision)),
        WorkflowEventKind::DecisionMade { decision, task, choice, by } => {
            dim(format!("decision {decision} of {}: {choice}, by {by}", visible(task)))
        }
        WorkflowEventKind::RollbackStarted { to, .. } => {
            caution(format!("rolling back to checkpoint {to}"))
        }
        WorkflowEventKind::RolledBack { report } => Some(rollback_text(report, style)),
        WorkflowEventKind::TaskUndone { task } => dim(format!("{} undone", visible(task))),
        WorkflowEventKind::FilesConflict { task, paths } => {
            caution(format!("{} and another task changed {}", visible(task), paths.join(", ")))
        }
        WorkflowEventKind::RoundStarted { task, round } => {
            dim(format!("{}: round {round}", visible(task)))
        }
        WorkflowEventKind::TasksInjected { tasks } => {
            dim(format!("tasks added: {}", tasks.join(", ")))
        }
        WorkflowEventKind::Replanned { tasks, dropped, .. } => {
            dim(format!("replanned: {} in place of {}", tasks.join(", "), dropped.join(", ")))
        }
        WorkflowEventKind::ArgumentsModified { task } => {
            dim(format!("{}: new arguments", visible(task)))
        }
        WorkflowEventKind::SpeculationAdopted { task } => {
            dim(format!("{}: the speculative result is used", visible(task)))
        }
        WorkflowEventKind::SpeculationDropped { task } => {
            dim(format!("{}: the speculative result is dropped", visible(task)))
        }
        WorkflowEventKind::CodeExecutionStarted { .. }
        | WorkflowEventKind::CodeExecutionCompleted { .. }
        | WorkflowEventKind::CodeExecutionFailed { .. }
        | WorkflowEventKind::CheckpointSaved { .. } => None,
    }
}

/// A failure with its code.
pub(super) fn failure_text(failure: &TaskFailure) -> String {
    format!("{} [{}]", visible(&failure.message), failure.code)
}

/// A decision and the commands that answer it.
pub(super) fn decision_text(flow: &str, decision: &WorkflowDecision) -> String {
    let WorkflowDecision { id, message, instance, kind, failure, .. } = decision;
    let why =
        failure.as_ref().map(|failure| format!(" ({})", failure_text(failure))).unwrap_or_default();
    let about = format!("decision {id} of {}: {}{why}", visible(instance), visible(message));
    let command = format!("belljar workflow command {flow}");
    match kind {
        DecisionKind::InDoubt => format!(
            "{about}\n  find out whether it happened, then: {command} resolve '{}' --use JSON (or \
             --retry, --fail)",
            visible(instance)
        ),
        DecisionKind::Approval
        | DecisionKind::Before
        | DecisionKind::After
        | DecisionKind::OnError => {
            format!("{about}\n  to answer: {command} approve {id} (or reject {id})")
        }
    }
}

/// A tool call inside a task's code that waits for a person, with the commands that decide it.
pub(super) fn task_question_text(decision_text: &TaskQuestion) -> String {
    let TaskQuestion { task, id, is_in_doubt, tool } = decision_text;
    let (task, tool) = (visible(task), visible(tool));
    match is_in_doubt {
        true => format!(
            "{task} waits: its call of {tool} may have happened\n  find out whether it did, then: \
             belljar approvals use {id} --result JSON (or retry {id}, deny {id})"
        ),
        false => format!(
            "{task} waits: its call of {tool} needs approval\n  to see it: belljar approvals show \
             {id}, then approve {id} (or deny {id})"
        ),
    }
}

/// The report of a rollback.
pub(super) fn rollback_text(report: &RollbackReport, style: TextStyle) -> String {
    let mut lines =
        vec![format!("rolled back to checkpoint {}, on branch {}", report.to, report.branch)];
    for undone in &report.undone {
        lines.push(style.paint(TextRole::Good, &format!("  undone: {}", visible(undone))));
    }
    for left in &report.not_undone {
        let why = match left.why {
            WhyNot::NoCompensation => "it has no compensation",
            WhyNot::Failed => "its compensation failed",
            WhyNot::InDoubt => "it is unknown whether it happened",
            WhyNot::DoneBeforeFork => "the original workflow did it before the fork",
        };
        let more = left.failure.as_ref().map(|failure| format!(": {}", failure_text(failure)));
        let text = format!(
            "  not undone: {} ({why}){}",
            visible(&left.instance),
            more.unwrap_or_default()
        );
        lines.push(style.paint(TextRole::Caution, &text));
    }
    lines.join("\n")
}
