//! The events of a workflow, numbered without a gap.

use belljar_contract::{Language, WorkflowStatus};
use serde::{Deserialize, Serialize};

use crate::effect::{RollbackReport, TaskFailure, WorkflowDecision};

/// One event of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowEvent {
    /// 1, 2, 3 … over the whole life of the workflow, rollbacks included.
    pub seq: u64,
    /// The time of the input that caused the event.
    pub at_ms: u64,
    /// The branch the workflow was on; it grows with every rollback.
    pub branch: u32,
    /// Flattened: its `type` and fields stand beside `seq` in JSON.
    #[serde(flatten)]
    pub happened: WorkflowEventKind,
}

/// The kinds of events, each with its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkflowEventKind {
    /// The workflow began to run its tasks.
    WorkflowStarted {
        /// The name of the workflow, from its file.
        name: String,
    },
    /// A host has taken over the workflow.
    WorkflowResumed,
    /// The workflow was paused: nothing starts.
    WorkflowPaused,
    /// The workflow was continued: tasks start again.
    WorkflowContinued,
    /// The workflow ended; only a rollback may follow.
    WorkflowEnded {
        /// `completed`, `failed` or `aborted`.
        status: WorkflowStatus,
        /// The reason, unless the workflow completed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<TaskFailure>,
    },
    /// An attempt at a task began.
    TaskStarted {
        /// The path of the instance.
        task: String,
        /// The type of the task, as in its file.
        kind: String,
        /// The attempt, counted from 1.
        attempt: u32,
        /// The task runs ahead of a decision.
        #[serde(default, skip_serializing_if = "is_false")]
        speculative: bool,
    },
    /// A task ended with a result.
    TaskCompleted {
        /// The path of the instance.
        task: String,
        /// How long its last attempt took.
        ms: u64,
    },
    /// A task failed for good: no further attempt, no fallback.
    TaskFailed {
        /// The path of the instance.
        task: String,
        /// The failure of its last attempt.
        failure: TaskFailure,
        /// Whether the workflow continues without it.
        continued: bool,
    },
    /// A task is skipped.
    TaskSkipped {
        /// The path of the instance.
        task: String,
        /// The reason: `when`, `dependencies`, `command` or `goto`.
        why: String,
    },
    /// A task was stopped, or never began, because its container ended.
    TaskCancelled {
        /// The path of the instance.
        task: String,
    },
    /// An attempt failed and another will follow.
    TaskRetrying {
        /// The path of the instance.
        task: String,
        /// The attempt that failed, counted from 1.
        attempt: u32,
        /// The failure of that attempt.
        failure: TaskFailure,
        /// When the next attempt begins. Not called `at_ms`, which is the event's own time.
        next_ms: u64,
    },
    /// A fallback runs in place of a task that failed.
    TaskFallback {
        /// The path of the instance that failed.
        task: String,
        /// The failure that the fallback makes up for.
        failure: TaskFailure,
    },
    /// Whether a task took effect is unknown.
    TaskInDoubt {
        /// The path of the instance.
        task: String,
        /// The attempt, counted from 1.
        attempt: u32,
    },
    /// A task printed something.
    TaskLogged {
        /// The path of the instance.
        task: String,
        /// The printed lines, oldest first.
        lines: Vec<String>,
    },
    /// Code began to run.
    CodeExecutionStarted {
        /// The path of the instance.
        task: String,
        /// The attempt, counted from 1.
        attempt: u32,
        /// The language of the code.
        language: Language,
    },
    /// Code returned a result.
    CodeExecutionCompleted {
        /// The path of the instance.
        task: String,
        /// The attempt, counted from 1.
        attempt: u32,
        /// How long the code took.
        ms: u64,
    },
    /// Code failed; `TaskFailed` or `TaskRetrying` follows.
    CodeExecutionFailed {
        /// The path of the instance.
        task: String,
        /// The attempt, counted from 1.
        attempt: u32,
        /// The failure of the code.
        failure: TaskFailure,
    },
    /// A round of a loop begins.
    RoundStarted {
        /// The path of the loop's instance.
        task: String,
        /// The number of the round, from 1.
        round: u32,
    },
    /// A person or agent has to decide.
    DecisionRequired {
        /// The question and who may answer it.
        decision: WorkflowDecision,
    },
    /// A decision was taken, by an answer or by its deadline.
    DecisionMade {
        /// The id of the decision.
        decision: String,
        /// The path of the instance that waited for it.
        task: String,
        /// `approve`, `reject`, `modify`, `timeout`, `retry`, `use`, `fail` or `withdrawn`.
        choice: String,
        /// The sender of the answer.
        by: String,
    },
    /// The result of a task that ran ahead of its decision is used.
    SpeculationAdopted {
        /// The path of the instance.
        task: String,
    },
    /// The result of a task that ran ahead of its decision is dropped.
    SpeculationDropped {
        /// The path of the instance.
        task: String,
    },
    /// A command added tasks.
    TasksInjected {
        /// The paths of the added instances.
        tasks: Vec<String>,
    },
    /// A command replaced the tasks that had not begun.
    Replanned {
        /// How often the workflow was replanned so far.
        replans: u32,
        /// The paths of the new instances.
        tasks: Vec<String>,
        /// The paths of the replaced instances.
        dropped: Vec<String>,
    },
    /// A command changed the arguments of a task.
    ArgumentsModified {
        /// The path of the instance.
        task: String,
    },
    /// Two tasks that ran in parallel changed the same file; the later change stays.
    FilesConflict {
        /// The path of the instance whose change stays.
        task: String,
        /// The paths of the files.
        paths: Vec<String>,
    },
    /// The workflow has a new checkpoint.
    CheckpointSaved {
        /// The number to give to a rollback or fork.
        checkpoint: u64,
    },
    /// The workflow begins to go back to a checkpoint.
    RollbackStarted {
        /// The number of the checkpoint.
        to: u64,
        /// The instances that will be undone, in that order.
        compensations: Vec<String>,
    },
    /// A task's compensation was performed.
    TaskUndone {
        /// The path of the instance that was undone.
        task: String,
    },
    /// The rollback has ended; the workflow is paused.
    RolledBack {
        /// The effects that were undone, and those that remain.
        report: RollbackReport,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}
