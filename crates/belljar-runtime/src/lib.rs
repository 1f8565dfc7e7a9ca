//! The host side of a run: admission, pool, deadlines, output caps, result.
//!
//! Nothing a cell says is trusted: frames are capped and decoded strictly, output is cut by the
//! reader, metrics are measured from outside, and a malformed frame ends the cell.

mod cell;
mod clock;
mod connection;
mod engine;
mod examine;
mod exchange;
mod files;
mod grants;
mod host;
mod launch_error;
mod limits;
mod orders;
mod pool;
mod pools;
mod protect;
mod report;
mod request;
mod result;
mod run;
mod scan;
mod session;
mod state;
mod stream;
mod tools;
mod transcript;
mod value;
mod zygote;

pub use belljar_jail::{Mechanism, View, ZygotePlan};
pub use engine::{EngineKind, EngineLaunch, EngineSource};
pub use examine::{Finding, FindingState, examine};
pub use host::{Bridged, Host, HostConfig};
pub use launch_error::LaunchError;
pub use limits::Limits;
pub use request::{CommitExecutable, Grants, Language, RunRequest, Workspace};
pub use result::{
    Artifact, Change, ErrorCode, ErrorKind, Isolation, Metrics, RunError, RunResult, Status,
    ToolReport, Truncated, run_id, unrun,
};
pub use session::{
    CheckpointInfo, Checkpointed, Ending, FileError, MAX_CHECKPOINTS, MAX_SESSIONS, Session,
    SessionFile, SessionFileKind, SessionInfo, SessionPhase, SessionRequest, most_sessions,
};
pub use tools::{Ask, BridgeLink, Durable, Input, Stop, ToolCall, ToolFault, ToolLink, ToolReply};
pub use transcript::{Listener, Stream};
pub use zygote::ZygoteProgram;
