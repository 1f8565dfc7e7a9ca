//! The host side of a run: admission, pool, deadlines, output caps, result.
//!
//! Nothing a cell says is trusted: frames are capped and decoded strictly, output is cut by the
//! reader, metrics are measured from outside, and a malformed frame ends the cell.

mod cell;
mod examine;
mod host;
mod launch_error;
mod limits;
mod pool;
mod request;
mod result;
mod run;
mod transcript;
mod value;
mod zygote;

pub use belljar_jail::{Mechanism, ZygotePlan};
pub use examine::{Finding, FindingState, examine};
pub use host::{Host, HostConfig};
pub use launch_error::LaunchError;
pub use limits::Limits;
pub use request::{Language, RunRequest};
pub use result::{
    ErrorCode, ErrorKind, Isolation, Metrics, RunError, RunResult, Status, ToolReport, Truncated,
    unrun,
};
pub use zygote::ZygoteProgram;
