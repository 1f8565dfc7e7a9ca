//! One rule of `[net]`: a pattern of hosts, or a table with conditions on requests.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use belljar_net::{HeaderRule, HostPattern, NetRule, Secret};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::super::ConfigError;

/// Headers that say where a request goes, how long it is and how the connection is used: they belong to
/// the proxy.
const NOT_SETTABLE: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A rule as a file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct RuleTable {
    host: String,
    methods: Option<Vec<String>>,
    paths: Option<Vec<String>>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    each: bool,
}

/// The same, written as a table or as the text of its pattern.
#[derive(Debug)]
pub(in super::super) struct RawNetRule(RuleTable);

/// The file, the line and the key of a rule.
pub(super) type Place = (PathBuf, usize, &'static str);

/// A rule of a file whose headers have no values yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatedRule {
    rule: NetRule,
    headers: Vec<HeaderTemplate>,
    place: Place,
}

/// A header with `${NAME}` in its value.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct HeaderTemplate {
    name: String,
    value: String,
}

/// A value may be the secret itself.
impl fmt::Debug for HeaderTemplate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "HeaderTemplate({})", self.name)
    }
}

impl StatedRule {
    pub(super) fn read(raw: &RawNetRule, place: Place) -> Result<Self, ConfigError> {
        let RuleTable { host, methods, paths, headers, private, each } = &raw.0;
        let fault = |reason: String| invalid(&place, reason);
        let pattern: HostPattern = host.parse().map_err(|error| fault(format!("{error}")))?;
        let only = |key: &str, list: &Option<Vec<String>>| match list {
            Some(list) if list.is_empty() => {
                Err(fault(format!("`{pattern}`: `{key}` is empty; omit it to mean all")))
            }
            list => Ok(list.clone().unwrap_or_default()),
        };
        let methods = only("methods", methods)?;
        let paths = only("paths", paths)?.into_iter().map(|path| path.parse());
        let paths = paths.collect::<Result<Vec<_>, _>>();
        let names = headers.keys().map(|name| (name.to_ascii_lowercase(), name));
        for (name, written) in names {
            if !is_header_name(&name) || NOT_SETTABLE.contains(&&*name) {
                return Err(fault(format!("`{pattern}`: the header {written:?} cannot be set")));
            }
        }
        let is_deny = place.2 == "deny";
        if is_deny && (*private || *each || !headers.is_empty()) {
            let reason = "a rule that denies has only `host`, `methods` and `paths`";
            return Err(fault(format!("`{pattern}`: {reason}")));
        }
        if *each && place.2 != "ask" {
            return Err(fault(format!("`{pattern}`: `each` belongs to rules under `ask`")));
        }
        let templates = headers.iter().map(|(name, value)| HeaderTemplate {
            name: name.to_ascii_lowercase(),
            value: value.clone(),
        });
        let templates: Vec<_> = templates.collect();
        let empty = |header: &HeaderTemplate| HeaderRule {
            name: header.name.clone(),
            value: Secret::new(String::new()),
        };
        let rule = NetRule {
            pattern: pattern.clone(),
            private: *private,
            methods: methods.iter().map(|method| method.to_ascii_uppercase()).collect(),
            paths: paths.map_err(|error| fault(format!("`{pattern}`: {error}")))?,
            headers: templates.iter().map(empty).collect(),
            each: *each,
        };
        let rule = rule.checked().map_err(|error| fault(error.to_string()))?;
        Ok(Self { rule, headers: templates, place })
    }

    /// The rule, if a project's file may state it.
    pub(super) fn of_project(self) -> Result<NetRule, ConfigError> {
        let what = match (self.headers.is_empty(), self.rule.private) {
            (false, _) => "`headers`",
            (true, true) => "`private`",
            (true, false) => return Ok(self.rule),
        };
        let reason = format!(
            "`{}`: {what}: allowed only in the user's own belljar.toml, not in a project's",
            self.rule.pattern
        );
        Err(invalid(&self.place, reason))
    }

    /// The rule with the values of its headers.
    pub(super) fn filled(
        &self,
        variables: &BTreeMap<String, String>,
    ) -> Result<NetRule, ConfigError> {
        let fill = |header: &HeaderTemplate| {
            let fault = |what: String| {
                let (pattern, name) = (&self.rule.pattern, &header.name);
                invalid(&self.place, format!("`{pattern}`: the header {name}: {what}"))
            };
            let value = expanded(&header.value, variables).map_err(fault)?;
            if value.is_empty() || value.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
                let what = "its value is empty, or has characters that a header cannot have";
                return Err(fault(what.to_owned()));
            }
            Ok(HeaderRule { name: header.name.clone(), value: Secret::new(value) })
        };
        let headers = self.headers.iter().map(fill).collect::<Result<_, _>>()?;
        Ok(NetRule { headers, ..self.rule.clone() })
    }
}

/// The text with the values of its `${NAME}`. The error names a variable, never a value.
fn expanded(text: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            return Err("`${` is not closed".to_owned());
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_plain) {
            return Err("`${…}` must hold the name of a variable".to_owned());
        }
        let value = variables.get(name).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("the environment variable {name} is not set"))?;
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Whether a text is the name of a header (RFC 9110, a token).
fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

fn invalid((file, line, key): &Place, reason: String) -> ConfigError {
    ConfigError::Value { file: file.clone(), line: *line, section: "net", key, reason }
}

impl<'de> Deserialize<'de> for RawNetRule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RuleVisitor)
    }
}

struct RuleVisitor;

impl<'de> Visitor<'de> for RuleVisitor {
    type Value = RawNetRule;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a pattern such as \"*.example.org\", or a table { host, methods, paths, … }")
    }

    fn visit_str<E: de::Error>(self, host: &str) -> Result<RawNetRule, E> {
        Ok(RawNetRule(RuleTable { host: host.to_owned(), ..RuleTable::default() }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawNetRule, A::Error> {
        RuleTable::deserialize(MapAccessDeserializer::new(map)).map(RawNetRule)
    }
}
