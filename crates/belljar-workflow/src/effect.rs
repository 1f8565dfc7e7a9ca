//! What goes into the machine of a workflow and what comes out of it.
//!
//! All of it is data: an [`MachineInput`] is journalled before its [`Effect`]s are performed, and the same
//! inputs give the same effects, byte for byte. Who performs effects keeps two promises: every
//! [`TaskStart`] is answered by exactly one [`InputKind::Ended`], also after a [`Effect::Cancel`]; and no
//! effect is performed before the input that caused it is durable.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::command::{Acknowledgement, WorkflowCommand};
use crate::dag::{Code, Decider, SandboxAction, ToolAction};
use crate::event::WorkflowEvent;
use crate::machine::Machine;

/// One thing that happened, and when.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MachineInput {
    /// Milliseconds since 1970, by the driver's clock, which nobody sets while the host lives.
    pub now_ms: u64,
    /// What.
    #[serde(flatten)]
    pub what: InputKind,
}

/// What happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum InputKind {
    /// The workflow begins. The first input, once.
    Begin,
    /// What was started has ended.
    Ended {
        /// Which instance.
        instance: String,
        /// Which attempt.
        attempt: u32,
        /// How.
        outcome: TaskOutcome,
    },
    /// A timer went off. One that the machine has forgotten meanwhile does nothing.
    Fired {
        /// Which.
        timer: u64,
    },
    /// Somebody wants something. [`WorkflowCommand::RollBack`] comes as [`InputKind::RollBack`] instead.
    Command {
        /// Its own id: a second one with the same id changes nothing.
        id: String,
        /// Who: an agent, as [`is_agent`](crate::is_agent) says, or a person.
        by: String,
        /// What.
        command: WorkflowCommand,
    },
    /// A host took the workflow over: what was under way is known only from its intents.
    Resumed {
        /// What had been started and had not ended.
        open: Vec<OpenIntent>,
    },
    /// Back to a checkpoint.
    RollBack {
        /// The command's own id.
        id: String,
        /// Who.
        by: String,
        /// To which checkpoint.
        to: u64,
        /// The machine as it was then. Kept out of the journal: that commit has a snapshot.
        base: Box<Machine>,
    },
}

/// Something that had been started when the host went away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenIntent {
    /// Which instance.
    pub instance: String,
    /// Which attempt.
    pub attempt: u32,
    /// Whether it may be performed again.
    pub again: Repeatability,
}

/// Whether an effect may be performed again after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeatability {
    /// It was certainly not begun.
    NotBegun,
    /// Repeating does no harm: the tool says so, or the run has a journal of its own.
    Harmless,
    /// Nobody can tell: the task is in doubt, unless the task itself says otherwise.
    Unknown,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Perform this.
    Start(TaskStart),
    /// Stop performing this; it is answered by `Ended` all the same.
    Cancel {
        /// Which instance.
        instance: String,
        /// Which attempt.
        attempt: u32,
    },
    /// Wake the machine.
    Timer {
        /// Which timer.
        timer: u64,
        /// When.
        at_ms: u64,
    },
    /// A timer that is of no use any more.
    Forget {
        /// Which timer.
        timer: u64,
    },
    /// Somebody must decide.
    Ask(WorkflowDecision),
    /// Nobody needs to decide any more.
    Withdraw {
        /// Which decision.
        decision: String,
    },
    /// Something to tell.
    Event(WorkflowEvent),
    /// What became of a command.
    Acknowledge(Acknowledgement),
    /// The state after this input is one to come back to.
    Checkpoint {
        /// The input's number.
        at: u64,
    },
    /// The workflow has ended.
    Finish(Finish),
}

/// Something to perform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStart {
    /// What tells this effect from all others, for ever: the same for every attempt at it.
    pub key: String,
    /// Which instance.
    pub instance: String,
    /// Which attempt; grows with every start of this instance.
    pub attempt: u32,
    /// What.
    pub work: TaskWork,
    /// What the task says about repeating it.
    pub idempotent: Option<bool>,
    /// Nothing but reading: its decision is still open.
    pub speculative: bool,
    /// It may have been begun before, under the same key.
    pub again: bool,
    /// How long it may take. The machine has its own timer for that.
    pub timeout_ms: Option<u64>,
    /// Which version of the workflow's files it sees: [`Machine::files_at`].
    pub files: Option<u64>,
}

/// Work whose templates are resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TaskWork {
    /// A tool.
    McpTool(ToolAction),
    /// Code; `context.deps` has the results of what it depends on.
    CodeExecution(Box<Code>),
    /// An action on a session.
    Sandbox {
        /// Which.
        action: SandboxAction,
    },
    /// Takes a session back to what it was before a task used it.
    RestoreSandbox {
        /// Which session.
        sandbox_id: String,
        /// What it calls the state to go back to.
        checkpoint: String,
    },
}

/// How something that was started has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// Well or not.
    pub ending: TaskEnding,
    /// What it changed in the workflow's files: gone when `None`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Option<FileEntry>>,
    /// It changed nothing in the world, so nothing is left when it is rolled back.
    #[serde(default)]
    pub read_only: bool,
    /// What it said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
    /// What it changed in a session, and what is to be done about that when it is rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Box<SessionUndo>>,
    /// What its code put into `state`, for the part `context` of the workflow's state.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub state: Map<String, Value>,
}

/// How a change of a session is taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionUndo {
    /// By this.
    By(TaskWork),
    /// Not at all, and why.
    Not(TaskFailure),
}

impl TaskOutcome {
    /// It went well.
    pub fn done(value: Value) -> Self {
        Self::of(TaskEnding::Done { value })
    }

    /// It did not.
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
            state: Map::new(),
        }
    }
}

/// Well or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnding {
    /// It has a value.
    Done {
        /// The value.
        value: Value,
    },
    /// It has none.
    Failed {
        /// Why.
        failure: TaskFailure,
    },
}

/// Why something failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskFailure {
    /// A stable word: `timeout`, `cancelled`, `rejected`, `template`, or the performer's own.
    pub code: String,
    /// For people.
    pub message: String,
    /// More.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Another attempt is of no use, whatever the task says.
    #[serde(default)]
    pub lasting: bool,
    /// It may have changed something in the world before it failed.
    #[serde(default)]
    pub may_have_acted: bool,
    /// Nobody knows whether it happened: somebody is asked before anything follows from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_doubt: bool,
}

impl TaskFailure {
    /// With a code and a message.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), ..Self::default() }
    }
}

/// An entry of the workflow's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileEntry {
    /// A file.
    File {
        /// The digest of what is in it.
        blob: String,
        /// Its mode.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Where to.
        to: String,
    },
    /// A directory with nothing in it.
    Directory {
        /// Its mode.
        mode: u32,
    },
}

/// A decision somebody must take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowDecision {
    /// Its id, for [`WorkflowCommand::Approve`] and its like.
    pub id: String,
    /// What it is about.
    pub kind: DecisionKind,
    /// The task instance that waits for it.
    pub instance: String,
    /// What is asked.
    pub message: String,
    /// Who is asked.
    pub by: Decider,
    /// When no answer becomes an answer: for a person abort, for the agent going on.
    pub deadline_ms: Option<u64>,
    /// What went wrong, when something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TaskFailure>,
}

/// What a decision is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// An `approval` task.
    Approval,
    /// Whether a task may start.
    Before,
    /// Whether its result is good: asked after it, or after each.
    After,
    /// What becomes of a task that failed for good.
    OnError,
    /// Whether something happened that nobody saw end. Only [`WorkflowCommand::Resolve`] answers it.
    InDoubt,
}

/// How the workflow has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// `Completed`, `Failed` or `Aborted`.
    pub status: WorkflowStatus,
    /// What it gives.
    pub output: Value,
    /// Why it failed or was aborted.
    pub failure: Option<TaskFailure>,
}

/// Where a workflow is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowStatus {
    /// `Begin` was not applied yet.
    #[default]
    New,
    /// Tasks run, or wait for time or a decision.
    Running,
    /// Nothing is started until it is continued.
    Paused,
    /// It will end when what runs has been stopped.
    Stopping,
    /// It goes back to a checkpoint.
    RollingBack,
    /// It ended well.
    Completed,
    /// It failed.
    Failed,
    /// Somebody ended it.
    Aborted,
}

impl WorkflowStatus {
    /// Whether nothing will happen any more, but for a rollback.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Aborted)
    }
}

/// What came of going back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RollbackReport {
    /// To which checkpoint.
    pub to: u64,
    /// Which branch the workflow is on now.
    pub branch: u32,
    /// Instances whose compensation was performed, in that order.
    pub undone: Vec<String>,
    /// Those that left something behind.
    pub not_undone: Vec<NotUndone>,
}

/// Something that was not undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotUndone {
    /// Which instance.
    pub instance: String,
    /// Why.
    pub why: WhyNot,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TaskFailure>,
}

/// Why something was not undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// The task has no compensation.
    NoCompensation,
    /// Its compensation failed.
    Failed,
    /// Nobody knows whether it happened, or whether its compensation did.
    InDoubt,
    /// The workflow this one was forked from did it, and has it still.
    DoneBeforeFork,
}
