//! What people and agents may ask of a workflow, and what they are told.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::dag::Task;

/// The sender that is an agent; `agent:` and a name is one too. All others are persons.
pub const AGENT: &str = "agent";

/// Whether a sender is an agent. It may not do what only a person may: the machine refuses that.
pub fn is_agent(by: &str) -> bool {
    by.strip_prefix(AGENT).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// Something asked of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum WorkflowCommand {
    /// End it: what runs is cancelled, nothing starts.
    Abort {
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Start nothing more; what runs may end.
    Pause,
    /// Go on.
    Continue,
    /// Add tasks.
    InjectTasks {
        /// The tasks; they may depend on any there is.
        tasks: Vec<Task>,
    },
    /// Put these in place of all tasks that have not begun.
    Replan {
        /// The tasks; they may depend on those that have begun.
        tasks: Vec<Task>,
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Leave a task out; what depends on it runs, with null as its result.
    Skip {
        /// Its instance.
        task: String,
    },
    /// Change the arguments of a task that has not begun.
    ModifyArgs {
        /// Its instance.
        task: String,
        /// Those that change.
        arguments: Map<String, Value>,
    },
    /// Yes.
    Approve {
        /// To which decision.
        decision: String,
        /// What is said with it.
        #[serde(default)]
        value: Option<Value>,
    },
    /// No: the task fails, as its `on_error` says.
    Reject {
        /// To which decision.
        decision: String,
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Yes, but otherwise.
    Modify {
        /// To which decision.
        decision: String,
        /// Other arguments: the task is started with them (before it, or again after a failure).
        #[serde(default)]
        arguments: Option<Map<String, Value>>,
        /// Another result.
        #[serde(default)]
        value: Option<Value>,
    },
    /// Says what became of a task in doubt.
    Resolve {
        /// Its instance.
        task: String,
        /// What.
        how: DoubtResolution,
    },
    /// Go back to a checkpoint. The driver makes it a [`InputKind::RollBack`](crate::InputKind::RollBack).
    RollBack {
        /// Which.
        to: u64,
    },
}

/// What becomes of a task in doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "resolution", rename_all = "snake_case")]
pub enum DoubtResolution {
    /// It did not happen, or may happen twice: perform it again.
    Retry,
    /// It happened, and this was its result.
    Use {
        /// The result.
        value: Value,
    },
    /// It failed.
    Fail {
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    },
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// Its id.
    pub command: String,
    /// Why it was refused; nothing, if it was accepted.
    pub refused: Option<String>,
}

impl Acknowledgement {
    /// Whether it was accepted.
    pub fn is_accepted(&self) -> bool {
        self.refused.is_none()
    }
}
