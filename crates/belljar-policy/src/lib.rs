//! Rules about tool calls: patterns of names and arguments, the order in which rules count, decisions,
//! and the file of the rules that a user approved for good.
//!
//! A decision is a pure function of a tool, its arguments and the rules. Where the caller could mean
//! several things, a rule that allows needs all of them to match, and a rule that asks or denies needs one.

mod kept;
mod policy;
mod tool;

pub use kept::{AcceptedServer, KeptFile, KeptRules, KeptRulesError, known_projects, prepare};
pub use policy::{
    Condition, Coverage, Glob, Overrides, PolicyDecision, PolicyRule, PolicySubject, PolicyVerdict,
    RuleError, StandingRule, ToolGrants, ToolPolicy, Trust,
};
pub use tool::{Annotations, Tool};
