//! The one result type (A9); every outer format is a thin adapter around it.

use belljar_wire::GuestError;
pub use belljar_wire::{ErrorCode, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::state;

/// How a run went. Serialises to the canonical JSON shape.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// Unique name of the run, `run_…`.
    pub id: String,
    /// How it ended.
    pub status: Status,
    /// Whether it ended with a value.
    pub success: bool,
    /// The value as JSON; `null` when there is none.
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
    /// Measured by the host.
    pub metrics: Metrics,
    /// What held the code.
    pub isolation: Isolation,
    /// What was cut.
    pub truncated: Truncated,
    /// Files that came back.
    pub artifacts: Vec<Artifact>,
    /// Changes to the workspace.
    pub changes: Vec<Change>,
    /// Tools found by intent; filled in by who looks for them.
    pub tools: ToolReport,
    /// Whether the answer came from a cache; filled in by who keeps one.
    pub cached: bool,
    /// The session it ran in.
    pub session_id: Option<String>,
    /// What the code left in `state`, as a JSON object: `{}` when it left nothing.
    pub state: Box<RawValue>,
    /// The value is not quite what the code gave: a number was NaN or infinite and became null, text
    /// held half a character, or several keys have the same text.
    pub lossy: bool,
}

impl RunResult {
    /// What every result starts as: nothing confined, nothing said.
    pub(crate) fn blank(id: String) -> Self {
        Self {
            id,
            status: Status::Failed,
            success: false,
            result: RawValue::NULL.to_owned(),
            stdout: String::new(),
            stderr: String::new(),
            logs: Vec::new(),
            exit_code: 1,
            error: None,
            metrics: Metrics::default(),
            isolation: Isolation {
                tier: "refused",
                engine: "quickjs",
                layers: Vec::new(),
                memory: "none",
            },
            truncated: Truncated::default(),
            artifacts: Vec::new(),
            changes: Vec::new(),
            tools: ToolReport::default(),
            cached: false,
            session_id: None,
            state: state::empty(),
            lossy: false,
        }
    }
}

/// A result for code that was not run, or whose cell was ended before it could answer.
pub fn unrun(status: Status, error: RunError) -> RunResult {
    RunResult { status, error: Some(error), ..RunResult::blank(run_id()) }
}

/// A new name for a run.
pub fn run_id() -> String {
    name("run_")
}

/// A name that nothing else has, with what it is the name of before it.
pub(crate) fn name(of: &str) -> String {
    let mut bytes = [0; 10];
    // Without randomness the name is merely not unique; nothing fails for it.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    of.chars().chain(digits).collect()
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With a value.
    Completed,
    /// With an error.
    Failed,
    /// The caller stopped it.
    Aborted,
    /// Its host stopped, or could not keep its journal: it goes on from there later.
    Interrupted,
    /// It waits for a person to approve a call.
    ApprovalRequired,
    /// Nobody knows whether a call of it happened; a person has to say.
    InDoubt,
}

/// What went wrong, for people and models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunError {
    /// What an agent branches on.
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    /// Stable, finer name.
    pub code: ErrorCode,
    /// What happened.
    pub message: String,
    /// Frames of the agent's own code.
    pub stack: Option<String>,
    /// 1-based line of the source as written.
    pub line: Option<u32>,
    /// 1-based column of the source as written.
    pub column: Option<u32>,
    /// The tool that failed, as `server__tool`.
    pub tool_name: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// What the code ended with, when it ended itself.
    #[serde(skip)]
    pub exit_code: Option<i32>,
}

impl RunError {
    /// An error the host itself raises.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        GuestError::new(code, message).into()
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<GuestError> for RunError {
    fn from(error: GuestError) -> Self {
        Self {
            kind: error.code.kind(),
            code: error.code,
            message: error.message,
            stack: error.stack,
            line: error.line,
            column: error.column,
            tool_name: error.tool_name,
            hint: error.hint,
            exit_code: error.exit_code,
        }
    }
}

/// Times and sizes, as the host measured them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Isolation {
    /// `full`, `refused` when nothing ran, or `weakened` when the operator asked for that.
    pub tier: &'static str,
    /// The engine that ran it.
    pub engine: &'static str,
    /// Every layer in force.
    pub layers: Vec<&'static str>,
    /// What bounds memory: `cgroup`, or `rlimit` (with the host sampling).
    pub memory: &'static str,
}

/// A file that came back beside the value (C2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Where it was, relative to the workspace.
    pub path: String,
    /// What it looks like.
    pub media_type: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Its content, in base64.
    pub data: String,
}

/// A path of the workspace that differs from what it was (C1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Relative to the workspace.
    pub path: String,
    /// `added`, `modified` or `deleted`.
    pub kind: &'static str,
    /// `file`, `directory`, `link` or `other`.
    pub entry: &'static str,
    /// Size of what is there now.
    pub bytes: u64,
    /// Whether it has gone to the real directory.
    pub committed: bool,
    /// What there is to know about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What was cut to its cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Truncated {
    /// Standard output was cut.
    pub stdout: bool,
    /// Standard error was cut.
    pub stderr: bool,
    /// Log entries were left out.
    pub logs: bool,
    /// A table in the value had more rows than came back.
    pub result: bool,
    /// What the code left in `state` was too large or no JSON, and did not come back.
    pub state: bool,
}

/// Tools found and offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReport {
    /// Found by intent.
    pub discovered: Vec<String>,
    /// Offered to the code.
    pub injected: Vec<String>,
}
