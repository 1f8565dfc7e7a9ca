//! The host side of a run: admission, pool, deadlines, output caps, result.
//!
//! The host trusts nothing that a cell sends: it caps frames and decodes them strictly, cuts output, measures
//! usage from outside, and ends the cell at a malformed frame. A cell serves one run or one session. A guest
//! that broke the protocol, or did not report the end of its run, is killed: its session continues from a
//! checkpoint or ends with the reason.

mod cell;
mod cell_limits;
mod certificates;
mod clock;
mod connection;
mod engine;
mod examine;
mod exchange;
mod fetches;
mod files;
mod grants;
mod guest_state;
mod host;
mod ids;
mod launch_error;
mod machine;
mod network;
mod pool;
mod pools;
mod protect;
mod result_builder;
mod run;
mod scan;
mod session;
mod socket_list;
mod stream;
mod tools;
mod transcript;
mod value;
mod zygote;

pub use belljar_jail::{Mechanism, View, ZygotePlan};
pub use belljar_net::{ConnectionEvent, ConnectionLog, ConnectionOutcome, LogFailure};
pub use engine::{EngineLaunch, EngineSource, Preload, ZygoteKind};
pub use examine::{Finding, FindingState, examine};
pub use host::{Host, HostConfig, RunOptions};
pub use ids::run_id;
pub use launch_error::LaunchError;
pub use machine::maximum_limits_here;
pub use network::{NetworkOptions, PATTERNS, SocketAccess, host_patterns};
pub use session::{
    CellSession, CheckpointSnapshot, FileError, MAX_CHECKPOINTS, MAX_SESSIONS, NewCheckpoint,
    SessionEnding, SessionPhase, SessionSnapshot, SessionSpec, most_sessions,
};
pub use tools::{
    BridgeLink, Durable, FetchAsk, FetchReply, FetchSender, GuestAsk, GuestInput, InputSender,
    StopReason, ToolCall, ToolFault, ToolLink, ToolReply,
};
pub use transcript::Listener;
pub use zygote::ZygoteProgram;

#[cfg(test)]
#[path = "../../belljar-testing/shared/skip.rs"]
mod skip;

/// Whether to skip a test because only root can run it.
#[cfg(test)]
fn not_root() -> bool {
    !rustix::process::geteuid().is_root() && skip::skip("this test needs root")
}
