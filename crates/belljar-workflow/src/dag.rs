//! A workflow as data: what is read from a file, checked, journalled, changed by commands.
//!
//! Every value that may hold a template is JSON whose strings are rendered when the task starts.

mod code;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use code::{Code, Grants, Limits, ResultShape, WriteAccess};

/// How parts of a state begin in which a loop made of an agent's nodes keeps where it stands.
pub const LOOP_POSITION_PREFIX: &str = "_next_";
/// The part of the state that code adds to with its `state`; its values are merged.
pub(crate) const CONTEXT: &str = "context";

/// A workflow: tasks and what they depend on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dag {
    /// What a person calls it.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// What inputs it takes unless told otherwise.
    pub inputs: Map<String, Value>,
    /// How values given to a part of the state are joined with what is there.
    pub reducers: BTreeMap<String, Reducer>,
    /// What the state is at the beginning.
    pub state: Map<String, Value>,
    /// Bounds and habits.
    pub settings: DagSettings,
    /// The tasks, in the order they were written.
    pub tasks: Vec<Task>,
    /// What the workflow gives, a template; without one, the results of its last tasks by id.
    pub output: Option<Value>,
}

/// How a value is joined with what the state has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reducer {
    /// The new one.
    #[default]
    Last,
    /// A list that grows.
    Append,
    /// An object; keys are replaced.
    Merge,
    /// A sum of numbers.
    Sum,
    /// A list without repetition.
    Union,
}

/// Bounds and habits of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DagSettings {
    /// How many tasks run at once.
    pub concurrency: usize,
    /// How often it may be replanned.
    pub max_replans: u32,
    /// How long the whole may take.
    pub timeout_ms: Option<u64>,
    /// Where a decision is asked for.
    pub decisions: DecisionPoints,
    /// How long a decision may take, unless a task says otherwise.
    pub decision_timeout_ms: Option<u64>,
    /// Who decides, unless a task says otherwise.
    pub decided_by: Decider,
    /// Whether its tasks share files.
    pub files: bool,
    /// Whether the state is an agent's: a part that is not there is null, or false where only its
    /// truth is asked for, and a mapping that comes with an answer goes into it.
    pub lenient: bool,
    /// Parts of the state that are the file's own: once they are there, no result and no answer
    /// replaces them by coming with a key of that name.
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

/// Where a workflow stops and asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecisionPoints {
    /// After every task.
    pub per_task: bool,
    /// When a task failed for good.
    pub on_error: bool,
    /// Before these tasks.
    pub before: Vec<String>,
    /// After these tasks.
    pub after: Vec<String>,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// A person: no answer in time ends the workflow.
    #[default]
    Human,
    /// The agent: no answer in time means going on.
    Agent,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its name, unique among its neighbours.
    pub id: String,
    /// What it does.
    #[serde(flatten)]
    pub action: Action,
    /// What must have ended before.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// An expression; when it is false, the task is skipped.
    ///
    /// One rule holds for what depends on a task skipped so: it runs all the same, with null as the
    /// result, unless all that it depends on was skipped so; then it is skipped too, and that
    /// spreads on. Who must run whatever was skipped depends on one more task that never is. A task
    /// left out by command or by a jump holds nobody back. `results["x"] | default(y)` gives `y` when
    /// `x` was skipped.
    #[serde(default)]
    pub when: Option<String>,
    /// How long one attempt may take.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// What happens after an attempt that failed.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// What happens after the last.
    #[serde(default)]
    pub on_error: OnError,
    /// Whether repeating it does no harm; unsaid, the kind of task decides.
    #[serde(default)]
    pub idempotent: Option<bool>,
    /// What undoes it.
    #[serde(default)]
    pub compensate: Option<Compensation>,
    /// Parts of the state and the templates that give them, over `result` as well.
    #[serde(default)]
    pub output: Map<String, Value>,
    /// Whether the result, an object, is put into the state key by key, through the reducers and
    /// before `output`. Null changes nothing; any other result goes to `result_key`, and without
    /// one the task fails.
    #[serde(default)]
    pub merge_result: bool,
    /// The part of the state for a result that is to be merged and is no object.
    #[serde(default)]
    pub result_key: Option<String>,
    /// Whether it may run ahead of an open decision.
    #[serde(default)]
    pub speculate: bool,
}

impl Task {
    /// A task that does this and depends on nothing.
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
            output: Map::new(),
            merge_result: false,
            result_key: None,
            speculate: false,
        }
    }
}

/// What a task does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Action {
    /// Calls a tool.
    McpTool(ToolAction),
    /// Runs code in a cell of its own.
    CodeExecution(Code),
    /// Makes, uses or ends a session that lives across tasks.
    Sandbox(SandboxAction),
    /// Asks somebody.
    Approval {
        /// What is asked, a template.
        message: String,
        /// Who; unsaid, a person, whoever decides otherwise.
        #[serde(default)]
        by: Option<Decider>,
        /// How long the answer may take.
        #[serde(default)]
        decide_within_ms: Option<u64>,
    },
    /// Does a task for each item of a list.
    Foreach(Foreach),
    /// Repeats tasks.
    Loop(LoopAction),
    /// Runs a workflow as one task.
    Workflow {
        /// The workflow.
        workflow: Box<Dag>,
        /// Its inputs, templates.
        #[serde(default)]
        inputs: Map<String, Value>,
    },
    /// Lets time pass.
    Wait(Wait),
    /// Gives a value: what joins branches, or only changes the state.
    Pass {
        /// A template.
        #[serde(default)]
        value: Value,
    },
}

/// A call of an MCP tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolAction {
    /// `server:tool` or `server.tool`.
    pub tool: String,
    /// Its arguments, templates.
    pub arguments: Map<String, Value>,
}

/// An action on a session that lives across tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum SandboxAction {
    /// Makes one.
    Create {
        /// Its language.
        language: String,
        /// What it may use up.
        #[serde(default)]
        limits: Limits,
        /// What it may reach; its tools are those that policy allows.
        #[serde(default)]
        grants: Grants,
    },
    /// Runs code in it.
    Execute {
        /// Which, a template.
        sandbox_id: Value,
        /// The code, a template.
        code: String,
        /// What it may use up.
        #[serde(default)]
        limits: Limits,
    },
    /// Ends it.
    Destroy {
        /// Which, a template.
        sandbox_id: Value,
    },
    /// Lists those of this workflow.
    List,
}

/// A task for each item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Foreach {
    /// The list, a template.
    pub items: Value,
    /// What is done for each; its `depends_on` is empty, `item` and `index` are known in it.
    #[serde(rename = "do")]
    pub each: Box<Task>,
    /// How many at once; unsaid, as the workflow allows.
    #[serde(default)]
    pub at_once: Option<usize>,
    /// Whether the first failure ends the others. Otherwise all are done, and it fails at the end.
    #[serde(default = "yes")]
    pub fail_fast: bool,
}

/// Tasks that are repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopAction {
    /// An expression, looked at before each round; unsaid, there is one round and whatever `goto`
    /// adds. With neither, a loop is a group of tasks over the same state.
    #[serde(rename = "while", default)]
    pub condition: Option<String>,
    /// How many rounds there may be.
    #[serde(default = "hundred")]
    pub max_rounds: u32,
    /// What happens when there were as many and it would go on.
    #[serde(default)]
    pub at_limit: AtLimit,
    /// What one round does, as a small workflow of its own over the same state.
    pub body: Vec<Task>,
    /// After a round: the first whose expression is true names the task of the body the next round
    /// begins with; earlier ones are skipped in it. None is true: the loop goes on by its condition,
    /// or ends.
    #[serde(default)]
    pub goto: Vec<Goto>,
}

/// What happens when a loop has had all its rounds and would go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The loop fails.
    #[default]
    Fail,
    /// The loop ends as if its condition were false; its result says `exhausted`.
    End,
}

/// A jump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goto {
    /// When; unsaid, always.
    #[serde(default, rename = "if")]
    pub condition: Option<String>,
    /// Where: a task of the body, or `end`.
    pub to: String,
}

/// Time that passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Wait {
    /// For so long.
    For {
        /// Milliseconds, a template.
        wait_ms: Value,
    },
    /// Until then.
    Until {
        /// Milliseconds since 1970, a template.
        until_ms: Value,
    },
}

/// What happens after an attempt that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// How many attempts in all.
    pub attempts: u32,
    /// What lies between them.
    pub backoff: Backoff,
    /// Also when repeating may do harm.
    pub even_if_not_idempotent: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, backoff: Backoff::default(), even_if_not_idempotent: false }
    }
}

/// Time between attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Backoff {
    /// After the first.
    pub first_ms: u64,
    /// Times this after each further one.
    pub factor: f64,
    /// At most.
    pub max_ms: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first_ms: 200, factor: 2.0, max_ms: 30_000 }
    }
}

/// What happens when a task has failed for good.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The workflow fails.
    #[default]
    Fail,
    /// It goes on; the result is null (of a foreach, what there is), the error is in
    /// `tasks.<id>.error`.
    Continue,
    /// Another task is done in its place, whose result is its result.
    Fallback(Box<Task>),
}

/// What undoes a task: over its `result` and its rendered arguments as `args`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compensation {
    /// A tool.
    Tool(ToolAction),
    /// Code.
    Code(Box<Code>),
}

fn yes() -> bool {
    true
}

fn hundred() -> u32 {
    100
}
