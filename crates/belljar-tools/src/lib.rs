//! Tools for guest code: upstream MCP servers, their catalogue, what code sees of it, who may call
//! what, and the one path by which a call leaves a cell.

mod arguments;
mod bridge;
mod crash;
mod local;
mod names;
mod policy;
mod record;
mod replay;
mod results;
mod schema;
mod search;
mod servers;
mod shape;
mod spelling;
mod tool;
mod types;
mod upstream;
mod visible;

pub use arguments::{
    ArgumentFault, FaultKind, UnreadableArguments, check as check_arguments,
    read as read_arguments, validate,
};
pub use bridge::{
    ApprovalNotice, AuditTiming, Bridge, BridgeConfig, JournalError, NoObserver, Observer, Reach,
    RunBridge, RunContext,
};
#[doc(hidden)]
pub use crash::crash_point;
pub use local::{LocalOutcome, LocalServer};
pub use names::{Catalogue, ResolveError, Style, identifier};
pub use policy::{
    Condition, Decision, Glob, Overrides, Policy, Rule, RuleError, ToolGrants, Trust, Verdict,
};
pub use results::{Answer, Block, ToolFailure, value_of};
pub use search::{Finder, Hit, Wanted};
pub use servers::{
    RawServer, ServerConfigError, ServerSpec, Surroundings, TransportSpec, read_mcp_json,
};
pub use shape::{Shape, ShapeLimits};
pub use tool::{Annotations, Tool};
pub use types::{Shapes, describe, python, typescript};
pub use upstream::{
    CallTime, ContentBlock, LISTING_PATIENCE, LimitSource, Sent, ServerVersion, Stage, ToolAnswer,
    ToolsOf, UpstreamError, Upstreams,
};
