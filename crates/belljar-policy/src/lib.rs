//! Which tool calls are made: rules, patterns of names and arguments, precedence, decisions.

mod policy;
mod tool;

pub use policy::{
    Condition, Glob, Overrides, PolicyDecision, PolicyRule, PolicySubject, PolicyVerdict,
    RuleError, ToolGrants, ToolPolicy, Trust,
};
pub use tool::{Annotations, Tool};
