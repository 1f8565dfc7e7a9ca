//! The arguments of `execute_code`, decoded strictly.
//!
//! An unknown field is refused, and the error names the nearest known one: a misspelt limit that
//! was ignored would limit nothing. Names may be in `snake_case` or `camelCase`. No field approves
//! a call, and no such field may be added.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use belljar_contract::{
    Access, EngineName, ExecuteRequest, Grant, GrantsRequest, JsonText, Language, Limit,
    LimitsRequest, SessionId, UnknownEngine, WorkspaceRequest, camel_case, is_spelled_alike,
    whole_number,
};
use belljar_wire::json::{JsonFlaw, check_keys};
use serde_json::{Map, Value};

use crate::exact_json;

/// Why a request was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A field that must be there is not.
    #[error("`{field}` is missing")]
    Missing {
        /// The path of the field, such as `sandbox_config.timeoutMs`.
        field: String,
    },
    /// A field has a value of another kind.
    #[error("`{field}` must be {wanted}, not {found}")]
    Kind {
        /// The path of the field.
        field: String,
        /// The kind of value it takes, in words.
        wanted: &'static str,
        /// The kind of value in the request.
        found: String,
    },
    /// No engine has the name in `engine`.
    #[error("`engine`: {0}")]
    Engine(#[from] UnknownEngine),
    /// Names that no field has.
    #[error("{}", unknown_text(.fields))]
    Unknown {
        /// Each with the nearest right name.
        fields: Vec<(String, Option<&'static str>)>,
    },
    /// The request has one field in two spellings.
    #[error("`{field}` is given twice, in two spellings")]
    Twice {
        /// The path of the field, in its documented spelling.
        field: String,
    },
}

fn unknown_text(fields: &[(String, Option<&'static str>)]) -> String {
    let name = |(field, nearest): &(String, Option<&str>)| match nearest {
        Some(nearest) => format!("unknown field `{field}` (did you mean `{nearest}`?)"),
        None => format!("unknown field `{field}`"),
    };
    fields.iter().map(name).collect::<Vec<_>>().join("; ")
}

/// The arguments of `execute_code`.
pub(crate) const FIELDS: &[&str] = &[
    "code",
    "language",
    "engine",
    "intent",
    "tools",
    "context",
    "network",
    "sandbox_config",
    "session_id",
    "max_output_tokens",
    "durable",
];

/// A setting of `sandbox_config`: a row of the contract's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SandboxSetting {
    Limit(Limit),
    Grant(Grant),
    Workspace,
}

/// The settings of `sandbox_config` by all of their names; those that are spelled alike are one.
static SANDBOX_SETTINGS: LazyLock<Vec<(SandboxSetting, String)>> = LazyLock::new(|| {
    let limits = Limit::ALL.iter().map(|limit| (SandboxSetting::Limit(*limit), limit.names()));
    let grants =
        Grant::OF_CLIENTS.iter().map(|grant| (SandboxSetting::Grant(*grant), grant.names()));
    let mut settings: Vec<(SandboxSetting, String)> = Vec::new();
    let workspace = (SandboxSetting::Workspace, vec!["workspace"]);
    for (setting, names) in limits.chain(grants).chain([workspace]) {
        for name in names {
            if !settings.iter().any(|(_, known)| is_spelled_alike(known, name)) {
                settings.push((setting, camel_case(name)));
            }
        }
    }
    settings
});

/// Decodes the arguments of `execute_code`.
///
/// # Errors
/// The first thing that is wrong, or every unknown field at once.
pub fn decode_execute(arguments: Map<String, Value>) -> Result<ExecuteRequest, RequestError> {
    let mut fields = ArgumentFields::new("", FIELDS, arguments)?;
    let config = fields.object("sandbox_config")?.unwrap_or_default();
    let SandboxConfig { limits, mut grants, workspace } = sandbox_config(config)?;
    if let Some(tools) = fields.texts("tools")?
        && grants.tools.replace(tools).is_some()
    {
        return Err(RequestError::Twice { field: "tools".to_owned() });
    }
    if let Some(hosts) = fields.hosts("network")? {
        if grants.net != Access::None {
            return Err(RequestError::Twice { field: "network".to_owned() });
        }
        grants.net = hosts;
    }
    let tokens = fields.count("max_output_tokens")?;
    Ok(ExecuteRequest {
        code: fields.text("code")?.ok_or(RequestError::Missing { field: "code".to_owned() })?,
        language: fields.language()?,
        engine: fields.engine()?,
        intent: fields.text("intent")?,
        context: fields.context("context"),
        limits,
        grants,
        workspace,
        session_id: fields.text("session_id")?.map(SessionId::from),
        // No answer fits into nothing: 0 is what strict models write for a number that they leave out.
        max_output_tokens: tokens
            .filter(|most| *most > 0)
            .map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
        durable: fields.flag("durable")?,
    })
}

/// The fields of `sandbox_config`.
#[derive(Debug, Default)]
struct SandboxConfig {
    limits: LimitsRequest,
    grants: GrantsRequest,
    workspace: Option<WorkspaceRequest>,
}

/// The limits, grants and workspace that a model may ask for.
fn sandbox_config(config: Map<String, Value>) -> Result<SandboxConfig, RequestError> {
    let settings = &*SANDBOX_SETTINGS;
    let names: Vec<&'static str> = settings.iter().map(|(_, name)| name.as_str()).collect();
    let mut fields = ArgumentFields::new("sandbox_config.", &names, config)?;
    let SandboxConfig { mut limits, mut grants, mut workspace } = SandboxConfig::default();
    let mut seen = Vec::new();
    for (setting, name) in settings {
        let Some(value) = fields.take(name) else { continue };
        if seen.contains(setting) {
            return Err(RequestError::Twice { field: fields.path(name) });
        }
        seen.push(*setting);
        let set = match setting {
            SandboxSetting::Limit(limit) => count(&value)
                .map(|number| limits.set(*limit, number))
                .ok_or("a whole number from 0"),
            SandboxSetting::Grant(grant) => {
                let value = flag(&value).map_or_else(|| value.clone(), Value::Bool);
                grants.set(*grant, &value)
            }
            SandboxSetting::Workspace => {
                requested_workspace(&value).map(|asked| workspace = Some(asked)).ok_or(
                    "the path of a directory, or an object with path, commit, commit_executable",
                )
            }
        };
        set.map_err(|wanted| fields.of_another_kind(name, wanted, &value))?;
    }
    Ok(SandboxConfig { limits, grants, workspace })
}

/// A workspace as its path, or as an object.
fn requested_workspace(value: &Value) -> Option<WorkspaceRequest> {
    if let Some(fields) = object(value) {
        return serde_json::from_value(Value::Object(fields)).ok();
    }
    let path = value.as_str()?.to_owned();
    Some(WorkspaceRequest { path, commit: false, commit_executable: Vec::new() })
}

/// Fields that have a meaning without any text in them.
const MAY_BE_EMPTY: &[&str] = &["code"];

/// Whether a field counts as left out. Strict schemas make every property required and give none of them
/// `null`, so models write an empty text, or `null` as a text, for what they leave out.
fn is_left_out(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => {
            let text = text.trim();
            (text.is_empty() || text == "null") && !MAY_BE_EMPTY.contains(&name)
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Fields not yet taken.
#[derive(Debug)]
pub(crate) struct ArgumentFields {
    prefix: &'static str,
    left: Map<String, Value>,
}

impl ArgumentFields {
    /// Renames each field to its documented spelling and refuses unknown ones.
    pub(crate) fn new(
        prefix: &'static str,
        known: &[&'static str],
        given: Map<String, Value>,
    ) -> Result<Self, RequestError> {
        let mut left = Map::new();
        let mut unknown = Vec::new();
        for (name, value) in given {
            let right = known.iter().find(|right| is_spelled_alike(right, &name));
            match right {
                Some(right) if is_left_out(right, &value) => {}
                Some(right) if left.contains_key(*right) => {
                    return Err(RequestError::Twice { field: format!("{prefix}{right}") });
                }
                Some(right) => drop(left.insert((*right).to_owned(), value)),
                None => unknown.push((format!("{prefix}{name}"), nearest(&name, known))),
            }
        }
        if unknown.is_empty() {
            Ok(Self { prefix, left })
        } else {
            Err(RequestError::Unknown { fields: unknown })
        }
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    /// Any JSON. Models write an object or a list as its text where a schema gives no type or says that it
    /// is a string, so such a text is read; any other text is a text.
    pub(crate) fn context(&mut self, name: &str) -> Option<JsonText> {
        let value = self.take(name)?;
        let text = value.as_str().unwrap_or_default();
        if let Some(exact) = exact_json::marked_text(text) {
            return JsonText::parse(exact.to_owned()).ok();
        }
        let written = Some(text).filter(|text| text.trim_start().starts_with(['{', '[']));
        let written = written.filter(|text| check_keys(text.as_bytes()).is_ok());
        let read = written.and_then(|text| JsonText::parse(text.to_owned()).ok());
        Some(read.unwrap_or_else(|| JsonText::from(&value)))
    }

    fn typed<T>(
        &mut self,
        name: &str,
        wanted: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, RequestError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| self.of_another_kind(name, wanted, &value))
    }

    fn of_another_kind(&self, name: &str, wanted: &'static str, value: &Value) -> RequestError {
        RequestError::Kind { field: self.path(name), wanted, found: found(value) }
    }

    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, RequestError> {
        self.typed(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn count(&mut self, name: &str) -> Result<Option<u64>, RequestError> {
        self.typed(name, "a whole number from 0", count)
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, RequestError> {
        self.typed(name, "true or false", flag)
    }

    fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, RequestError> {
        self.typed(name, "a list of strings", texts)
    }

    /// Hosts: a list, true for all that are allowed, or a text with either or with hosts and commas.
    pub(crate) fn hosts(&mut self, name: &str) -> Result<Option<Access>, RequestError> {
        let read = |value: &Value| match (flag(value), texts(value), value.as_str()) {
            (Some(true), ..) => Some(Access::All),
            (Some(false), ..) => Some(Access::None),
            (None, Some(list), _) => Some(Access::from(list)),
            (None, None, Some(text)) => {
                let hosts = text.split(',').map(str::trim).filter(|host| !host.is_empty());
                Some(Access::from(hosts.map(str::to_owned).collect::<Vec<_>>()))
            }
            (None, None, None) => None,
        };
        self.typed(name, "true or a list of hosts", read)
    }

    pub(crate) fn object(
        &mut self,
        name: &str,
    ) -> Result<Option<Map<String, Value>>, RequestError> {
        self.typed(name, "an object", object)
    }

    pub(crate) fn language(&mut self) -> Result<Option<Language>, RequestError> {
        let read = |value: &Value| Language::from_name(value.as_str()?);
        static NAMES: LazyLock<String> =
            LazyLock::new(|| Language::one_of(|language| language.to_string()));
        self.typed("language", &NAMES, read)
    }

    pub(crate) fn engine(&mut self) -> Result<Option<EngineName>, RequestError> {
        Ok(self.text("engine")?.map(|name| name.parse()).transpose()?)
    }
}

/// A whole number, also as its digits.
fn count(value: &Value) -> Option<u64> {
    let digits = value.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    whole_number(value).or_else(|| digits?.parse().ok())
}

/// True or false, also in words.
fn flag(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| match value.as_str()? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    })
}

/// An object, also as its text.
fn object(value: &Value) -> Option<Map<String, Value>> {
    let read = value.as_str().map(|text| unambiguous(text).ok());
    match read {
        Some(read) => read?.as_object().cloned(),
        None => value.as_object().cloned(),
    }
}

/// Reads JSON in a text as strictly as a message: a key that is there twice is refused.
pub(crate) fn unambiguous(text: &str) -> Result<Value, JsonFlaw> {
    check_keys(text.as_bytes())?;
    Ok(serde_json::from_str(text)?)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    if let Value::String(text) = value {
        return texts(&unambiguous(text).ok().filter(Value::is_array)?);
    }
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.chars().count() <= 24 => format!("{text:?}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// A name without the marks by which spellings differ.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// The known name that takes the fewest changes to reach, if that is few.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = plain(name);
    known
        .iter()
        .map(|right| (distance(&name, &plain(right)), *right))
        .min()
        .filter(|(changes, right)| {
            let near = 1 + right.len() / 4;
            *changes <= near || (name.len() > 2 && plain(right).contains(&name))
        })
        .map(|(_, right)| right)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(64).enumerate() {
        let mut next = vec![i + 1];
        let corners = row.iter().zip(row.iter().skip(1));
        for ((diagonal, above), to) in corners.zip(&b) {
            let left = next.last().copied().unwrap_or_default();
            next.push((diagonal + usize::from(from != *to)).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
