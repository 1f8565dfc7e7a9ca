//! What a client may ask to be run, and the arguments of `execute_code`, decoded strictly.
//!
//! Whatever is not understood is refused with the name of the field and the nearest right one: a
//! limit that was misspelt and ignored would be a limit that is not there. Names are taken in
//! `snake_case` and `camelCase` alike. No field approves anything, and none can be added that does.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Number, Value};

/// A request to run code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExecuteRequest {
    /// The code.
    pub code: String,
    /// What it is written in; the backend's default if absent.
    pub language: Option<Language>,
    /// What it is for, in words.
    pub intent: Option<String>,
    /// The only tools it may call (`server__tool`, globs); absent means what policy allows.
    pub tools: Option<Vec<String>>,
    /// What the code finds as `context`.
    pub context: Option<Value>,
    /// Limits asked for.
    pub limits: Limits,
    /// Grants asked for.
    pub grants: Grants,
    /// The directory to work on.
    pub workspace: Option<Workspace>,
    /// The session to run in.
    pub session_id: Option<String>,
    /// The most the answer may cost.
    pub max_output_tokens: Option<u64>,
    /// Whether the run survives a restart of the host; the backend's default if absent.
    pub durable: Option<bool>,
}

/// What code is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// TypeScript.
    TypeScript,
    /// JavaScript.
    JavaScript,
    /// Python.
    Python,
    /// Shell.
    Bash,
}

impl Language {
    /// The name the rest of Belljar uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::Bash => "bash",
        }
    }
}

/// Limits a request asks for; the operator's defaults for those it does not. What goes beyond the
/// operator's maxima is the backend's to refuse.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Wall time. CPU time follows it unless `cpu_ms` says otherwise.
    #[serde(deserialize_with = "whole_number")]
    pub timeout_ms: Option<u64>,
    /// CPU time.
    #[serde(deserialize_with = "whole_number")]
    pub cpu_ms: Option<u64>,
    /// Memory, in MiB.
    #[serde(deserialize_with = "whole_number")]
    pub memory_mb: Option<u64>,
    /// Size of the code.
    #[serde(deserialize_with = "whole_number")]
    pub code_bytes: Option<u64>,
    /// Size of the context, as JSON.
    #[serde(deserialize_with = "whole_number")]
    pub context_bytes: Option<u64>,
    /// Captured output kept of each stream.
    #[serde(deserialize_with = "whole_number")]
    pub output_bytes: Option<u64>,
    /// Size of the value, as JSON.
    #[serde(deserialize_with = "whole_number")]
    pub result_bytes: Option<u64>,
    /// Processes and threads.
    #[serde(deserialize_with = "whole_number")]
    pub processes: Option<u32>,
    /// Open files.
    #[serde(deserialize_with = "whole_number")]
    pub open_files: Option<u32>,
    /// `/work` and `/tmp` together, in MiB.
    #[serde(deserialize_with = "whole_number")]
    pub disk_mb: Option<u64>,
    /// Files in `/work` and `/tmp` together.
    #[serde(deserialize_with = "whole_number")]
    pub inodes: Option<u64>,
    /// Tool calls.
    #[serde(deserialize_with = "whole_number")]
    pub tool_calls: Option<u32>,
    /// Wall time of one tool call.
    #[serde(deserialize_with = "whole_number")]
    pub tool_timeout_ms: Option<u64>,
}

/// Grants a request asks for. What goes beyond policy is the backend's to refuse.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Paths to read.
    pub read: Access,
    /// Paths to write.
    pub write: Access,
    /// Hosts to reach.
    pub net: Access,
    /// Environment variables, with values.
    pub env: BTreeMap<String, String>,
    /// Python modules and builtins that restricted mode would refuse.
    pub modules: Vec<String>,
    /// Commands beyond the default set.
    pub commands: Vec<String>,
}

/// A directory that a run works on a copy-on-write view of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workspace {
    /// The directory, on the host.
    pub path: String,
    /// Whether what the run changed goes to the directory if it succeeds.
    #[serde(default)]
    pub commit: bool,
    /// Names that are committed although the host would execute them, e.g. `.git`; only those that
    /// the operator allows.
    #[serde(default)]
    pub commit_executable: Vec<String>,
}

/// How much of something is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    #[default]
    None,
    /// Whatever policy allows.
    All,
    /// These only.
    Only(Vec<String>),
}

/// Why a request was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A field that must be there is not.
    #[error("`{field}` is missing")]
    Missing {
        /// Where.
        field: String,
    },
    /// A field has a value of another kind.
    #[error("`{field}` must be {wanted}, not {found}")]
    Kind {
        /// Where.
        field: String,
        /// What it takes.
        wanted: &'static str,
        /// What came.
        found: String,
    },
    /// Fields nobody knows.
    #[error("{}", unknown_text(.fields))]
    Unknown {
        /// Each with the nearest right name.
        fields: Vec<(String, Option<&'static str>)>,
    },
    /// One thing under two spellings.
    #[error("`{field}` is given twice, in two spellings")]
    Twice {
        /// Where.
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

const FIELDS: &[&str] = &[
    "code",
    "language",
    "intent",
    "tools",
    "context",
    "sandbox_config",
    "session_id",
    "max_output_tokens",
    "durable",
];
const SANDBOX_FIELDS: &[&str] =
    &["timeoutMs", "heapLimitMB", "allowedReadPaths", "allowNetwork", "allowWrite"];

impl ExecuteRequest {
    /// Decodes the arguments of a tool call.
    ///
    /// # Errors
    /// The first thing that is wrong, or every unknown field at once.
    pub fn decode(arguments: Map<String, Value>) -> Result<Self, RequestError> {
        let mut fields = Fields::new("", FIELDS, arguments)?;
        let config = fields.object("sandbox_config")?.unwrap_or_default();
        let (limits, grants) = sandbox_config(config)?;
        let request = Self {
            code: fields.text("code")?.ok_or(RequestError::Missing { field: "code".to_owned() })?,
            language: fields.language()?,
            intent: fields.text("intent")?,
            tools: fields.texts("tools")?,
            context: fields.take("context"),
            limits,
            grants,
            workspace: None,
            session_id: fields.text("session_id")?,
            max_output_tokens: fields.count("max_output_tokens")?,
            durable: fields.flag("durable")?,
        };
        Ok(request)
    }
}

/// The limits and grants that a model may ask for.
fn sandbox_config(config: Map<String, Value>) -> Result<(Limits, Grants), RequestError> {
    let mut fields = Fields::new("sandbox_config.", SANDBOX_FIELDS, config)?;
    let limits = Limits {
        timeout_ms: fields.count("timeoutMs")?,
        memory_mb: fields.count("heapLimitMB")?,
        ..Limits::default()
    };
    let grants = Grants {
        read: fields.access("allowedReadPaths")?,
        net: fields.access("allowNetwork")?,
        write: fields.access("allowWrite")?,
        ..Grants::default()
    };
    Ok((limits, grants))
}

/// Fields not yet taken. `null` counts as absent, as clients send it for what was left out.
#[derive(Debug)]
pub(crate) struct Fields {
    prefix: &'static str,
    left: Map<String, Value>,
}

impl Fields {
    /// Brings each field to its one name; refuses what has none.
    pub(crate) fn new(
        prefix: &'static str,
        known: &[&'static str],
        given: Map<String, Value>,
    ) -> Result<Self, RequestError> {
        let mut left = Map::new();
        let mut unknown = Vec::new();
        for (name, value) in given {
            let right = known.iter().find(|right| **right == name || plain(right) == plain(&name));
            match right {
                Some(_) if value.is_null() => {}
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

    fn typed<T>(
        &mut self,
        name: &str,
        wanted: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, RequestError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| RequestError::Kind {
            field: format!("{}{name}", self.prefix),
            wanted,
            found: found(&value),
        })
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, RequestError> {
        self.typed(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn count(&mut self, name: &str) -> Result<Option<u64>, RequestError> {
        self.typed(name, "a whole number from 0", whole)
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, RequestError> {
        self.typed(name, "true or false", Value::as_bool)
    }

    fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, RequestError> {
        self.typed(name, "a list of strings", texts)
    }

    pub(crate) fn object(
        &mut self,
        name: &str,
    ) -> Result<Option<Map<String, Value>>, RequestError> {
        self.typed(name, "an object", |value| value.as_object().cloned())
    }

    fn access(&mut self, name: &str) -> Result<Access, RequestError> {
        let read = |value: &Value| match value.as_bool() {
            Some(true) => Some(Access::All),
            Some(false) => Some(Access::None),
            None => texts(value).map(Access::Only),
        };
        Ok(self.typed(name, "true, false or a list of strings", read)?.unwrap_or_default())
    }

    pub(crate) fn language(&mut self) -> Result<Option<Language>, RequestError> {
        let read = |value: &Value| match value.as_str()?.to_ascii_lowercase().as_str() {
            "typescript" | "ts" => Some(Language::TypeScript),
            "javascript" | "js" => Some(Language::JavaScript),
            "python" | "py" => Some(Language::Python),
            "bash" | "sh" => Some(Language::Bash),
            _ => None,
        };
        self.typed("language", "typescript, javascript, python or bash", read)
    }
}

/// Integers above this are not the same everywhere that JSON is read.
pub(crate) const MAX_INTEGER: u64 = (1 << 53) - 1;

/// A field that is a whole number, absent or null.
pub(crate) fn whole_number<'de, D, T>(json: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let Some(given) = Option::<Number>::deserialize(json)? else { return Ok(None) };
    let number = whole(&Value::Number(given.clone())).filter(|number| *number <= MAX_INTEGER);
    let fits = number.and_then(|number| T::try_from(number).ok());
    let wrong = || D::Error::custom(format!("{given} is no whole number from 0, or too large"));
    fits.map(Some).ok_or_else(wrong)
}

/// Models write `5` as `5.0` now and then.
fn whole(value: &Value) -> Option<u64> {
    let float = |number: f64| {
        let fits = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        fits.then_some(number as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(float))
}

fn texts(value: &Value) -> Option<Vec<String>> {
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

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
