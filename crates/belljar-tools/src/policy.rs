//! Who may call what: one pure function, [`Policy::decide`], that every path asks.
//!
//! What the operator wrote comes first, deny before ask before allow; then what is known of the
//! tool. Matching is on the qualified original name, never on how guest code spelt it. A condition
//! on an argument that is not there never matches, and a doubtful value never matches an `allow`.

mod condition;
mod glob;
mod own_state;
mod rule;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use glob::Glob;
pub use rule::{Condition, Rule, RuleError};

use condition::Reading;

use crate::{names::Catalogue, tool::Tool};

/// The operator's rules. An empty policy leaves everything to the defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Calls that are made without asking.
    #[serde(default)]
    pub allow: Vec<Rule>,
    /// A person decides each call.
    #[serde(default)]
    pub ask: Vec<Rule>,
    /// Calls that are never made; these rules come first.
    #[serde(default)]
    pub deny: Vec<Rule>,
}

/// What the operator says about tools, whatever their servers say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// Tools that change nothing.
    #[serde(default)]
    pub read_only: Vec<Glob>,
    /// Calling them twice is the same as calling them once.
    #[serde(default)]
    pub idempotent: Vec<Glob>,
}

/// What a run may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolGrants {
    /// Nothing but these, if given.
    #[serde(default)]
    pub only: Option<Vec<Glob>>,
    /// Granted for this run: where a *default* would ask, they are called. A rule of the operator
    /// that asks or denies stands.
    #[serde(default)]
    pub given: Vec<Glob>,
}

/// Whether the operator trusts what a server says about its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Its annotations are believed.
    Trusted,
    /// Its annotations are only shown.
    Untrusted,
}

/// What is to happen with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call is made.
    Allow,
    /// A person decides about this call.
    Ask,
    /// The call is refused.
    Deny,
}

/// A verdict and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What is to happen.
    pub verdict: Verdict,
    /// Why, in words for the operator, the audit row and the guest.
    pub reason: String,
}

impl Policy {
    /// What is to happen with this call: deny, then what the run may use, then ask, then what
    /// always asks, then allow, then the defaults.
    pub fn decide(
        &self,
        tool: &Tool,
        trust: Trust,
        overrides: &Overrides,
        arguments: &Map<String, Value>,
        grants: &ToolGrants,
    ) -> Decision {
        let name = tool.qualified_name();
        let first = |rules: &[Rule], reading| {
            rules.iter().find(|rule| rule.matches(&name, arguments, reading)).map(Rule::to_string)
        };
        if let Some(rule) = first(&self.deny, Reading::Any) {
            return Decision::new(Verdict::Deny, format!("the operator's policy denies {rule}"));
        }
        if !grants.may_use(&name) {
            let reason = "this run may use only the tools it was given";
            return Decision::new(Verdict::Deny, reason);
        }
        if let Some(rule) = first(&self.ask, Reading::Any) {
            return Decision::new(Verdict::Ask, format!("the operator's policy asks for {rule}"));
        }
        if own_state::is_named(arguments) {
            return Decision::new(Verdict::Ask, own_state::REASON);
        }
        if let Some(rule) = first(&self.allow, Reading::All) {
            return Decision::new(Verdict::Allow, format!("the operator's policy allows {rule}"));
        }
        by_default(tool, &name, trust, overrides, grants)
    }

    /// Whether a call of any tool the run may use could be answered by [`Verdict::Ask`]. With
    /// conditions on arguments nobody knows yet: yes, if some arguments could lead there. That those
    /// always ask which name Belljar's own state is left out: it would be yes for every tool.
    pub fn may_ask(
        &self,
        catalogue: &Catalogue,
        trust: impl Fn(&str) -> Trust,
        overrides: &Overrides,
        grants: &ToolGrants,
    ) -> bool {
        catalogue.tools().iter().any(|tool| {
            let name = tool.qualified_name();
            let always = |rules: &[Rule]| rules.iter().any(|rule| rule.always_matches(&name));
            if always(&self.deny) || !grants.may_use(&name) {
                return false;
            }
            if self.ask.iter().any(|rule| rule.may_match(&name)) {
                return true;
            }
            let default = by_default(tool, &name, trust(&tool.server), overrides, grants);
            !always(&self.allow) && default.verdict == Verdict::Ask
        })
    }

    /// Whether some rule asks about tools that a server of this name could have.
    pub fn may_ask_about(&self, server: &str) -> bool {
        let prefix = format!("{server}__");
        self.ask.iter().any(|rule| rule.may_concern(&prefix))
    }
}

impl Overrides {
    /// Whether the tool changes nothing, as far as anyone says who is believed.
    pub fn is_read_only(&self, tool: &Tool, trust: Trust) -> bool {
        let hinted = trust == Trust::Trusted && tool.annotations.read_only == Some(true);
        hinted || matches_any(&self.read_only, &tool.qualified_name())
    }

    /// Whether calling the tool twice is the same as calling it once, as far as anyone says who is
    /// believed. What changes nothing can be called twice.
    pub fn is_idempotent(&self, tool: &Tool, trust: Trust) -> bool {
        let hinted = trust == Trust::Trusted && tool.annotations.idempotent == Some(true);
        hinted
            || matches_any(&self.idempotent, &tool.qualified_name())
            || self.is_read_only(tool, trust)
    }
}

impl ToolGrants {
    /// Whether the run may use the tool at all.
    pub fn may_use(&self, qualified_name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| matches_any(only, qualified_name))
    }

    /// Whether it may use any tool that this server could have.
    pub fn may_reach(&self, server: &str) -> bool {
        let prefix = format!("{server}__");
        self.only.as_ref().is_none_or(|only| only.iter().any(|glob| glob.may_begin_with(&prefix)))
    }
}

impl Decision {
    fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, reason: reason.into() }
    }
}

/// What happens with a tool no rule speaks of.
fn by_default(
    tool: &Tool,
    name: &str,
    trust: Trust,
    overrides: &Overrides,
    grants: &ToolGrants,
) -> Decision {
    if matches_any(&overrides.read_only, name) {
        return Decision::new(Verdict::Allow, "the operator says that it is read-only");
    }
    let hints = &tool.annotations;
    let trusted = trust == Trust::Trusted;
    if trusted && hints.read_only == Some(true) {
        return Decision::new(Verdict::Allow, "its server is trusted and says it is read-only");
    }
    if trusted && hints.destructive == Some(false) {
        let reason = "its server is trusted and says it destroys nothing";
        return Decision::new(Verdict::Allow, reason);
    }
    if matches_any(&grants.given, name) {
        return Decision::new(Verdict::Allow, "it was granted to this run");
    }
    let reason = match trust {
        Trust::Trusted => "no rule speaks of it, and it may destroy something",
        Trust::Untrusted => "no rule speaks of it, and its server is not trusted",
    };
    Decision::new(Verdict::Ask, reason)
}

fn matches_any(globs: &[Glob], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name))
}

#[cfg(test)]
mod tests;
