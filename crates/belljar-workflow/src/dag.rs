//! A workflow as data: read from a file, checked, journalled and changed by commands.
//!
//! Every value that may hold a template is JSON; its strings are rendered when the task starts.

mod code;

use std::collections::BTreeMap;

use belljar_contract::{EngineName, Language, LimitsRequest, TaskGrants};
use belljar_contract::{JsonMap, JsonValue};
use serde::{Deserialize, Serialize};

pub use code::{Code, ResultShape};

/// Prefix of the parts of the state in which loops made of an agent's nodes store their position.
pub const LOOP_POSITION_PREFIX: &str = "_next_";
/// The part of the state that code adds to with its `state`; its values are merged.
pub(crate) const CONTEXT: &str = "context";

/// A workflow: tasks and their dependencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dag {
    /// The name people use.
    pub name: String,
    /// The purpose of the workflow, in the author's words.
    pub description: Option<String>,
    /// The inputs and their defaults.
    pub inputs: JsonMap,
    /// How a new value is combined with the old one, for each part of the state.
    pub reducers: BTreeMap<String, Reducer>,
    /// The initial state, by part.
    pub state: JsonMap,
    /// Limits, deadlines and decisions.
    pub settings: DagSettings,
    /// The tasks, in the order they were written.
    pub tasks: Vec<Task>,
    /// A template for the result of the workflow; without one, the results of the last tasks by id.
    pub output: Option<JsonValue>,
}

/// How a new value is combined with the old one in the state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reducer {
    /// The new value replaces the old one.
    #[default]
    Last,
    /// The new value is appended to a list.
    Append,
    /// The new object's keys replace those of the old object.
    Merge,
    /// Numbers are added up.
    Sum,
    /// The new value is appended to a list unless the list has it.
    Union,
}

/// Limits, deadlines and decisions of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DagSettings {
    /// How many tasks run in parallel.
    pub concurrency: usize,
    /// How often the workflow may be replanned.
    pub max_replans: u32,
    /// The time limit of the whole workflow.
    pub timeout_ms: Option<u64>,
    /// Where the workflow stops for a decision.
    pub decisions: DecisionPoints,
    /// The time limit of a decision, unless a task sets its own.
    pub decision_timeout_ms: Option<u64>,
    /// The decider, unless a task names another.
    pub decided_by: Decider,
    /// Whether the tasks share files.
    pub files: bool,
    /// Whether the state follows the rules of agents: a missing part is null, or false in a
    /// condition, and a mapping that comes with an answer is put into the state.
    pub lenient: bool,
    /// Parts of the state that the file itself sets: once set, no result or answer replaces them by
    /// having a key of that name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<String>,
}

impl Default for DagSettings {
    fn default() -> Self {
        Self {
            concurrency: 8,
            max_replans: 3,
            timeout_ms: None,
            decisions: DecisionPoints::default(),
            decision_timeout_ms: None,
            decided_by: Decider::Agent,
            files: false,
            lenient: false,
            constants: Vec::new(),
        }
    }
}

/// The points at which a workflow stops for a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecisionPoints {
    /// Stop after every task except approvals.
    pub per_task: bool,
    /// Stop when a task failed for good.
    pub on_error: bool,
    /// Stop before the tasks with these ids.
    pub before: Vec<String>,
    /// Stop after the tasks with these ids.
    pub after: Vec<String>,
}

/// The party that takes a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// A person; without an answer in time the workflow is aborted.
    #[default]
    Human,
    /// The agent; without an answer in time the workflow continues.
    Agent,
}

/// One node of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The name of the task, unique among its neighbours.
    pub id: String,
    /// The action of the task; its fields stand beside `id` in JSON.
    #[serde(flatten)]
    pub action: Action,
    /// The ids of tasks that must have ended before.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// An expression; when it is false, the task is skipped.
    ///
    /// Tasks that depend on a skipped task run all the same, with null as its result, unless all
    /// their dependencies were skipped by a condition; then they are skipped too, and so on. A task
    /// that must always run depends on one more task that is never skipped. A task skipped by a
    /// command or a jump holds no other task back. `results["x"] | default(y)` gives `y` when `x`
    /// was skipped.
    #[serde(default)]
    pub when: Option<String>,
    /// The time limit of one attempt.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Whether and when a failed attempt is repeated.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// The reaction to the last failed attempt.
    #[serde(default)]
    pub on_error: OnError,
    /// Whether repeating the task does no harm; unset, the kind of task decides.
    #[serde(default)]
    pub idempotent: Option<bool>,
    /// The tool call or code that undoes the task in a rollback.
    #[serde(default)]
    pub compensate: Option<Compensation>,
    /// Parts of the state and the templates for them; the templates may use `result`.
    #[serde(default)]
    pub output: JsonMap,
    /// Whether the keys of the result, an object, are put into the state through the reducers,
    /// before `output`. Null changes nothing; any other result goes to `result_key`, and the task
    /// fails without one.
    #[serde(default)]
    pub merge_result: bool,
    /// The part of the state for a result that is to be merged but is not an object.
    #[serde(default)]
    pub result_key: Option<String>,
    /// Whether the task may run ahead of an open decision.
    #[serde(default)]
    pub speculate: bool,
}

impl Task {
    /// A task with this action, no dependencies and defaults for the rest.
    pub fn new(id: &str, action: Action) -> Self {
        Self {
            id: id.to_owned(),
            action,
            depends_on: Vec::new(),
            when: None,
            timeout_ms: None,
            retry: None,
            on_error: OnError::default(),
            idempotent: None,
            compensate: None,
            output: JsonMap::new(),
            merge_result: false,
            result_key: None,
            speculate: false,
        }
    }
}

/// The action of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Action {
    /// Call an MCP tool.
    McpTool(ToolAction),
    /// Run code in a cell of its own.
    CodeExecution(Code),
    /// Create, use or destroy a session that lives across tasks.
    Sandbox(SandboxAction),
    /// Ask a person or agent for approval.
    Approval {
        /// The question, a template.
        message: String,
        /// The decider; unset, a person, whatever the workflow's settings say.
        #[serde(default)]
        by: Option<Decider>,
        /// The time limit of the decision.
        #[serde(default)]
        decide_within_ms: Option<u64>,
    },
    /// Run a task for each item of a list.
    Foreach(Foreach),
    /// Repeat tasks while a condition holds.
    Loop(LoopAction),
    /// Run a workflow as one task.
    Workflow {
        /// The inner workflow; it has a state of its own.
        workflow: Box<Dag>,
        /// Inputs of the inner workflow, templates.
        #[serde(default)]
        inputs: JsonMap,
    },
    /// Wait for a duration or until a time.
    Wait(Wait),
    /// Give a value: to join branches, or only to change the state.
    Pass {
        /// The result of the task, a template.
        #[serde(default)]
        value: JsonValue,
    },
}

/// A call of an MCP tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolAction {
    /// The tool as `server:tool` or `server.tool`.
    pub tool: String,
    /// The arguments of the call, templates.
    pub arguments: JsonMap,
}

/// An action on a session that lives across tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum SandboxAction {
    /// Create a session; its id is the result.
    Create {
        /// The language of its code.
        language: Language,
        /// The engine that runs it; `None` is the operator's for its language.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        engine: Option<EngineName>,
        /// Limits of each run in the session.
        #[serde(default, serialize_with = "code::task_limits")]
        limits: Box<LimitsRequest>,
        /// The grants of the session; its tools are those that policy allows.
        #[serde(default)]
        grants: TaskGrants,
    },
    /// Run code in a session.
    Execute {
        /// The id of the session, a template.
        sandbox_id: JsonValue,
        /// The code, a template.
        code: String,
        /// Limits of this run.
        #[serde(default, serialize_with = "code::task_limits")]
        limits: Box<LimitsRequest>,
    },
    /// End a session and drop its state.
    Destroy {
        /// The id of the session, a template.
        sandbox_id: JsonValue,
    },
    /// List the sessions of this workflow.
    List,
}

/// A task for each item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Foreach {
    /// The list, a template.
    pub items: JsonValue,
    /// The task for each item. It has no `depends_on`; its templates may use `item` and `index`.
    #[serde(rename = "do")]
    pub each: Box<Task>,
    /// How many items run in parallel; unset, as many as the workflow allows.
    #[serde(default)]
    pub at_once: Option<usize>,
    /// Whether the first failure cancels the other items. Otherwise all items run and the foreach
    /// fails at the end.
    #[serde(default = "yes")]
    pub fail_fast: bool,
}

/// Tasks that are repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopAction {
    /// An expression, evaluated before each round. Unset, there is one round and as many more as
    /// `goto` adds; without `goto` as well, the loop is a group of tasks over the same state.
    #[serde(rename = "while", default)]
    pub condition: Option<String>,
    /// The most rounds the loop may have.
    #[serde(default = "hundred")]
    pub max_rounds: u32,
    /// The outcome of a loop that has had all its rounds while its condition still holds.
    #[serde(default)]
    pub at_limit: AtLimit,
    /// The tasks of one round, over the same state.
    pub body: Vec<Task>,
    /// After a round, the first entry whose expression is true names the task with which the next
    /// round begins; the tasks before it are skipped in that round. When none is true, the loop
    /// follows its condition, or ends.
    #[serde(default)]
    pub goto: Vec<Goto>,
}

/// The outcome of a loop that has had all its rounds while its condition still holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The loop fails with code `loop`.
    #[default]
    Fail,
    /// The loop ends as if its condition were false; its result says `exhausted`.
    End,
}

/// A jump at the end of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goto {
    /// An expression; unset, the jump is always taken.
    #[serde(default, rename = "if")]
    pub condition: Option<String>,
    /// The id of a task of the body, or `end`.
    pub to: String,
}

/// A duration or a time to wait for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Wait {
    /// Wait for a duration.
    For {
        /// The duration in milliseconds, a template.
        wait_ms: JsonValue,
    },
    /// Wait until a time.
    Until {
        /// The time in milliseconds since 1970, a template.
        until_ms: JsonValue,
    },
}

/// Whether and when a failed attempt is repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// The most attempts, the first included.
    pub attempts: u32,
    /// The delay between attempts.
    pub backoff: Backoff,
    /// Retry also a task that is not idempotent.
    pub even_if_not_idempotent: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, backoff: Backoff::default(), even_if_not_idempotent: false }
    }
}

/// The delay between attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Backoff {
    /// The delay after the first attempt.
    pub first_ms: u64,
    /// Each further delay is the last one times this factor.
    pub factor: f64,
    /// The longest delay between two attempts.
    pub max_ms: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first_ms: 200, factor: 2.0, max_ms: 30_000 }
    }
}

/// The reaction to a task that has failed for good.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The workflow fails with the task.
    #[default]
    Fail,
    /// The workflow continues; the task's result is null (for a foreach, the results it has), and
    /// its error is in `tasks.<id>.error`.
    Continue,
    /// Another task runs in its place and provides its result.
    Fallback(Box<Task>),
}

/// The step that undoes a task. Its templates may use the task's `result` and its rendered arguments as
/// `args`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compensation {
    /// A call of an MCP tool.
    Tool(ToolAction),
    /// Code that runs in a cell of its own.
    Code(Box<Code>),
}

fn yes() -> bool {
    true
}

fn hundred() -> u32 {
    100
}
