//! The errors of a run (A7).
//!
//! An agent branches on [`ErrorKind`]; [`ErrorCode`] is the stable, finer name. Both are closed
//! sets, so a cell cannot invent one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MissingGrant;

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident,)*) => {
        /// The `type` of a run's error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[allow(clippy::enum_variant_names, reason = "these are the names agents know")]
        pub enum ErrorKind {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorKind {
            /// Every type there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The type as it stands in results.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }
        }
    };
}

error_kinds! {
    /// The code cannot be parsed, or uses syntax that is not supported.
    SyntaxError,
    /// The code threw, or rejected a promise without a handler.
    RuntimeError,
    /// Wall or CPU time ran out.
    TimeoutError,
    /// The memory limit was reached.
    MemoryError,
    /// The code reached for something it was not granted.
    PermissionError,
    /// A tool failed, cannot be reached, or refused its arguments.
    ToolError,
    /// Any other limit was reached.
    LimitError,
    /// The value is not JSON.
    SerializationError,
    /// The sandbox itself could not do its work; the code is not to blame.
    SandboxError,
}

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal => $kind:ident,)*) => {
        /// The stable `code` of a run's error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl ErrorCode {
            /// Every code there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as it stands in results.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The error type this code belongs to.
            pub const fn kind(self) -> ErrorKind {
                match self { $(Self::$variant => ErrorKind::$kind,)* }
            }
        }
    };
}

error_codes! {
    /// The code does not parse.
    SyntaxInvalid = "syntax.invalid" => SyntaxError,
    /// The code parses, but uses syntax this engine does not take (JSX, decorators, `export`).
    SyntaxUnsupported = "syntax.unsupported" => SyntaxError,
    /// The code threw an error and did not catch it.
    RuntimeThrown = "runtime.thrown" => RuntimeError,
    /// A promise was rejected, and no handler took the rejection.
    RuntimeUnhandledRejection = "runtime.unhandled_rejection" => RuntimeError,
    /// The call stack is exhausted.
    RuntimeStackOverflow = "runtime.stack_overflow" => RuntimeError,
    /// The body waits for a promise that nothing can settle any more.
    RuntimeStalled = "runtime.stalled" => RuntimeError,
    /// The code ended with a status other than 0.
    RuntimeExit = "runtime.exit" => RuntimeError,
    /// The run took longer than its wall-clock limit.
    LimitTimeout = "limit.timeout" => TimeoutError,
    /// The run used more CPU time than its limit.
    LimitCpu = "limit.cpu" => TimeoutError,
    /// The run reached its memory limit.
    LimitMemory = "limit.memory" => MemoryError,
    /// The code is larger than allowed.
    LimitCode = "limit.code" => LimitError,
    /// The context is larger than allowed.
    LimitContext = "limit.context" => LimitError,
    /// Too much was printed.
    LimitOutput = "limit.output" => LimitError,
    /// The value is larger than allowed.
    LimitResult = "limit.result" => LimitError,
    /// More was asked for than the operator's maximum.
    LimitMaximum = "limit.maximum" => LimitError,
    /// Workspace and `/tmp` are full.
    LimitDisk = "limit.disk" => LimitError,
    /// Workspace and `/tmp` hold as many files as they may.
    LimitInodes = "limit.inodes" => LimitError,
    /// Too many files are open.
    LimitOpenFiles = "limit.open_files" => LimitError,
    /// Too many processes and threads.
    LimitProcesses = "limit.processes" => LimitError,
    /// Too many network connections in one run.
    LimitNetConnections = "limit.net_connections" => LimitError,
    /// Too many bytes sent or received by one run.
    LimitNetBytes = "limit.net_bytes" => LimitError,
    /// A request to a host could not be made, or got no answer.
    FetchFailed = "fetch.failed" => RuntimeError,
    /// The answer to a request to a host took longer than the code gave it.
    FetchTimeout = "fetch.timeout" => RuntimeError,
    /// Network access that was not granted.
    PermissionNetwork = "permission.network" => PermissionError,
    /// A module that was not granted.
    PermissionModule = "permission.module" => PermissionError,
    /// Process, environment or host access that was not granted.
    PermissionHost = "permission.host" => PermissionError,
    /// File access that was not granted.
    PermissionFile = "permission.file" => PermissionError,
    /// A command that was not granted.
    PermissionCommand = "permission.command" => PermissionError,
    /// A tool the run may not call.
    PermissionTool = "permission.tool" => PermissionError,
    /// A person refused the call.
    ApprovalDenied = "approval.denied" => PermissionError,
    /// No person approved the call in time.
    ApprovalExpired = "approval.expired" => PermissionError,
    /// The tool says that it failed.
    ToolFailed = "tool.failed" => ToolError,
    /// The arguments are not what the tool takes; the call was not made.
    ToolArguments = "tool.arguments" => ToolError,
    /// There is no such tool.
    ToolUnknown = "tool.unknown" => ToolError,
    /// The tool did not answer in time.
    ToolTimeout = "tool.timeout" => ToolError,
    /// The tool's server cannot be reached.
    ToolUnavailable = "tool.unavailable" => ToolError,
    /// The call was sent, and no answer was recorded: it may have happened.
    ToolInDoubt = "tool.in_doubt" => ToolError,
    /// Too many tool calls in one run.
    LimitToolCalls = "limit.tool_calls" => LimitError,
    /// The code asked for something else than when it ran before.
    ReplayDiverged = "replay.diverged" => RuntimeError,
    /// A live object, cycle, BigInt or other value JSON has no place for.
    SerializationUnsupported = "serialization.unsupported" => SerializationError,
    /// The value is nested too deeply.
    SerializationDepth = "serialization.depth" => SerializationError,
    /// The workspace was changed by someone else meanwhile; those files were not committed.
    WorkspaceConflict = "workspace.conflict" => RuntimeError,
    /// The workspace could not be read or committed, or what was written to a granted directory could
    /// not be taken back.
    WorkspaceFailed = "workspace.failed" => SandboxError,
    /// This host cannot enforce a layer of the plan; nothing ran.
    SandboxUnsupported = "sandbox.unsupported" => SandboxError,
    /// A layer could not be put in force; nothing ran.
    SandboxFailed = "sandbox.failed" => SandboxError,
    /// The cell died without a report.
    SandboxCrashed = "sandbox.crashed" => SandboxError,
    /// The zygote went away and took the cell with it.
    SandboxZygoteLost = "sandbox.zygote_lost" => SandboxError,
    /// The cell sent something that is not a frame.
    SandboxProtocol = "sandbox.protocol" => SandboxError,
    /// The engine reports a failure of its own.
    SandboxEngine = "sandbox.engine" => SandboxError,
    /// There is no such session, or it has ended.
    SessionEnded = "session.ended" => SandboxError,
    /// The session lost its memory; a checkpoint of it remains.
    SessionLost = "session.lost" => SandboxError,
    /// There is no such checkpoint any more.
    SessionNoCheckpoint = "session.no_checkpoint" => SandboxError,
    /// The session cannot be branched as it is now.
    SessionNotBranched = "session.not_branched" => SandboxError,
    /// There are as many sessions as there may be.
    LimitSessions = "limit.sessions" => LimitError,
    /// The caller ended the run.
    RunAborted = "run.aborted" => SandboxError,
    /// The host stopped, or could not write the run's journal; the run resumes from there later.
    RunInterrupted = "run.interrupted" => SandboxError,
    /// The host ended while the run had connections: they may have had effects, so it is not repeated.
    RunInDoubt = "run.in_doubt" => SandboxError,
    /// The request itself is not valid.
    RequestInvalid = "request.invalid" => SandboxError,
}

impl ErrorCode {
    /// Whether a cell can know this about itself. Only the host reports the other codes: a cell
    /// that claims to have been aborted, or blames the sandbox, breaks the protocol.
    pub const fn is_a_cells_own(self) -> bool {
        match self {
            Self::SyntaxInvalid
            | Self::SyntaxUnsupported
            | Self::RuntimeThrown
            | Self::RuntimeUnhandledRejection
            | Self::RuntimeStackOverflow
            | Self::RuntimeStalled
            | Self::RuntimeExit
            | Self::LimitTimeout
            | Self::LimitMemory
            | Self::LimitContext
            | Self::LimitResult
            | Self::LimitDisk
            | Self::LimitInodes
            | Self::LimitOpenFiles
            | Self::LimitProcesses
            | Self::FetchFailed
            | Self::FetchTimeout
            | Self::PermissionNetwork
            | Self::PermissionModule
            | Self::PermissionHost
            | Self::PermissionFile
            | Self::PermissionCommand
            | Self::PermissionTool
            | Self::ApprovalDenied
            | Self::ApprovalExpired
            | Self::ToolFailed
            | Self::ToolArguments
            | Self::ToolUnknown
            | Self::ToolTimeout
            | Self::ToolUnavailable
            | Self::ToolInDoubt
            | Self::LimitToolCalls
            | Self::SerializationUnsupported
            | Self::SerializationDepth
            | Self::SandboxEngine
            | Self::RequestInvalid => true,
            Self::LimitCpu
            | Self::LimitCode
            | Self::LimitOutput
            | Self::LimitMaximum
            | Self::LimitNetConnections
            | Self::LimitNetBytes
            | Self::ReplayDiverged
            | Self::WorkspaceConflict
            | Self::WorkspaceFailed
            | Self::SandboxUnsupported
            | Self::SandboxFailed
            | Self::SandboxCrashed
            | Self::SandboxZygoteLost
            | Self::SandboxProtocol
            | Self::SessionEnded
            | Self::SessionLost
            | Self::SessionNoCheckpoint
            | Self::SessionNotBranched
            | Self::LimitSessions
            | Self::RunAborted
            | Self::RunInterrupted
            | Self::RunInDoubt => false,
        }
    }
}

/// The error of a run, for people and models.
///
/// ```
/// use belljar_contract::{ErrorCode, ErrorKind, RunError};
///
/// let error = RunError::new(ErrorCode::PermissionFile, "/etc/shadow is not granted")
///     .with_hint("Only granted paths exist here.");
/// assert_eq!(error.kind, ErrorKind::PermissionError);
/// assert_eq!(error.code.as_str(), "permission.file");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunError {
    /// The coarse type, on which an agent branches.
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    /// The stable, finer name.
    pub code: ErrorCode,
    /// The event in a sentence or two.
    pub message: String,
    /// Frames of the agent's own code, as it was written.
    pub stack: Option<String>,
    /// 1-based line of the source as written.
    pub line: Option<u32>,
    /// 1-based column of the source as written.
    pub column: Option<u32>,
    /// The tool that failed, as `server__tool`.
    pub tool_name: Option<String>,
    /// The remedy, if there is one.
    pub hint: Option<String>,
    /// The grant that the code did not have, if that is why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Box<MissingGrant>>,
    /// The status the code ended with, when it ended itself. A result has it in `exit_code`.
    #[serde(skip)]
    pub exit_code: Option<i32>,
}

impl RunError {
    /// Longer messages and hints are cut: a result is small, and so is the head of a frame.
    pub const MAX_MESSAGE_BYTES: usize = 8 * 1024;

    /// An error with a message and nothing else.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            kind: code.kind(),
            code,
            message: shortened(message.into(), Self::MAX_MESSAGE_BYTES),
            stack: None,
            line: None,
            column: None,
            tool_name: None,
            hint: None,
            missing: None,
            exit_code: None,
        }
    }

    /// Adds a hint: the remedy, for people and models.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A text of at most so many bytes, with a mark where it was cut.
pub fn shortened(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push('…');
    }
    text
}

/// A long line as its beginning and its end, in about so many bytes, with a count of what is between.
pub fn head_and_tail(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(max / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - max / 4);
    let (first, last) =
        (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{first} … ({} bytes left out) … {last}", tail - head)
}
