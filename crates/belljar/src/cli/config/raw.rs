//! One `belljar.toml` as it is written, before anything is decided.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use belljar::CommitExecutable;
use belljar_store::RecordKind;
use belljar_tools::{PolicyRule, RawServer, ToolPolicy};
use serde::{Deserialize, Deserializer, de::Visitor};
use toml::Spanned;

use super::{
    super::{
        limit_key::LimitKey,
        quantity::{self, QuantityError},
    },
    ConfigError, retention,
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
    retention: RawRetention,
    audit: RawAudit,
    workspace: RawWorkspace,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawAudit {
    lose_rows_on_crash: Option<Spanned<bool>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawWorkspace {
    commit_executable: Option<Spanned<Vec<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawPermissions {
    allow: Vec<PolicyRule>,
    ask: Vec<PolicyRule>,
    deny: Vec<PolicyRule>,
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
    enable_shell: Option<bool>,
    max_running: Option<Spanned<Quantity>>,
    max_queued: Option<Spanned<Quantity>>,
    keep_days: Option<Spanned<Quantity>>,
}

macro_rules! raw_retention {
    ($($field:ident => $kind:ident,)*) => {
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct RawRetention {
            $($field: Option<Spanned<Quantity>>,)*
            max_size: Option<Spanned<Quantity>>,
        }

        impl RawRetention {
            /// What is said about each kind, with the key it is said by.
            fn ages(&self) -> Vec<(RecordKind, &'static str, &Spanned<Quantity>)> {
                [$((RecordKind::$kind, stringify!($field), self.$field.as_ref()),)*]
                    .into_iter()
                    .filter_map(|(kind, key, value)| Some((kind, key, value?)))
                    .collect()
            }
        }
    };
}

raw_retention! {
    runs_days => Runs,
    journals_days => Journals,
    events_days => Events,
    audit_days => Audit,
    approvals_days => Approvals,
    blobs_days => Blobs,
    sessions_days => Sessions,
    workflows_days => Workflows,
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
    pub(super) fn policy(&self) -> ToolPolicy {
        let RawPermissions { allow, ask, deny, .. } = &self.file.permissions;
        ToolPolicy { allow: allow.clone(), ask: ask.clone(), deny: deny.clone() }
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

    /// Whether workflows may have code.
    pub(super) fn enables_code_execution(&self) -> Option<bool> {
        self.file.workflows.enable_code_execution
    }

    /// Whether bash may be among it.
    pub(super) fn enables_shell(&self) -> Option<bool> {
        self.file.workflows.enable_shell
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

    /// For how long records of each kind are kept; nothing stands for ever.
    pub(super) fn ages(&self) -> Result<Vec<(RecordKind, Option<Duration>)>, ConfigError> {
        let mut ages = Vec::new();
        for (kind, key, value) in self.file.retention.ages() {
            let age = self.one("retention", key, Some(value), retention::age)?;
            ages.extend(age.map(|age| (kind, age)));
        }
        Ok(ages)
    }

    /// How large a store may become; nothing stands for any size.
    pub(super) fn max_size(&self) -> Result<Option<Option<u64>>, ConfigError> {
        let value = self.file.retention.max_size.as_ref();
        self.one("retention", "max_size", value, retention::most_bytes)
    }

    /// The same of a project's file, where it has no place: whoever wrote the project has no say in
    /// what is known of what it did.
    pub(super) fn refuse_retention(&self) -> Result<(), ConfigError> {
        let RawRetention { max_size, .. } = &self.file.retention;
        let keep_days = self.file.workflows.keep_days.as_ref();
        let ages = self.file.retention.ages().into_iter();
        let said = keep_days
            .map(|value| ("workflows", "keep_days", value))
            .into_iter()
            .chain(ages.map(|(_, key, value)| ("retention", key, value)))
            .chain(max_size.as_ref().map(|value| ("retention", "max_size", value)))
            .next();
        let Some((section, key, value)) = said else { return Ok(()) };
        Err(self.not_a_projects(section, key, value.span().start))
    }

    /// Whether rows about calls with effects may be lost when the host is killed.
    pub(super) fn loses_audit_rows(&self) -> Option<bool> {
        self.file.audit.lose_rows_on_crash.as_ref().map(|value| *value.get_ref())
    }

    /// The same of a project's file, where it has no place either.
    pub(super) fn refuse_lose_rows(&self) -> Result<(), ConfigError> {
        let Some(value) = &self.file.audit.lose_rows_on_crash else { return Ok(()) };
        Err(self.not_a_projects("audit", "lose_rows_on_crash", value.span().start))
    }

    fn not_a_projects(
        &self,
        section: &'static str,
        key: &'static str,
        offset: usize,
    ) -> ConfigError {
        ConfigError::Value {
            file: self.path.clone(),
            line: self.line_of(offset),
            section,
            key,
            reason: "only the user's own belljar.toml may say this, not a project's".to_owned(),
        }
    }

    /// Names that every commit brings although the host would execute them.
    pub(super) fn commit_executable(&self) -> Result<Vec<String>, ConfigError> {
        let Some(value) = &self.file.workspace.commit_executable else { return Ok(Vec::new()) };
        let names = CommitExecutable::Names(value.get_ref().clone());
        match names.unlisted() {
            None => Ok(value.get_ref().clone()),
            Some(name) => {
                let reason = format!("the host does not execute {name:?} by itself");
                Err(self.not_executable(value, reason))
            }
        }
    }

    /// The same of a project's file, where it has no place: it may come with the very files.
    pub(super) fn refuse_commit_executable(&self) -> Result<(), ConfigError> {
        let Some(value) = &self.file.workspace.commit_executable else { return Ok(()) };
        let reason = "only the user's own belljar.toml may say this, not a project's".to_owned();
        Err(self.not_executable(value, reason))
    }

    fn not_executable(&self, value: &Spanned<Vec<String>>, reason: String) -> ConfigError {
        ConfigError::Value {
            file: self.path.clone(),
            line: self.line_of(value.span().start),
            section: "workspace",
            key: "commit_executable",
            reason,
        }
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
