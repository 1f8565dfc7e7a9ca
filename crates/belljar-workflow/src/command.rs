//! Commands of people and agents to a workflow, and the answers to them.

use belljar_contract::{JsonMap, JsonValue};
use serde::{Deserialize, Serialize};

use crate::dag::Task;

/// The sender name of an agent; `agent:<name>` is an agent too. Every other sender is a person.
pub const AGENT: &str = "agent";

/// Whether a sender is an agent. The machine refuses commands of agents that only a person may
/// give.
pub fn is_agent(by: &str) -> bool {
    by.strip_prefix(AGENT).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// A command to a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum WorkflowCommand {
    /// End the workflow: running tasks are cancelled and nothing starts.
    Abort {
        /// Shown with the workflow's end.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Start nothing more; running tasks may end.
    Pause,
    /// Start tasks again after a pause.
    Continue,
    /// Add tasks to the workflow.
    InjectTasks {
        /// The tasks; they may depend on any existing task.
        tasks: Vec<Task>,
    },
    /// Replace all tasks that have not begun.
    Replan {
        /// The tasks; they may depend on tasks that have begun.
        tasks: Vec<Task>,
        /// Recorded with the command, for people.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Skip a task. Tasks that depend on it run, with null as its result.
    Skip {
        /// The path of the instance.
        task: String,
    },
    /// Change the arguments of a task that has not begun.
    ModifyArgs {
        /// The path of the instance.
        task: String,
        /// The arguments that change; the others stay.
        arguments: JsonMap,
    },
    /// Answer a decision with yes.
    Approve {
        /// The id of the decision.
        decision: String,
        /// A value to go with the answer: the result of an `approval` task.
        #[serde(default)]
        value: Option<JsonValue>,
    },
    /// Answer a decision with no: the task fails, and its `on_error` applies.
    Reject {
        /// The id of the decision.
        decision: String,
        /// Becomes the message of the task's failure.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Answer a decision with yes, and change the arguments or the result.
    Modify {
        /// The id of the decision.
        decision: String,
        /// New arguments: the task starts with them, for the first time or again after a failure.
        #[serde(default)]
        arguments: Option<JsonMap>,
        /// A result in place of the task's own.
        #[serde(default)]
        value: Option<JsonValue>,
    },
    /// Say what became of a task in doubt.
    Resolve {
        /// The path of the instance.
        task: String,
        /// The finding or the wish of the person.
        how: DoubtResolution,
    },
    /// Go back to a checkpoint. The driver turns it into
    /// [`InputKind::RollBack`](crate::InputKind::RollBack).
    RollBack {
        /// The number of the checkpoint.
        to: u64,
    },
}

/// How a task in doubt is resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "resolution", rename_all = "snake_case")]
pub enum DoubtResolution {
    /// The task did not take effect, or may do so twice: perform it again.
    Retry,
    /// The task took effect and had this result.
    Use {
        /// Used as if the task had returned it.
        value: JsonValue,
    },
    /// The task counts as failed, and its `on_error` applies.
    Fail {
        /// Becomes the message of the task's failure.
        #[serde(default)]
        reason: Option<String>,
    },
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// The id of the command.
    pub command: String,
    /// The reason for a refusal; `None` when the command was accepted.
    pub refused: Option<String>,
}
