//! A rule as the operator writes it: `"fs__read_*"`, or a table with conditions on arguments.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
    ser::SerializeMap,
};
use serde_json::{Map, Value};

use super::{
    condition::{MatchMode, holds},
    glob::Glob,
};

/// A pattern of calls in one of the lists of the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRule {
    tool: Glob,
    when: BTreeMap<String, Condition>,
    /// If given, the rule applies only to tools of these servers.
    servers: Option<BTreeSet<String>>,
}

/// A condition on an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A text that matches.
    Matches(Glob),
    /// This number or boolean.
    Is(Value),
}

/// Why a rule is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It names no tool.
    #[error("a rule needs a `server__tool` pattern, `*` for all")]
    NoTool,
    /// A condition names no argument.
    #[error("a condition needs the name of an argument")]
    NoArgument,
    /// A condition is not a text, number or boolean.
    #[error("the condition on `{0}` is not a text, number or boolean")]
    NoScalar(String),
    /// A name or a pattern would not look like what it is.
    #[error("{0:?} has characters that a person would not see as they are")]
    Deceptive(String),
}

impl Condition {
    /// The condition that is written as this value.
    pub(super) fn from_value(argument: &str, wanted: Value) -> Result<Self, RuleError> {
        if argument.is_empty() {
            return Err(RuleError::NoArgument);
        }
        match wanted {
            Value::String(pattern) => Ok(Self::Matches(Glob::new(pattern))),
            Value::Bool(_) | Value::Number(_) => Ok(Self::Is(wanted)),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(RuleError::NoScalar(argument.to_owned()))
            }
        }
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Matches(glob) => Value::from(glob.as_str()),
            Self::Is(value) => value.clone(),
        }
    }
}

impl PolicyRule {
    /// A rule for all calls of the tools whose qualified name matches.
    pub fn new(tool: impl Into<Glob>) -> Result<Self, RuleError> {
        let tool = tool.into();
        if tool.as_str().trim().is_empty() {
            return Err(RuleError::NoTool);
        }
        Ok(Self { tool, when: BTreeMap::new(), servers: None })
    }

    /// The same rule, only for calls whose argument (`a.b` is `b` within `a`) is as said.
    pub fn when(mut self, argument: &str, wanted: Value) -> Result<Self, RuleError> {
        let condition = Condition::from_value(argument, wanted)?;
        self.when.insert(argument.to_owned(), condition);
        Ok(self)
    }

    /// The same rule, only for the tools of these servers.
    #[must_use]
    pub fn only_of(mut self, servers: BTreeSet<String>) -> Self {
        self.servers = Some(servers);
        self
    }

    /// Whether the rule could be about a tool of this server.
    pub fn may_concern_server(&self, server: &str) -> bool {
        self.counts_for(server) && self.may_concern(&format!("{server}__"))
    }

    fn counts_for(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(server))
    }

    /// Whether the rule applies to the tool of this name. Names of servers have no `__` in them.
    fn is_for(&self, name: &str) -> bool {
        let server = name.split_once("__").map_or(name, |(server, _)| server);
        self.tool.matches(name) && self.counts_for(server)
    }

    /// Whether the rule covers this call.
    pub(super) fn matches(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        reading: MatchMode,
    ) -> bool {
        let mut conditions = self.when.iter();
        self.is_for(name)
            && conditions.all(|(path, wanted)| holds(wanted, arguments, path, reading))
    }

    /// Whether the rule could cover a call of this tool.
    pub(super) fn may_match(&self, name: &str) -> bool {
        self.is_for(name)
    }

    /// Whether the rule could be about a name that begins like this.
    pub(super) fn may_concern(&self, prefix: &str) -> bool {
        let pattern = self.tool.as_str();
        let fixed = pattern.split(['*', '?']).next().unwrap_or_default();
        fixed.starts_with(prefix) || prefix.starts_with(fixed) && fixed.len() < pattern.len()
    }

    /// Whether the rule covers every call of this tool.
    pub(super) fn always_matches(&self, name: &str) -> bool {
        self.when.is_empty() && self.is_for(name)
    }
}

impl fmt::Display for PolicyRule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "`{}`", self.tool)?;
        for (at, (argument, condition)) in self.when.iter().enumerate() {
            let joined = if at == 0 { " when" } else { " and" };
            match condition {
                Condition::Matches(glob) => write!(to, "{joined} {argument} is `{glob}`")?,
                Condition::Is(value) => write!(to, "{joined} {argument} is {value}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for PolicyRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.when.is_empty() && self.servers.is_none() {
            return self.tool.serialize(to);
        }
        let when: BTreeMap<&str, Value> = self
            .when
            .iter()
            .map(|(argument, condition)| (argument.as_str(), condition.to_value()))
            .collect();
        let mut table = to.serialize_map(None)?;
        table.serialize_entry("tool", &self.tool)?;
        table.serialize_entry("when", &when)?;
        if let Some(servers) = &self.servers {
            table.serialize_entry("servers", servers)?;
        }
        table.end()
    }
}

impl<'de> Deserialize<'de> for PolicyRule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RuleVisitor)
    }
}

/// A rule that is written as a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    tool: Glob,
    #[serde(default)]
    when: Map<String, Value>,
}

struct RuleVisitor;

impl<'de> Visitor<'de> for RuleVisitor {
    type Value = PolicyRule;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a pattern such as \"fs__read_*\" or a table { tool, when }")
    }

    fn visit_str<E: de::Error>(self, pattern: &str) -> Result<PolicyRule, E> {
        PolicyRule::new(pattern).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PolicyRule, A::Error> {
        let table = RuleTable::deserialize(MapAccessDeserializer::new(map))?;
        let rule = PolicyRule::new(table.tool).map_err(de::Error::custom)?;
        flattened(table.when)
            .into_iter()
            .try_fold(rule, |rule, (argument, wanted)| rule.when(&argument, wanted))
            .map_err(de::Error::custom)
    }
}

/// TOML reads a bare `a.b = 1` as a table within a table: both ways of writing mean one thing.
pub(super) fn flattened(when: Map<String, Value>) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (argument, wanted) in when {
        match wanted {
            Value::Object(inner) if !inner.is_empty() => {
                let inner = flattened(inner).into_iter();
                flat.extend(inner.map(|(rest, wanted)| (format!("{argument}.{rest}"), wanted)));
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => flat.push((argument, wanted)),
        }
    }
    flat
}
