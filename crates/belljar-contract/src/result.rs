//! The one result type (A9); every outer format is a thin adapter around it.

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{EngineName, RunError, RunId, RunStatus, SessionId};

/// The result of a run, in the canonical JSON shape. It can be read back: a client, a record and a workflow
/// use the same type.
///
/// ```
/// use belljar_contract::{ErrorCode, RunError, RunResult, RunStatus};
///
/// let error = RunError::new(ErrorCode::LimitCode, "the code is larger than 50,000 bytes");
/// let result = RunResult::not_run("run_1", RunStatus::Failed, error);
/// let json = serde_json::to_string(&result).expect("a result is JSON");
/// let read: RunResult = serde_json::from_str(&json).expect("its own JSON");
/// assert!(!read.success && read.status == RunStatus::Failed);
/// assert_eq!(read.error.map(|error| error.code), Some(ErrorCode::LimitCode));
/// ```
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunResult {
    /// The name of the run, `run_…`.
    pub id: RunId,
    /// How the run ended, or why it stopped.
    pub status: RunStatus,
    /// Whether it ended with a value.
    pub success: bool,
    /// The value, as JSON; `null` when there is none.
    #[schemars(with = "Option<Value>")]
    pub result: Box<RawValue>,
    /// The text printed to standard output, up to the cap.
    pub stdout: String,
    /// The text printed to standard error, up to the cap.
    pub stderr: String,
    /// One entry per print, log or denied attempt, in order.
    pub logs: Vec<String>,
    /// 0 on success; otherwise the status with which the code ended itself, or 1.
    pub exit_code: i32,
    /// The error; absent when the run succeeded.
    pub error: Option<RunError>,
    /// Times and sizes, as the host measured them.
    pub metrics: Metrics,
    /// The confinement that was in force.
    pub isolation: Isolation,
    /// The parts that were cut to their caps.
    pub truncated: Truncation,
    /// Files that came back.
    pub artifacts: Vec<Artifact>,
    /// Files in `/work` that ended with the run, because they were not in `/work/out`.
    pub unreturned: UnreturnedFiles,
    /// Changes to the workspace.
    pub changes: Vec<Change>,
    /// Tools found by intent and offered to the code.
    pub tools: ToolReport,
    /// Whether the answer came from a cache.
    pub cached: bool,
    /// The session it ran in.
    pub session_id: Option<SessionId>,
    /// The `state` that the code left, as a JSON object: `{}` when it left none.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub state: Box<RawValue>,
    /// The value differs from the one the code returned: a number was NaN or infinite and became
    /// null, text held half a character, or several keys have the same text.
    pub lossy: bool,
}

impl Default for RunResult {
    /// The start of every result: failed, nothing confined, nothing printed.
    fn default() -> Self {
        Self {
            id: RunId::default(),
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
            unreturned: UnreturnedFiles::default(),
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
    pub fn not_run(id: impl Into<RunId>, status: RunStatus, error: RunError) -> Self {
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
    /// The number of tool calls the code made.
    #[serde(rename = "toolCalls")]
    pub tool_calls: u32,
}

/// The confinement of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Isolation {
    /// How much of the plan was in force.
    pub tier: Tier,
    /// The engine that ran it.
    pub engine: EngineName,
    /// Every layer in force.
    pub layers: Vec<Cow<'static, str>>,
    /// The mechanism that bounds the cell's memory.
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
    /// Every layer of the plan was in force.
    Full,
    /// Fewer, because the operator asked for that by name.
    Weakened,
    /// Belljar refused the run: no code ran.
    Refused,
    /// No code ran: the answer came from the cache.
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

/// The mechanism that bounds a cell's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryBound {
    /// No mechanism, because no code ran.
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
    /// The media type that its content or name suggests.
    pub media_type: Cow<'static, str>,
    /// The size of the file, in bytes, before base64.
    pub bytes: u64,
    /// Its content, in base64.
    pub data: String,
    /// The handle under which the project keeps its content, `blob_…`; absent if it keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// Files that a run wrote and did not return. They ended with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnreturnedFiles {
    /// The first of them, by path.
    pub files: Vec<UnreturnedFile>,
    /// Whether there were more than are listed.
    pub more: bool,
}

/// A file that a run wrote and did not return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreturnedFile {
    /// Relative to `/work`.
    pub path: String,
    /// Its size, in bytes.
    pub bytes: u64,
}

/// A path of the workspace that differs from what it was (C1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Relative to the workspace.
    pub path: String,
    /// Whether it was added, modified or deleted.
    pub kind: ChangeKind,
    /// The kind of entry it is now, or was before it was deleted.
    pub entry: EntryKind,
    /// The size of the entry now.
    pub bytes: u64,
    /// Whether the change has gone to the real directory.
    pub committed: bool,
    /// The reason it was not committed, or a remark about the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a path of a workspace changed.
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

/// The kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file with content.
    File,
    /// A directory, which may be empty.
    Directory,
    /// A symbolic link, which nothing follows.
    Link,
    /// A socket, a pipe or a device.
    Other,
}

/// The parts of a result that were cut to their caps.
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
    /// The `state` that the code left was too large or not JSON, and was dropped.
    pub state: bool,
}

/// Tools found and offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    /// Names of tools that fit the intent of the request.
    pub discovered: Vec<String>,
    /// Offered to the code.
    pub injected: Vec<String>,
}

/// Where a printed text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output of the code.
    Stdout,
    /// Standard error of the code.
    Stderr,
    /// Neither: log lines, and attempts that were denied.
    Log,
}
