//! The inputs and effects of a workflow's machine.
//!
//! All of it is data: a [`MachineInput`] is journalled before its [`Effect`]s are performed, and
//! the same inputs give the same effects, byte for byte. A driver keeps two promises: it answers
//! every [`TaskStart`] with exactly one [`InputKind::Ended`], also after an [`Effect::Cancel`]; and
//! it performs no effect before the input that caused it is durable.

use std::collections::BTreeMap;

use belljar_contract::{CheckpointId, SessionId, WorkflowStatus};
use belljar_contract::{JsonMap, JsonValue};
use serde::{Deserialize, Serialize};

use crate::command::{Acknowledgement, WorkflowCommand};
use crate::dag::{Code, Decider, SandboxAction, ToolAction};
use crate::event::WorkflowEvent;
use crate::machine::Machine;

/// One thing that happened, and the time at which it did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MachineInput {
    /// Milliseconds since 1970 by the driver's clock, which never goes back while the host lives.
    pub now_ms: u64,
    /// Flattened: its fields stand beside `now_ms` in the journal.
    #[serde(flatten)]
    pub what: InputKind,
}

/// The kinds of things a machine reacts to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum InputKind {
    /// The workflow begins. It is the first input and comes once.
    Begin,
    /// The answer to a [`TaskStart`]: the attempt has ended.
    Ended {
        /// The instance, as in the start that is answered.
        instance: String,
        /// The attempt, as in the start that is answered.
        attempt: u32,
        /// The value or failure, and the changes to files and sessions.
        outcome: TaskOutcome,
    },
    /// A timer went off. A timer that the machine has withdrawn meanwhile does nothing.
    Fired {
        /// The id from [`Effect::Timer`].
        timer: u64,
    },
    /// A person or agent sent a command. [`WorkflowCommand::RollBack`] comes as
    /// [`InputKind::RollBack`] instead.
    Command {
        /// Chosen by the sender: a second command with the same id changes nothing.
        id: String,
        /// The sender: an agent, as [`is_agent`](crate::is_agent) says, or a person.
        by: String,
        /// The command itself; the machine may refuse it.
        command: WorkflowCommand,
    },
    /// A host has taken over the workflow. Its tasks under way are known only from their intents.
    Resumed {
        /// Tasks that had been started and had not ended.
        open: Vec<OpenIntent>,
    },
    /// Go back to a checkpoint.
    RollBack {
        /// The id of the command, as for [`InputKind::Command`].
        id: String,
        /// The sender, as for [`InputKind::Command`].
        by: String,
        /// The number of the checkpoint.
        to: u64,
        /// The machine at that checkpoint. It is not journalled: the same commit holds a snapshot.
        base: Box<Machine>,
    },
}

/// A task that had been started when its host went away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenIntent {
    /// The instance, as in its [`TaskStart`].
    pub instance: String,
    /// The attempt, as in its [`TaskStart`].
    pub attempt: u32,
    /// Decided when the task was started, by the performer.
    pub again: Repeatability,
}

/// Whether an effect may be performed again after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeatability {
    /// The effect was certainly not begun.
    NotBegun,
    /// Repeating does no harm: the tool says so, or the run has a journal of its own.
    Harmless,
    /// Unknown: the task is in doubt, unless its own `idempotent` says otherwise.
    Unknown,
}

/// A step that the driver has to perform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Perform a task, and answer with [`InputKind::Ended`].
    Start(TaskStart),
    /// Stop performing a task; `Ended` answers it all the same.
    Cancel {
        /// The instance, as in its [`TaskStart`].
        instance: String,
        /// The attempt, as in its [`TaskStart`].
        attempt: u32,
    },
    /// Send [`InputKind::Fired`] at a time.
    Timer {
        /// Unique within the workflow.
        timer: u64,
        /// Milliseconds since 1970, by the driver's clock.
        at_ms: u64,
    },
    /// Drop a timer; it would do nothing.
    Forget {
        /// The id from [`Effect::Timer`].
        timer: u64,
    },
    /// A person or agent has to decide.
    Ask(WorkflowDecision),
    /// The decision is no longer needed.
    Withdraw {
        /// The id of the decision.
        decision: String,
    },
    /// Publish an event to those who watch the workflow.
    Event(WorkflowEvent),
    /// Answer a command, accepted or refused.
    Acknowledge(Acknowledgement),
    /// The state after this input can be rolled back to.
    Checkpoint {
        /// The number of the input, which is the number of the checkpoint.
        at: u64,
    },
    /// The workflow has ended.
    Finish(Finish),
}

/// A task to perform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStart {
    /// Identifies the effect for ever; all attempts at it share the key.
    pub key: String,
    /// The path of the task instance: `fetch`, `each[3]`, `sub/fetch`.
    pub instance: String,
    /// Grows with every start of this instance, from 1.
    pub attempt: u32,
    /// The task's action with its templates rendered.
    pub work: TaskWork,
    /// The task's own word on whether repeating it does harm, if it has one.
    pub idempotent: Option<bool>,
    /// The task runs ahead of an open decision and must only read.
    pub speculative: bool,
    /// The task may have been begun before, under the same key.
    pub again: bool,
    /// The time limit of the attempt. The machine enforces it with a timer of its own.
    pub timeout_ms: Option<u64>,
    /// The version of the workflow's files that the task sees: [`Machine::files_at`].
    pub files: Option<u64>,
}

/// An action whose templates are rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TaskWork {
    /// Call an MCP tool.
    McpTool(ToolAction),
    /// Run code; `context.deps` holds the results of the tasks it depends on.
    CodeExecution(Box<Code>),
    /// Create, use or destroy a session.
    Sandbox {
        /// The action with its templates rendered.
        action: SandboxAction,
    },
    /// Restore a session to its state before a task used it.
    RestoreSandbox {
        /// The id of the session.
        sandbox_id: SessionId,
        /// The session's own name for the state to restore.
        checkpoint: CheckpointId,
    },
}

/// How an attempt at a task has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// The value, or the failure.
    pub ending: TaskEnding,
    /// Changes to the workflow's files by path; `None` for a deleted path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Option<FileEntry>>,
    /// The task changed nothing outside the workflow, so a rollback has nothing to undo.
    #[serde(default)]
    pub read_only: bool,
    /// Lines the task printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
    /// How a rollback undoes the task's change to a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Box<SessionUndo>>,
    /// The values that the code put into `state`; they are merged into the part `context` of the workflow's
    /// state.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub state: JsonMap,
}

/// How a rollback undoes a change to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionUndo {
    /// By performing this work.
    By(TaskWork),
    /// It cannot, for this reason.
    Not(TaskFailure),
}

impl TaskOutcome {
    /// A success with this value and nothing else.
    pub fn done(value: JsonValue) -> Self {
        Self::of(TaskEnding::Done { value })
    }

    /// A failure and nothing else.
    pub fn failed(failure: TaskFailure) -> Self {
        Self::of(TaskEnding::Failed { failure })
    }

    fn of(ending: TaskEnding) -> Self {
        Self {
            ending,
            files: BTreeMap::new(),
            read_only: false,
            logs: Vec::new(),
            undo: None,
            state: JsonMap::new(),
        }
    }
}

/// The value or failure of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnding {
    /// The attempt ended with a value.
    Done {
        /// The result; null when the task gives none.
        value: JsonValue,
    },
    /// The attempt ended without a value.
    Failed {
        /// The reason, for `on_error` and for people.
        failure: TaskFailure,
    },
}

/// Why a task or a workflow failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskFailure {
    /// A stable word: `timeout`, `cancelled`, `rejected`, `template`, or the performer's own.
    pub code: String,
    /// One sentence for people; its wording may change.
    pub message: String,
    /// Data that belongs to the code, such as the results that a failed foreach does have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<JsonValue>,
    /// Another attempt is of no use, whatever the task's `retry` says.
    #[serde(default)]
    pub lasting: bool,
    /// The task may have changed something outside before it failed.
    #[serde(default)]
    pub may_have_acted: bool,
    /// Whether the task took effect is unknown: a person decides before the workflow continues.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_doubt: bool,
}

impl TaskFailure {
    /// A failure with this code and message, all else unset.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), ..Self::default() }
    }
}

/// An entry of the workflow's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileEntry {
    /// A regular file and its content.
    File {
        /// The digest of its content, which the store holds.
        blob: String,
        /// Permission bits, as in Unix.
        mode: u32,
    },
    /// A symbolic link, which may point anywhere.
    Link {
        /// The target, as it is written in the link.
        to: String,
    },
    /// A directory without entries; others follow from the paths of files.
    Directory {
        /// Permission bits, as in Unix.
        mode: u32,
    },
}

/// A decision that a person or agent has to take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowDecision {
    /// The id that [`WorkflowCommand::Approve`], `Reject` and `Modify` name.
    pub id: String,
    /// The subject of the decision.
    pub kind: DecisionKind,
    /// The task instance that waits for it.
    pub instance: String,
    /// The question, shown to the person or agent who decides.
    pub message: String,
    /// Whether a person has to decide, or an agent may.
    pub by: Decider,
    /// When the decision is taken without an answer: for a person by aborting, for an agent by
    /// continuing.
    pub deadline_ms: Option<u64>,
    /// The failure that the decision is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TaskFailure>,
}

/// The subject of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// An `approval` task asks.
    Approval,
    /// Whether a task may start.
    Before,
    /// Whether the workflow may use a task's result.
    After,
    /// Whether the workflow continues without a task that failed for good.
    OnError,
    /// Whether a task took effect whose end was not seen. Only [`WorkflowCommand::Resolve`] answers
    /// it.
    InDoubt,
}

/// How the workflow has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// `Completed`, `Failed` or `Aborted`.
    pub status: WorkflowStatus,
    /// The rendered `output`, or the results of the last tasks by id.
    pub output: JsonValue,
    /// Why the workflow failed or was aborted.
    pub failure: Option<TaskFailure>,
}

/// The result of a rollback.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RollbackReport {
    /// The number of the checkpoint.
    pub to: u64,
    /// The branch the workflow is on now; it grows with every rollback.
    pub branch: u32,
    /// Instances whose compensation was performed, in that order.
    pub undone: Vec<String>,
    /// Instances whose effects remain.
    pub not_undone: Vec<NotUndone>,
}

/// A task whose effects remain after a rollback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotUndone {
    /// The path of the instance.
    pub instance: String,
    /// The reason its effects remain.
    pub why: WhyNot,
    /// The failure of the compensation, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TaskFailure>,
}

/// Why a task was not undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// The task has no compensation.
    NoCompensation,
    /// The compensation was performed and failed.
    Failed,
    /// Whether the task or its compensation took effect is unknown.
    InDoubt,
    /// The workflow this one was forked from did it, and still has the effect.
    DoneBeforeFork,
}
