//! Code in a graph: what it is, what it may reach and use up.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Code and what it may do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Code {
    /// `python`, `typescript`, `javascript`, `bash`.
    pub language: String,
    /// The code; not a template, unless `template` says so.
    pub code: String,
    /// Whether the code is a template: code that an earlier task wrote.
    pub template: bool,
    /// What its result looks like.
    pub shape: ResultShape,
    /// What it is given as `context`, templates; results of dependencies are in `context.deps`.
    pub context: Map<String, Value>,
    /// Finds tools for it.
    pub intent: Option<String>,
    /// What it may reach.
    pub grants: Grants,
    /// What it may use up.
    pub limits: Limits,
    /// Whether it sees the files of the workflow.
    pub files: bool,
    /// Whether it has no room for files of its own, and sees none of the workflow.
    pub no_room: bool,
}

/// What the result of a code task looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultShape {
    /// The value the code gave; code that fails is a task that fails.
    #[default]
    Value,
    /// `{success, stdout, stderr, return_value, error, execution_time_ms}`; code that fails is a
    /// task that ended, with `success: false`.
    Report,
    /// As `Value`, for the body of a node: the keys of `context` are its global names, and it may
    /// `return` at top level.
    Node,
}

/// What a code task may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Tools; unsaid, all that policy allows.
    pub tools: Option<Vec<String>>,
    /// Paths to read.
    pub read: Vec<String>,
    /// Paths of the host to write to.
    pub write: WriteAccess,
    /// Environment variables.
    pub env: Vec<String>,
    /// Python modules; unsaid, all.
    pub modules: Option<Vec<String>>,
    /// Commands of bash.
    pub commands: Vec<String>,
    /// Whether Python may import every module: its cell is as closed as any.
    pub permissive: bool,
}

/// What of the host code may write to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WriteAccess {
    /// Nothing, or all that the operator allows.
    Said(bool),
    /// These, if the operator allows them.
    Paths(Vec<String>),
}

impl Default for WriteAccess {
    fn default() -> Self {
        Self::Said(false)
    }
}

/// What a code task may use up; unsaid, what the host's configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Time of its code.
    pub timeout_ms: Option<u64>,
    /// Memory.
    pub memory_mb: Option<u64>,
    /// Output.
    pub output_bytes: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u64>,
}
