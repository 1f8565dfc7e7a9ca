//! What a workflow tells about itself, numbered without a gap.

use serde::{Deserialize, Serialize};

use crate::effect::{RollbackReport, TaskFailure, WorkflowDecision, WorkflowStatus};

/// Something that happened to a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowEvent {
    /// 1, 2, 3 … over the whole life of the workflow, rollbacks included.
    pub seq: u64,
    /// When, by the clock of the input that caused it.
    pub at_ms: u64,
    /// On which branch: grows with every rollback.
    pub branch: u32,
    /// What.
    #[serde(flatten)]
    pub happened: WorkflowEventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkflowEventKind {
    /// It began.
    WorkflowStarted {
        /// Its name.
        name: String,
    },
    /// A host took it over.
    WorkflowResumed,
    /// Nothing starts any more.
    WorkflowPaused,
    /// Things start again.
    WorkflowContinued,
    /// It ended.
    WorkflowEnded {
        /// How.
        status: WorkflowStatus,
        /// Why, if not well.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<TaskFailure>,
    },
    /// An attempt at a task began.
    TaskStarted {
        /// Which instance.
        task: String,
        /// Which kind of task.
        kind: String,
        /// Which attempt.
        attempt: u32,
        /// Ahead of a decision.
        #[serde(default, skip_serializing_if = "is_false")]
        speculative: bool,
    },
    /// A task ended well.
    TaskCompleted {
        /// Which instance.
        task: String,
        /// How long its last attempt took.
        ms: u64,
    },
    /// A task failed for good.
    TaskFailed {
        /// Which instance.
        task: String,
        /// Why.
        failure: TaskFailure,
        /// Whether the workflow goes on all the same.
        continued: bool,
    },
    /// A task is left out.
    TaskSkipped {
        /// Which instance.
        task: String,
        /// Why: `when`, `dependencies`, `command`, `goto`.
        why: String,
    },
    /// A task was stopped, or never began, because what it is part of ended.
    TaskCancelled {
        /// Which instance.
        task: String,
    },
    /// An attempt failed; there will be another.
    TaskRetrying {
        /// Which instance.
        task: String,
        /// Which attempt failed.
        attempt: u32,
        /// Why.
        failure: TaskFailure,
        /// When the next begins. Not called `at_ms`, as the event's own time is.
        next_ms: u64,
    },
    /// Another task is done in its place.
    TaskFallback {
        /// Which instance.
        task: String,
        /// Why.
        failure: TaskFailure,
    },
    /// Nobody knows whether it happened.
    TaskInDoubt {
        /// Which instance.
        task: String,
        /// Which attempt.
        attempt: u32,
    },
    /// What a task said.
    TaskLogged {
        /// Which instance.
        task: String,
        /// What.
        lines: Vec<String>,
    },
    /// Code began.
    CodeExecutionStarted {
        /// Which instance.
        task: String,
        /// Which attempt.
        attempt: u32,
        /// Which language.
        language: String,
    },
    /// Code ended well.
    CodeExecutionCompleted {
        /// Which instance.
        task: String,
        /// Which attempt.
        attempt: u32,
        /// How long it took.
        ms: u64,
    },
    /// Code failed.
    CodeExecutionFailed {
        /// Which instance.
        task: String,
        /// Which attempt.
        attempt: u32,
        /// Why.
        failure: TaskFailure,
    },
    /// A round of a loop begins.
    RoundStarted {
        /// The loop's instance.
        task: String,
        /// Which round, from 1.
        round: u32,
    },
    /// Somebody must decide.
    DecisionRequired {
        /// What.
        decision: WorkflowDecision,
    },
    /// Somebody has, or time has.
    DecisionMade {
        /// Which decision.
        decision: String,
        /// Which instance.
        task: String,
        /// `approve`, `reject`, `modify`, `timeout`, `retry`, `use`, `fail` or `withdrawn`.
        choice: String,
        /// Who.
        by: String,
    },
    /// What ran ahead was right.
    SpeculationAdopted {
        /// Which instance.
        task: String,
    },
    /// What ran ahead is forgotten.
    SpeculationDropped {
        /// Which instance.
        task: String,
    },
    /// The workflow was changed.
    TasksInjected {
        /// The new ones.
        tasks: Vec<String>,
    },
    /// The workflow was changed from here on.
    Replanned {
        /// How often so far.
        replans: u32,
        /// The new ones.
        tasks: Vec<String>,
        /// Those that went.
        dropped: Vec<String>,
    },
    /// A task's arguments were changed.
    ArgumentsModified {
        /// Which instance.
        task: String,
    },
    /// Two tasks that ran at once changed one file; the later change stands.
    FilesConflict {
        /// The later instance.
        task: String,
        /// Which paths.
        paths: Vec<String>,
    },
    /// There is a state to come back to.
    CheckpointSaved {
        /// Its number.
        checkpoint: u64,
    },
    /// It goes back.
    RollbackStarted {
        /// To which checkpoint.
        to: u64,
        /// What will be undone, first to last.
        compensations: Vec<String>,
    },
    /// Something was undone.
    TaskUndone {
        /// Which instance.
        task: String,
    },
    /// It is back; paused.
    RolledBack {
        /// What came of it.
        report: RollbackReport,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}
