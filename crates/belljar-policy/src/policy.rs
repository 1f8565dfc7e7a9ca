//! Which calls are made: one pure function, [`ToolPolicy::decide`], that every path uses.
//!
//! The operator's rules come first, deny before ask before allow; then the defaults for the tool. Rules
//! match the qualified original name, never the spelling in guest code. A condition on a missing
//! argument never matches, and an ambiguous value never matches an `allow`.

mod condition;
mod glob;
mod own_state;
mod rule;
mod standing;

use belljar_contract::ConsentScope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use glob::Glob;
pub use rule::{Condition, PolicyRule, RuleError};
pub use standing::{Coverage, StandingRule};

use condition::MatchMode;

use crate::tool::{Annotations, Tool};

/// The operator's rules. An empty policy leaves everything to the defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPolicy {
    /// Calls that are made without asking.
    #[serde(default)]
    pub allow: Vec<PolicyRule>,
    /// A person decides each call.
    #[serde(default)]
    pub ask: Vec<PolicyRule>,
    /// Calls that are never made; these rules come first.
    #[serde(default)]
    pub deny: Vec<PolicyRule>,
}

/// The operator's declarations about tools, which override those of their servers.
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

/// The tools that a run may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolGrants {
    /// If given, no other tools may be used.
    #[serde(default)]
    pub only: Option<Vec<Glob>>,
    /// Tools granted for this run: they are called where a *default* would ask. Rules of the operator
    /// that ask or deny still apply.
    #[serde(default)]
    pub given: Vec<Glob>,
}

/// Whether the operator trusts what a server says about its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Its annotations are believed.
    Trusted,
    /// The user has chosen the server, and has not said how far to trust it: it is believed if it says
    /// that a tool only reads, and does not say that the tool reaches beyond the server.
    Chosen,
    /// Its annotations are only shown.
    Untrusted,
}

/// The verdict of the policy on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyVerdict {
    /// The call is made.
    Allow,
    /// A person decides about this call.
    Ask,
    /// The call is refused.
    Deny,
}

/// A tool that a call could be of.
#[derive(Debug, Clone, Copy)]
pub enum PolicySubject<'a> {
    /// A tool that its server has listed.
    Listed(&'a Tool),
    /// Any tool of a server whose tools were never listed. Only patterns for all tools, or for all of
    /// this server, match it.
    Unlisted {
        /// The server's name in the configuration.
        server: &'a str,
    },
}

/// Stands for the name of a tool that is not known. No listed tool has it: names with control characters
/// are refused.
const UNKNOWN_NAME: &str = "\u{1}";

impl PolicySubject<'_> {
    fn name(&self) -> String {
        match self {
            Self::Listed(tool) => tool.qualified_name(),
            Self::Unlisted { server } => format!("{server}__{UNKNOWN_NAME}"),
        }
    }

    fn server(&self) -> &str {
        match self {
            Self::Listed(tool) => &tool.server,
            Self::Unlisted { server } => server,
        }
    }

    fn annotations(&self) -> Annotations {
        match self {
            Self::Listed(tool) => tool.annotations,
            Self::Unlisted { .. } => Annotations::default(),
        }
    }
}

/// A verdict and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDecision {
    /// The verdict on the call.
    pub verdict: PolicyVerdict,
    /// Why, in words for the operator, the audit row and the guest.
    pub reason: String,
    /// If a person is asked: the longest that a yes may last.
    #[serde(default)]
    pub widest: ConsentScope,
}

impl ToolPolicy {
    /// Decides about a call. In this order: deny rules, the grants of the run, calls that always ask, ask
    /// rules, allow rules, defaults.
    pub fn decide(
        &self,
        tool: &Tool,
        trust: Trust,
        overrides: &Overrides,
        arguments: &Map<String, Value>,
        grants: &ToolGrants,
    ) -> PolicyDecision {
        let name = tool.qualified_name();
        let first = |rules: &[PolicyRule], reading| {
            rules
                .iter()
                .find(|rule| rule.matches(&name, arguments, reading))
                .map(PolicyRule::to_string)
        };
        if let Some(rule) = first(&self.deny, MatchMode::Any) {
            return PolicyDecision::new(
                PolicyVerdict::Deny,
                format!("the operator's policy denies {rule}"),
            );
        }
        if !grants.may_use(&name) {
            let reason = "this run may use only the tools it was given";
            return PolicyDecision::new(PolicyVerdict::Deny, reason);
        }
        // Before the rules that ask: a yes to such a call covers no other, whichever rule asks.
        if own_state::is_named(arguments) {
            return PolicyDecision::new(PolicyVerdict::Ask, own_state::REASON);
        }
        if let Some(rule) = first(&self.ask, MatchMode::Any) {
            let reason = format!("the operator's policy asks for {rule}");
            // The file says to ask: a yes for good would contradict it.
            return PolicyDecision::new(PolicyVerdict::Ask, reason).at_most(ConsentScope::Session);
        }
        if let Some(rule) = first(&self.allow, MatchMode::All) {
            return PolicyDecision::new(
                PolicyVerdict::Allow,
                format!("the operator's policy allows {rule}"),
            );
        }
        by_default(&name, tool.annotations, trust, overrides, grants)
    }

    /// Whether some call of these tools could get [`PolicyVerdict::Ask`]. Conditions on arguments count
    /// as met if some arguments would meet them. Calls that name Belljar's own state always ask and are
    /// not considered here: the answer would be yes for every tool.
    pub fn may_ask<'a>(
        &self,
        subjects: impl IntoIterator<Item = PolicySubject<'a>>,
        trust: impl Fn(&str) -> Trust,
        overrides: &Overrides,
        grants: &ToolGrants,
    ) -> bool {
        subjects.into_iter().any(|subject| {
            let name = subject.name();
            let always = |rules: &[PolicyRule]| rules.iter().any(|rule| rule.always_matches(&name));
            if always(&self.deny) || !grants.may_use(&name) {
                return false;
            }
            if self.ask.iter().any(|rule| rule.may_match(&name)) {
                return true;
            }
            let (hints, trust) = (subject.annotations(), trust(subject.server()));
            let default = by_default(&name, hints, trust, overrides, grants);
            !always(&self.allow) && default.verdict == PolicyVerdict::Ask
        })
    }

    /// Whether some rule asks about tools that a server of this name could have.
    pub fn may_ask_about(&self, server: &str) -> bool {
        let prefix = format!("{server}__");
        self.ask.iter().any(|rule| rule.may_concern(&prefix))
    }
}

impl Overrides {
    /// Whether the operator, or a trusted server, says that the tool changes nothing.
    pub fn is_read_only(&self, tool: &Tool, trust: Trust) -> bool {
        is_believed_read_only(tool.annotations, trust)
            || matches_any(&self.read_only, &tool.qualified_name())
    }

    /// Whether the operator, or a trusted server, says that repeating a call does no harm. A tool that
    /// changes nothing can be repeated.
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

    /// Whether the run may use any tool that this server could have.
    pub fn may_reach(&self, server: &str) -> bool {
        let prefix = format!("{server}__");
        self.only.as_ref().is_none_or(|only| only.iter().any(|glob| glob.may_begin_with(&prefix)))
    }
}

impl PolicyDecision {
    fn new(verdict: PolicyVerdict, reason: impl Into<String>) -> Self {
        Self { verdict, reason: reason.into(), widest: ConsentScope::Once }
    }

    fn at_most(self, widest: ConsentScope) -> Self {
        Self { widest, ..self }
    }
}

/// The decision for a tool that no rule covers.
fn by_default(
    name: &str,
    hints: Annotations,
    trust: Trust,
    overrides: &Overrides,
    grants: &ToolGrants,
) -> PolicyDecision {
    if matches_any(&overrides.read_only, name) {
        return PolicyDecision::new(PolicyVerdict::Allow, "the operator says that it is read-only");
    }
    if is_believed_read_only(hints, trust) {
        let reason = match trust {
            Trust::Chosen => "its server is one of the user's own and says it is read-only",
            Trust::Trusted | Trust::Untrusted => "its server is trusted and says it is read-only",
        };
        return PolicyDecision::new(PolicyVerdict::Allow, reason);
    }
    if trust == Trust::Trusted && hints.destructive == Some(false) {
        let reason = "its server is trusted and says it destroys nothing";
        return PolicyDecision::new(PolicyVerdict::Allow, reason);
    }
    if matches_any(&grants.given, name) {
        return PolicyDecision::new(PolicyVerdict::Allow, "it was granted to this run");
    }
    let reason = match trust {
        Trust::Trusted => "no rule covers it, and it may destroy something",
        Trust::Chosen => "no rule covers it, and its server is not marked trusted",
        Trust::Untrusted => "no rule covers it, and its server is not trusted",
    };
    PolicyDecision::new(PolicyVerdict::Ask, reason).at_most(ConsentScope::Always)
}

/// Whether the hint that a tool changes nothing counts. What a tool reads may be sent on in the
/// arguments of one that reaches beyond its server, so for that one the user's choice is not enough.
fn is_believed_read_only(hints: Annotations, trust: Trust) -> bool {
    hints.read_only == Some(true)
        && match trust {
            Trust::Trusted => true,
            Trust::Chosen => hints.open_world != Some(true),
            Trust::Untrusted => false,
        }
}

fn matches_any(globs: &[Glob], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name))
}

#[cfg(test)]
mod consent_tests;
#[cfg(test)]
mod tests;
