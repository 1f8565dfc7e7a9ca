//! One `belljar.toml` as it is written, before anything is decided.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use belljar_tools::{Policy, RawServer, Rule};
use serde::{Deserialize, Deserializer, de::Visitor};
use toml::Spanned;

use super::{
    super::{
        limit_key::LimitKey,
        quantity::{self, QuantityError},
    },
    ConfigError,
};

/// A file, and where it came from.
#[derive(Debug)]
pub(super) struct RawConfig {
    path: PathBuf,
    text: String,
    file: RawFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawFile {
    limits: RawLimits,
    mcp_servers: BTreeMap<String, RawServer>,
    permissions: RawPermissions,
    results: RawResults,
    cache: RawCache,
    workflows: RawWorkflows,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawPermissions {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    approval_timeout: Option<Spanned<Quantity>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawResults {
    max_output_tokens: Option<Spanned<Quantity>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawCache {
    ttl: Option<Spanned<Quantity>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawWorkflows {
    serve: Option<bool>,
    enable_code_execution: Option<bool>,
    max_running: Option<Spanned<Quantity>>,
    max_queued: Option<Spanned<Quantity>>,
    keep_days: Option<Spanned<Quantity>>,
}

macro_rules! raw_limits {
    (fields $name:ident { $($extra:ident: $type:ty)? } $($field:ident => $key:ident,)*) => {
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct $name {
            $($field: Option<Spanned<Quantity>>,)*
            $($extra: $type,)?
        }

        impl $name {
            fn entries(&self) -> Vec<(LimitKey, &Spanned<Quantity>)> {
                [$((LimitKey::$key, self.$field.as_ref()),)*]
                    .into_iter()
                    .filter_map(|(key, value)| Some((key, value?)))
                    .collect()
            }
        }
    };
    ($name:ident { $($extra:tt)* }) => {
        raw_limits! {
            fields $name { $($extra)* }
            timeout => Timeout,
            cpu => Cpu,
            memory => Memory,
            code_bytes => CodeBytes,
            context_bytes => ContextBytes,
            output_bytes => OutputBytes,
            result_bytes => ResultBytes,
            processes => Processes,
            open_files => OpenFiles,
            disk => Disk,
            inodes => Inodes,
            tool_calls => ToolCalls,
            tool_timeout => ToolTimeout,
        }
    };
}

raw_limits!(RawLimits { maximum: RawMaximum });
raw_limits!(RawMaximum {});

/// A value with or without a unit, as text.
#[derive(Debug)]
struct Quantity(String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, or a text with a unit such as \"30s\" or \"512MiB\"")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Quantity, E> {
        Ok(Quantity(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Quantity, E> {
        Ok(Quantity(value.to_owned()))
    }
}

/// One limit a file states.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stated {
    pub(super) key: LimitKey,
    pub(super) value: u64,
    pub(super) line: usize,
}

impl RawConfig {
    /// Takes a file's text apart; an unknown key is an error that shows its line.
    pub(super) fn parse(path: &Path, text: String) -> Result<Self, toml::de::Error> {
        let file = toml::from_str(&text)?;
        Ok(Self { path: path.to_owned(), text, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What `[limits]` states.
    pub(super) fn defaults(&self) -> Result<Vec<Stated>, ConfigError> {
        self.stated("limits", self.file.limits.entries())
    }

    /// What `[limits.maximum]` states.
    pub(super) fn maxima(&self) -> Result<Vec<Stated>, ConfigError> {
        self.stated("limits.maximum", self.file.limits.maximum.entries())
    }

    /// What `[mcp_servers]` names.
    pub(super) fn servers(&self) -> &BTreeMap<String, RawServer> {
        &self.file.mcp_servers
    }

    /// The rules of `[permissions]`.
    pub(super) fn policy(&self) -> Policy {
        let RawPermissions { allow, ask, deny, .. } = &self.file.permissions;
        Policy { allow: allow.clone(), ask: ask.clone(), deny: deny.clone() }
    }

    /// How long a person has to decide.
    pub(super) fn approval_timeout(&self) -> Result<Option<Duration>, ConfigError> {
        let value = self.file.permissions.approval_timeout.as_ref();
        self.one("permissions", "approval_timeout", value, quantity::duration)
    }

    /// How much of a value a result has in it.
    pub(super) fn max_output_tokens(&self) -> Result<Option<u32>, ConfigError> {
        let value = self.file.results.max_output_tokens.as_ref();
        self.one("results", "max_output_tokens", value, quantity::count)
    }

    /// For how long an answer may be given again.
    pub(super) fn cache_ttl(&self) -> Result<Option<Duration>, ConfigError> {
        self.one("cache", "ttl", self.file.cache.ttl.as_ref(), quantity::duration)
    }

    /// Whether clients of `serve` have workflows.
    pub(super) fn serves_workflows(&self) -> Option<bool> {
        self.file.workflows.serve
    }

    /// Whether workflows in YAML may have code.
    pub(super) fn enables_code_execution(&self) -> Option<bool> {
        self.file.workflows.enable_code_execution
    }

    /// How many workflows are driven at once.
    pub(super) fn max_running(&self) -> Result<Option<u32>, ConfigError> {
        let value = self.file.workflows.max_running.as_ref();
        self.one("workflows", "max_running", value, quantity::count)
    }

    /// How many workflows may wait for their turn.
    pub(super) fn max_queued(&self) -> Result<Option<u32>, ConfigError> {
        let value = self.file.workflows.max_queued.as_ref();
        self.one("workflows", "max_queued", value, quantity::count)
    }

    /// For how many days workflows that have ended are kept.
    pub(super) fn keep_days(&self) -> Result<Option<u32>, ConfigError> {
        let value = self.file.workflows.keep_days.as_ref();
        self.one("workflows", "keep_days", value, quantity::count)
    }

    /// The same of a project's file, where it has no place: whoever wrote the project has no say in
    /// what is known of what it did.
    pub(super) fn refuse_keep_days(&self) -> Result<(), ConfigError> {
        let Some(value) = &self.file.workflows.keep_days else { return Ok(()) };
        Err(ConfigError::Value {
            file: self.path.clone(),
            line: self.line_of(value.span().start),
            section: "workflows",
            key: "keep_days",
            reason: "only the user's own belljar.toml may say this, not a project's".to_owned(),
        })
    }

    fn one<T>(
        &self,
        section: &'static str,
        key: &'static str,
        value: Option<&Spanned<Quantity>>,
        read: impl Fn(&str) -> Result<T, QuantityError>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(quantity) = value else { return Ok(None) };
        let told = |error: QuantityError| ConfigError::Value {
            file: self.path.clone(),
            line: self.line_of(quantity.span().start),
            section,
            key,
            reason: error.to_string(),
        };
        read(&quantity.get_ref().0).map(Some).map_err(told)
    }

    fn stated(
        &self,
        section: &'static str,
        entries: Vec<(LimitKey, &Spanned<Quantity>)>,
    ) -> Result<Vec<Stated>, ConfigError> {
        let read = |(key, quantity): (LimitKey, &Spanned<Quantity>)| {
            let line = self.line_of(quantity.span().start);
            match key.parse(&quantity.get_ref().0) {
                Ok(value) => Ok(Stated { key, value, line }),
                Err(error) => Err(ConfigError::Value {
                    file: self.path.clone(),
                    line,
                    section,
                    key: key.name(),
                    reason: error.to_string(),
                }),
            }
        };
        entries.into_iter().map(read).collect()
    }

    fn line_of(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }
}
