//! The one result type (A9); every outer format is a thin adapter around it.

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{EngineName, RunError, RunStatus};

/// How a run went, in the canonical JSON shape. It reads what it writes: a client, a record and a
/// workflow get the same type back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunResult {
    /// The name of the run, `run_…`.
    pub id: String,
    /// How it ended.
    pub status: RunStatus,
    /// Whether it ended with a value.
    pub success: bool,
    /// The value, as JSON; `null` when there is none.
    #[schemars(with = "Option<Value>")]
    pub result: Box<RawValue>,
    /// What was printed to standard output, up to the cap.
    pub stdout: String,
    /// What was printed to standard error, up to the cap.
    pub stderr: String,
    /// One entry per print, log or denied attempt, in order.
    pub logs: Vec<String>,
    /// 0 on success; otherwise what the code ended with itself, or 1.
    pub exit_code: i32,
    /// What went wrong.
    pub error: Option<RunError>,
    /// Times and sizes, as the host measured them.
    pub metrics: Metrics,
    /// What held the code.
    pub isolation: Isolation,
    /// What was cut to its cap.
    pub truncated: Truncation,
    /// Files that came back.
    pub artifacts: Vec<Artifact>,
    /// Changes to the workspace.
    pub changes: Vec<Change>,
    /// Tools found by intent and offered to the code.
    pub tools: ToolReport,
    /// Whether the answer came from a cache.
    pub cached: bool,
    /// The session it ran in.
    pub session_id: Option<String>,
    /// What the code left in `state`, as a JSON object: `{}` when it left nothing.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub state: Box<RawValue>,
    /// The value is not quite what the code gave: a number was NaN or infinite and became null, text
    /// held half a character, or several keys have the same text.
    pub lossy: bool,
}

impl Default for RunResult {
    /// What every result starts as: failed, nothing confined, nothing printed.
    fn default() -> Self {
        Self {
            id: String::new(),
            status: RunStatus::Failed,
            success: false,
            result: RawValue::NULL.to_owned(),
            stdout: String::new(),
            stderr: String::new(),
            logs: Vec::new(),
            exit_code: 1,
            error: None,
            metrics: Metrics::default(),
            isolation: Isolation::default(),
            truncated: Truncation::default(),
            artifacts: Vec::new(),
            changes: Vec::new(),
            tools: ToolReport::default(),
            cached: false,
            session_id: None,
            state: Self::no_state(),
            lossy: false,
        }
    }
}

impl RunResult {
    /// A result for code that was not run, or whose cell was ended before it could answer.
    pub fn not_run(id: impl Into<String>, status: RunStatus, error: RunError) -> Self {
        Self { id: id.into(), status, error: Some(error), ..Self::default() }
    }

    /// The `state` of a run that left none.
    pub fn no_state() -> Box<RawValue> {
        RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

/// Times and sizes, as the host measured them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Metrics {
    /// From admission to a confined cell in hand.
    #[serde(rename = "startupTimeMs")]
    pub startup_ms: f64,
    /// From code in to answer out.
    #[serde(rename = "executionTimeMs")]
    pub execution_ms: f64,
    /// CPU time of the cell's guest.
    #[serde(rename = "cpuTimeMs")]
    pub cpu_ms: f64,
    /// Peak resident memory of the cell's guest.
    #[serde(rename = "memoryUsedMB")]
    pub memory_mb: f64,
    /// Tool calls made.
    #[serde(rename = "toolCalls")]
    pub tool_calls: u32,
}

/// What held the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Isolation {
    /// How much of the plan was in force.
    pub tier: Tier,
    /// The engine that ran it.
    pub engine: EngineName,
    /// Every layer in force.
    pub layers: Vec<Cow<'static, str>>,
    /// What bounds memory.
    pub memory: MemoryBound,
}

impl Default for Isolation {
    fn default() -> Self {
        Self {
            tier: Tier::Refused,
            engine: EngineName::QuickJs,
            layers: Vec::new(),
            memory: MemoryBound::None,
        }
    }
}

/// How much of a cell's plan was in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Every layer.
    Full,
    /// Fewer, because the operator asked for that by name.
    Weakened,
    /// Nothing ran.
    Refused,
    /// Nothing ran: the answer came from the cache.
    Cached,
}

impl Tier {
    /// The tier as results write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Weakened => "weakened",
            Self::Refused => "refused",
            Self::Cached => "cached",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What bounds a cell's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryBound {
    /// Nothing ran.
    None,
    /// A control group of the kernel.
    Cgroup,
    /// Resource limits, and the host sampling.
    Rlimit,
}

/// A file that came back beside the value (C2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Where it was, relative to the workspace.
    pub path: String,
    /// What it looks like.
    pub media_type: Cow<'static, str>,
    /// Its size.
    pub bytes: u64,
    /// Its content, in base64.
    pub data: String,
}

/// A path of the workspace that differs from what it was (C1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Relative to the workspace.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What it is now, or was.
    pub entry: EntryKind,
    /// Size of what is there now.
    pub bytes: u64,
    /// Whether the change has gone to the real directory.
    pub committed: bool,
    /// Why it was not committed, or what else there is to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What happened to a path of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// Its content or its mode changed.
    Modified,
    /// It is not there any more.
    Deleted,
}

impl ChangeKind {
    /// The kind as results write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which nothing follows.
    Link,
    /// A socket, a pipe or a device.
    Other,
}

/// What was cut to its cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Truncation {
    /// Standard output was cut.
    pub stdout: bool,
    /// Standard error was cut.
    pub stderr: bool,
    /// Log entries were left out.
    pub logs: bool,
    /// A table in the value had more rows than came back, or the value is a summary.
    pub result: bool,
    /// What the code left in `state` was too large or not JSON, and did not come back.
    pub state: bool,
}

/// Tools found and offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    /// Found by intent.
    pub discovered: Vec<String>,
    /// Offered to the code.
    pub injected: Vec<String>,
}

/// Where a printed text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Neither: log lines, and attempts that were denied.
    Log,
}
