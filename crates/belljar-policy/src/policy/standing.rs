//! A rule that a person approved together with a call: later calls that it covers are not asked about.
//!
//! It covers exactly what the person read: one tool by its exact name, and conditions on its arguments.
//! It is bound to the definition of the tool and to the configuration of its server, and covers nothing
//! once either differs.

use std::{collections::BTreeMap, fmt};

use belljar_wire::text::is_invisible;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    condition::{MatchMode, holds},
    rule::{Condition, RuleError, flattened},
};

/// The longest text of a condition that a person is expected to read.
const LONGEST_PATTERN: usize = 500;

/// A rule that a person approved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "RawStandingRule", try_from = "RawStandingRule")]
pub struct StandingRule {
    /// The id by which it is removed, `rule_…`.
    pub id: String,
    /// When it was approved, in milliseconds since 1970.
    pub created_ms: i64,
    /// Where it was approved.
    pub by: String,
    tool: String,
    when: BTreeMap<String, Condition>,
    definition: String,
}

/// The rule as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStandingRule {
    id: String,
    tool: String,
    #[serde(default)]
    when: Map<String, Value>,
    definition: String,
    created_ms: i64,
    by: String,
}

/// The answer of a rule about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// The call needs no other yes.
    Covered,
    /// It would, but the tool or its server has changed since a person approved the rule.
    Void,
    /// It is about other calls.
    Other,
}

impl StandingRule {
    /// A rule about calls of one tool, as it is defined now.
    ///
    /// # Errors
    /// If a condition is not valid, or would not look like what it is.
    pub fn new(
        id: String,
        tool: &str,
        when: Map<String, Value>,
        definition: &str,
        (by, created_ms): (&str, i64),
    ) -> Result<Self, RuleError> {
        let (tool, by, definition) = (tool.to_owned(), by.to_owned(), definition.to_owned());
        Self::try_from(RawStandingRule { id, tool, when, definition, created_ms, by })
    }

    /// The tool, as `server__tool`.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The conditions on arguments.
    pub fn when(&self) -> Map<String, Value> {
        let values = self.when.iter().map(|(name, wanted)| (name.clone(), wanted.to_value()));
        values.collect()
    }

    /// The coverage of a call of a tool with this definition. Every reading of the arguments has to
    /// meet every condition.
    pub fn coverage(
        &self,
        tool: &str,
        definition: &str,
        arguments: &Map<String, Value>,
    ) -> Coverage {
        let mut conditions = self.when.iter();
        let fits =
            |(path, wanted): (&String, &Condition)| holds(wanted, arguments, path, MatchMode::All);
        if self.tool != tool || !conditions.all(fits) {
            Coverage::Other
        } else if self.definition.is_empty() || self.definition != definition {
            Coverage::Void
        } else {
            Coverage::Covered
        }
    }
}

/// The rule in words. Patterns are written as JSON, so that their ends can be seen.
impl fmt::Display for StandingRule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.tool)?;
        for (at, (argument, condition)) in self.when.iter().enumerate() {
            let joined = if at == 0 { " when" } else { " and" };
            write!(to, "{joined} {argument} is {}", condition.to_value())?;
        }
        if self.when.is_empty() { to.write_str(" with any arguments") } else { Ok(()) }
    }
}

impl TryFrom<RawStandingRule> for StandingRule {
    type Error = RuleError;

    fn try_from(raw: RawStandingRule) -> Result<Self, RuleError> {
        let RawStandingRule { id, tool, when, definition, created_ms, by } = raw;
        if tool.is_empty() {
            return Err(RuleError::NoTool);
        }
        readable(&tool)?;
        let mut conditions = BTreeMap::new();
        for (argument, wanted) in flattened(when) {
            readable(&argument)?;
            if let Value::String(pattern) = &wanted {
                readable(pattern)?;
            }
            let condition = Condition::from_value(&argument, wanted)?;
            conditions.insert(argument, condition);
        }
        Ok(Self { id, created_ms, by, tool, when: conditions, definition })
    }
}

impl From<StandingRule> for RawStandingRule {
    fn from(rule: StandingRule) -> Self {
        let when = rule.when();
        let StandingRule { id, created_ms, by, tool, definition, .. } = rule;
        Self { id, tool, when, definition, created_ms, by }
    }
}

/// Refuses a text that a person could not read for what it is.
fn readable(text: &str) -> Result<(), RuleError> {
    let is_hidden = |c: char| c.is_control() || is_invisible(c);
    match text.chars().any(is_hidden) || text.chars().nth(LONGEST_PATTERN).is_some() {
        true => Err(RuleError::Deceptive(text.chars().take(LONGEST_PATTERN).collect())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
