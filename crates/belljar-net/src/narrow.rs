//! Rules of several sources as one: flags of the operator add to the operator's file, and a project's
//! file takes away from both.
//!
//! Invariant: [`NetRules::narrowed_by`] allows nothing, with or without a question, that the rules did not
//! allow before, and asks about what they asked about before.

use crate::{
    pattern::HostPattern,
    rules::{NetRule, NetRules},
};

/// The rules of a project's file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectNetRules {
    /// If stated, the only hosts and requests that count beside those of `ask`.
    pub allow: Option<Vec<NetRule>>,
    /// Rules about which a person is asked in addition.
    pub ask: Vec<NetRule>,
    /// Rules that refuse in addition.
    pub deny: Vec<NetRule>,
}

impl NetRules {
    /// These rules, and hosts that the operator has named beside them. Rules that allow such a host say
    /// more about it, so they count alone.
    #[must_use]
    pub fn with_hosts(mut self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        for host in hosts {
            let is_named = |rule: &NetRule| rule.pattern.contains(&host);
            if !self.allow.iter().any(is_named) {
                self.allow.push(NetRule::of_host(host));
            }
        }
        self
    }

    /// The rules that allow only what both these and a project's rules allow.
    #[must_use]
    pub fn narrowed_by(self, project: &ProjectNetRules) -> Self {
        let Self { allow, ask, mut deny } = self;
        let mut asked = of_both(&allow, &project.ask);
        let (allow, earlier) = match &project.allow {
            None => (allow, ask),
            Some(only) => {
                let mut earlier = of_both(&ask, only);
                earlier.extend(of_both(&ask, &project.ask));
                (of_both(&allow, only), earlier)
            }
        };
        asked.extend(earlier);
        deny.extend(project.deny.iter().cloned());
        Self { allow, ask: asked, deny }
    }

    /// Whether every host and port of a pattern may be reached, perhaps only with some methods and paths or
    /// after a question.
    pub fn may_reach(&self, pattern: &HostPattern) -> bool {
        self.patterns().any(|own| own.contains(pattern))
    }
}

/// The rules about what a rule of each list is about. Headers and addresses are those of the first list.
fn of_both(rules: &[NetRule], narrower: &[NetRule]) -> Vec<NetRule> {
    let pairs = rules.iter().flat_map(|rule| narrower.iter().map(move |other| (rule, other)));
    pairs.filter_map(|(rule, other)| both(rule, other)).collect()
}

fn both(rule: &NetRule, narrower: &NetRule) -> Option<NetRule> {
    Some(NetRule {
        pattern: rule.pattern.both(&narrower.pattern)?,
        private: rule.private,
        methods: in_both(&rule.methods, &narrower.methods, |own, other| {
            (own == other).then(|| own.clone())
        })?,
        paths: in_both(&rule.paths, &narrower.paths, |own, other| own.both(other))?,
        headers: rule.headers.clone(),
        each: rule.each || narrower.each,
    })
}

/// The intersection of two lists, where an empty list stands for everything; `None` if it is empty.
fn in_both<T: Clone>(own: &[T], other: &[T], both: impl Fn(&T, &T) -> Option<T>) -> Option<Vec<T>> {
    if own.is_empty() || other.is_empty() {
        return Some([own, other].concat());
    }
    let pairs = own.iter().flat_map(|own| other.iter().map(move |other| (own, other)));
    let found: Vec<T> = pairs.filter_map(|(own, other)| both(own, other)).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests;
