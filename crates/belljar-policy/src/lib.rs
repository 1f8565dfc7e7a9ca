//! Which tool calls are made: rules, patterns of names and arguments, precedence, decisions.

mod kept;
mod policy;
mod tool;

pub use kept::{AcceptedServer, KeptFile, KeptRules, KeptRulesError, known_projects, prepare};
pub use policy::{
    Condition, Coverage, Glob, Overrides, PolicyDecision, PolicyRule, PolicySubject, PolicyVerdict,
    RuleError, StandingRule, ToolGrants, ToolPolicy, Trust,
};
pub use tool::{Annotations, Tool};
