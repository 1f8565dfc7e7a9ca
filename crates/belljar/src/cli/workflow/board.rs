//! The tasks of a workflow as a tree that is redrawn while it runs.

use std::collections::HashMap;

use belljar_contract::TaskStatus;
use belljar_workflow::{TaskView, WorkflowEvent, WorkflowEventKind};

use crate::cli::terminal::{
    columns::cut,
    style::{TextRole, TextStyle},
    visible::visible,
};

/// Most lines of the tree, and most children of one task.
const MOST_LINES: usize = 30;
const MOST_CHILDREN: usize = 8;

/// All tasks with their states.
#[derive(Debug, Default)]
pub(super) struct TaskBoard {
    order: Vec<String>,
    rows: HashMap<String, TaskRow>,
}

#[derive(Debug, Clone)]
struct TaskRow {
    status: TaskStatus,
    started_ms: Option<u64>,
    took_ms: Option<u64>,
    note: String,
}

impl TaskBoard {
    /// The tasks of a workflow in its current state.
    pub(super) fn of(tasks: &[TaskView]) -> Self {
        let mut board = Self::default();
        for task in tasks {
            let row = board.row(&task.instance);
            row.status = task.status;
            row.started_ms = task.started_ms;
            row.took_ms =
                task.ended_ms.zip(task.started_ms).map(|(end, begin)| end - begin.min(end));
            row.note = task.failure.as_ref().map(|why| why.message.clone()).unwrap_or_default();
        }
        board
    }

    fn row(&mut self, instance: &str) -> &mut TaskRow {
        if !self.rows.contains_key(instance) {
            self.order.push(instance.to_owned());
        }
        self.rows.entry(instance.to_owned()).or_insert(TaskRow {
            status: TaskStatus::Waiting,
            started_ms: None,
            took_ms: None,
            note: String::new(),
        })
    }

    /// Applies an event to the rows of its tasks.
    pub(super) fn take(&mut self, event: &WorkflowEvent) {
        let at_ms = event.at_ms;
        match &event.happened {
            WorkflowEventKind::TaskStarted { task, .. } => {
                let row = self.row(task);
                (row.status, row.started_ms) = (TaskStatus::Running, Some(at_ms));
            }
            WorkflowEventKind::TaskCompleted { task, ms } => {
                let row = self.row(task);
                (row.status, row.took_ms) = (TaskStatus::Completed, Some(*ms));
                row.note.clear();
            }
            WorkflowEventKind::TaskFailed { task, failure, continued } => {
                let status = if *continued { TaskStatus::Continued } else { TaskStatus::Failed };
                self.note(task, status, &failure.message);
            }
            WorkflowEventKind::TaskSkipped { task, why } => {
                self.note(task, TaskStatus::Skipped, why)
            }
            WorkflowEventKind::TaskCancelled { task } => self.note(task, TaskStatus::Cancelled, ""),
            WorkflowEventKind::TaskRetrying { task, failure, .. } => {
                self.note(task, TaskStatus::Retrying, &failure.message);
            }
            WorkflowEventKind::TaskInDoubt { task, .. } => {
                self.note(task, TaskStatus::InDoubt, "it is unknown whether it happened");
            }
            WorkflowEventKind::DecisionRequired { decision } => {
                self.note(&decision.instance, TaskStatus::Deciding, &decision.message);
            }
            WorkflowEventKind::DecisionMade { task, .. } => {
                self.note(task, TaskStatus::Running, "")
            }
            WorkflowEventKind::RoundStarted { task, round } => {
                self.note(task, TaskStatus::Running, &format!("round {round}"));
            }
            WorkflowEventKind::TasksInjected { tasks }
            | WorkflowEventKind::Replanned { tasks, .. } => {
                tasks.iter().for_each(|task| {
                    self.row(task);
                });
            }
            WorkflowEventKind::WorkflowStarted { .. }
            | WorkflowEventKind::WorkflowResumed
            | WorkflowEventKind::WorkflowPaused
            | WorkflowEventKind::WorkflowContinued
            | WorkflowEventKind::WorkflowEnded { .. }
            | WorkflowEventKind::TaskFallback { .. }
            | WorkflowEventKind::TaskLogged { .. }
            | WorkflowEventKind::CodeExecutionStarted { .. }
            | WorkflowEventKind::CodeExecutionCompleted { .. }
            | WorkflowEventKind::CodeExecutionFailed { .. }
            | WorkflowEventKind::SpeculationAdopted { .. }
            | WorkflowEventKind::SpeculationDropped { .. }
            | WorkflowEventKind::ArgumentsModified { .. }
            | WorkflowEventKind::FilesConflict { .. }
            | WorkflowEventKind::CheckpointSaved { .. }
            | WorkflowEventKind::RollbackStarted { .. }
            | WorkflowEventKind::TaskUndone { .. }
            | WorkflowEventKind::RolledBack { .. } => {}
        }
    }

    fn note(&mut self, task: &str, status: TaskStatus, note: &str) {
        let row = self.row(task);
        row.status = status;
        note.clone_into(&mut row.note);
    }

    /// The tree, one line per visible task.
    pub(super) fn lines(&self, now_ms: u64, style: TextStyle, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for name in self.order.iter().filter(|name| parent(name).is_none()) {
            self.add(name, 0, now_ms, (style, width), &mut lines);
        }
        let left_out = lines.len().saturating_sub(MOST_LINES);
        if left_out > 0 {
            lines.truncate(MOST_LINES);
            lines.push(style.paint(TextRole::Dim, &format!("… and {left_out} more")));
        }
        lines
    }

    fn add(
        &self,
        name: &str,
        depth: usize,
        now_ms: u64,
        (style, width): (TextStyle, usize),
        lines: &mut Vec<String>,
    ) {
        let Some(row) = self.rows.get(name) else { return };
        let children: Vec<&String> =
            self.order.iter().filter(|child| parent(child) == Some(name)).collect();
        let over =
            |child: &&&String| self.rows.get(child.as_str()).is_some_and(|row| is_over(row.status));
        let count = match children.len() {
            0 => String::new(),
            all => format!(" {}/{all}", children.iter().filter(over).count()),
        };
        let (mark, role) = mark(row.status);
        let time = match (row.took_ms, row.started_ms) {
            (Some(ms), _) => format!(" {}", span(ms)),
            (None, Some(began)) if !is_over(row.status) => {
                format!(" {}", span(now_ms.saturating_sub(began)))
            }
            (None, _) => String::new(),
        };
        let note = if row.note.is_empty() { String::new() } else { format!("  {}", row.note) };
        let text = format!("{}{count}{time}{note}", visible(name)).replace(['\n', '\r'], " ");
        let indent = "  ".repeat(depth);
        let room = width.saturating_sub(indent.len() + 4).max(20);
        lines.push(format!("{indent}{} {}", style.paint(role, mark), cut(&visible(&text), room)));
        if is_over(row.status) && row.status != TaskStatus::Failed {
            return;
        }
        let open = children.iter().filter(|child| !over(child));
        for child in open.take(MOST_CHILDREN) {
            self.add(child, depth + 1, now_ms, (style, width), lines);
        }
    }
}

/// The container of an instance: `each` of `each[3]`, `again` of `again#2/step`.
fn parent(instance: &str) -> Option<&str> {
    if let Some((before, _)) = instance.rsplit_once('/') {
        return Some(before.rsplit_once('#').map_or(before, |(container, _)| container));
    }
    if instance.ends_with(']') {
        return instance.rsplit_once('[').map(|(container, _)| container);
    }
    instance.rsplit_once('~').map(|(task, _)| task)
}

fn is_over(status: TaskStatus) -> bool {
    match status {
        TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Continued
        | TaskStatus::Skipped
        | TaskStatus::Cancelled => true,
        TaskStatus::Waiting
        | TaskStatus::Ready
        | TaskStatus::Running
        | TaskStatus::Retrying
        | TaskStatus::Deciding
        | TaskStatus::Sleeping
        | TaskStatus::InDoubt => false,
    }
}

fn mark(status: TaskStatus) -> (&'static str, TextRole) {
    match status {
        TaskStatus::Waiting | TaskStatus::Ready => ("·", TextRole::Dim),
        TaskStatus::Running => ("▸", TextRole::Accent),
        TaskStatus::Sleeping => ("z", TextRole::Dim),
        TaskStatus::Retrying => ("↻", TextRole::Caution),
        TaskStatus::Deciding | TaskStatus::InDoubt => ("?", TextRole::Caution),
        TaskStatus::Completed => ("✓", TextRole::Good),
        TaskStatus::Failed | TaskStatus::Continued => ("✗", TextRole::Bad),
        TaskStatus::Skipped | TaskStatus::Cancelled => ("–", TextRole::Dim),
    }
}

/// A duration for people.
pub(super) fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use belljar_workflow::{WorkflowEvent, WorkflowEventKind};

    use super::{TaskBoard, TextStyle, parent, span};

    fn happened(seq: u64, happened: WorkflowEventKind) -> WorkflowEvent {
        WorkflowEvent { seq, at_ms: 1000, branch: 0, happened }
    }

    #[test]
    fn f4_a_tree_shows_what_runs_and_counts_what_is_over() {
        let mut board = TaskBoard::default();
        let started = |task: &str| WorkflowEventKind::TaskStarted {
            task: task.to_owned(),
            kind: "foreach".to_owned(),
            attempt: 1,
            speculative: false,
        };
        board.take(&happened(1, started("each")));
        board.take(&happened(2, started("each[0]")));
        board.take(&happened(3, started("each[1]")));
        let done = WorkflowEventKind::TaskCompleted { task: "each[0]".to_owned(), ms: 7 };
        board.take(&happened(4, done));
        let lines = board.lines(3500, TextStyle::PLAIN, 80);
        assert_eq!(lines, ["▸ each 1/2 2.5 s", "  ▸ each[1] 2.5 s"]);
    }

    #[test]
    fn f4_an_instance_knows_what_it_is_part_of() {
        assert_eq!(parent("each[3]"), Some("each"));
        assert_eq!(parent("again#2/step"), Some("again"));
        assert_eq!(parent("sub/each[1]"), Some("sub"));
        assert_eq!(parent("call~fallback"), Some("call"));
        assert_eq!(parent("fetch"), None);
        assert_eq!([span(999), span(1500), span(61_000)], ["999 ms", "1.5 s", "1 min 1 s"]);
    }
}
