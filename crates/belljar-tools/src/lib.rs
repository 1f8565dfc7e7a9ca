//! Tools for guest code: upstream MCP servers, the catalogue of their tools, policy, and the one path by
//! which a call leaves a cell.
//!
//! One canonical form of the arguments is checked, recorded, shown and sent. An approval covers what was
//! shown: one call with one set of arguments, or the rule that a person chose. Such a rule covers one tool
//! as it was defined then, and deny rules come before it. Credentials of a server exist in the host and in
//! that server, and nowhere else.

mod arguments;
mod bridge;
mod crash;
mod decisions;
mod local;
mod record;
mod replay;
mod results;
mod search;
mod servers;
mod upstream;

pub use arguments::{
    ArgumentFault, CallArguments, FaultKind, UnreadableArguments, check as check_arguments,
    read as read_arguments, validate,
};
pub use belljar_catalogue::{
    Catalogue, ResolveError, Style, ValueShape, ValueShapeLimits, ValueShapes, describe,
    identifier, python, typescript,
};
pub use belljar_policy::{
    AcceptedServer, Annotations, Condition, Glob, KeptRules, KeptRulesError, Overrides,
    PolicyDecision, PolicyRule, PolicySubject, PolicyVerdict, RuleError, StandingRule, Tool,
    ToolGrants, ToolPolicy, Trust, known_projects, prepare as prepare_kept_rules,
};
pub use bridge::{
    ApprovalNotice, AskedAction, AuditTiming, Bridge, BridgeConfig, CallObserver, FetchPort,
    JournalError, NoObserver, PreparedRun, RunBridge, RunContext, ToolReach,
};
#[doc(hidden)]
pub use crash::crash_point;
pub use decisions::{Decisions, RecordedVerdict, VerdictError};
pub use local::{LocalOutcome, LocalServer};
pub use record::{connection_row, has_connections, sent_row};
pub use results::{ToolFailure, ToolValue, value_of};
pub use search::{Finder, Hit, ToolQuery};
pub use servers::{
    RawServer, ServerConfigError, ServerSpec, Surroundings, TransportSpec, read_mcp_json,
};
pub use upstream::{
    CallTime, ContentBlock, LISTING_TIMEOUT, LimitSource, ServerVersion, ToolAnswer,
    ToolListResult, UpstreamError, Upstreams, WaitStage, WasSent,
};
