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
mod ids;
mod launch_error;
mod machine;
mod orders;
mod pool;
mod pools;
mod protect;
mod report;
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
pub use engine::{EngineLaunch, EngineSource, Preload, ZygoteKind};
pub use examine::{Finding, FindingState, examine};
pub use host::{Host, HostConfig, RunOptions};
pub use ids::run_id;
pub use launch_error::LaunchError;
pub use machine::maximum_limits_here;
pub use session::{
    CheckpointInfo, Checkpointed, Ending, FileError, MAX_CHECKPOINTS, MAX_SESSIONS, Session,
    SessionFile, SessionFileKind, SessionInfo, SessionPhase, SessionRequest, most_sessions,
};
pub use tools::{Ask, BridgeLink, Durable, Input, Stop, ToolCall, ToolFault, ToolLink, ToolReply};
pub use transcript::Listener;
pub use zygote::ZygoteProgram;
