//! One `belljar.toml` as it is written, before any value is interpreted.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use belljar_contract::{EngineName, Language, Limit, UnknownEngine};
use belljar_paths::names::first_unlisted;
use belljar_store::RecordKind;
use belljar_tools::{PolicyRule, RawServer, ToolPolicy};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, MapAccess, Visitor},
};
use toml::Spanned;

use super::{
    ConfigError, grants::RawGrants, net::RawNet, quantity, quantity::QuantityError, retention,
};

/// A parsed file and its path.
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
    engines: BTreeMap<Language, Spanned<String>>,
    mcp_servers: BTreeMap<String, RawServer>,
    permissions: RawPermissions,
    results: RawResults,
    cache: RawCache,
    workflows: RawWorkflows,
    retention: RawRetention,
    audit: RawAudit,
    workspace: RawWorkspace,
    grants: RawGrants,
    net: RawNet,
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
    approval_timeout: Option<Spanned<RawQuantity>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawResults {
    max_output_tokens: Option<Spanned<RawQuantity>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawCache {
    ttl: Option<Spanned<RawQuantity>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawWorkflows {
    serve: Option<bool>,
    enable_code_execution: Option<bool>,
    enable_shell: Option<bool>,
    max_running: Option<Spanned<RawQuantity>>,
    max_queued: Option<Spanned<RawQuantity>>,
    keep_days: Option<Spanned<RawQuantity>>,
}

macro_rules! raw_retention {
    ($($field:ident => $kind:ident,)*) => {
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct RawRetention {
            $($field: Option<Spanned<RawQuantity>>,)*
            max_size: Option<Spanned<RawQuantity>>,
        }

        impl RawRetention {
            /// The configured ages, each with its kind and its key.
            fn ages(&self) -> Vec<(RecordKind, &'static str, &Spanned<RawQuantity>)> {
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

/// `[limits]`, or `[limits.maximum]` in it: a value for each limit of the table that is stated.
#[derive(Debug, Default)]
struct RawLimits {
    stated: Vec<(Limit, Spanned<RawQuantity>)>,
    maximum: Vec<(Limit, Spanned<RawQuantity>)>,
}

/// The key of `[limits]` that is not a limit.
const MAXIMUM: &str = "maximum";

/// The keys of `[limits]`: every limit, then `maximum`.
const LIMITS_KEYS: [&str; Limit::KEYS.len() + 1] = {
    let mut keys = [MAXIMUM; Limit::KEYS.len() + 1];
    let (limits, _) = keys.split_at_mut(Limit::KEYS.len());
    limits.copy_from_slice(Limit::KEYS);
    keys
};

impl<'de> Deserialize<'de> for RawLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LimitsVisitor { may_have_maximum: true })
    }
}

/// Reads a table of limits by the names of the contract.
#[derive(Clone, Copy)]
struct LimitsVisitor {
    may_have_maximum: bool,
}

impl<'de> DeserializeSeed<'de> for LimitsVisitor {
    type Value = RawLimits;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawLimits, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LimitsVisitor {
    type Value = RawLimits;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of limits")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawLimits, A::Error> {
        let mut limits = RawLimits::default();
        while let Some(key) = map.next_key_seed(LimitsKeySeed(self))? {
            match key {
                Some(limit) => limits.stated.push((limit, map.next_value()?)),
                None => {
                    let maximum = map.next_value_seed(Self { may_have_maximum: false })?;
                    limits.maximum = maximum.stated;
                }
            }
        }
        Ok(limits)
    }
}

/// Reads one key of the table: a limit, or `None` for `maximum`. It refuses other keys while the key
/// is read, so that the error points at the key and not at the table.
struct LimitsKeySeed(LimitsVisitor);

impl<'de> DeserializeSeed<'de> for LimitsKeySeed {
    type Value = Option<Limit>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for LimitsKeySeed {
    type Value = Option<Limit>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a limit")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        let Self(LimitsVisitor { may_have_maximum }) = self;
        if key == MAXIMUM && may_have_maximum {
            return Ok(None);
        }
        let known: &'static [&'static str] =
            if may_have_maximum { &LIMITS_KEYS } else { Limit::KEYS };
        Limit::from_key(key).map(Some).ok_or_else(|| E::unknown_field(key, known))
    }
}

/// A value with or without a unit, as text.
#[derive(Debug)]
struct RawQuantity(String);

impl<'de> Deserialize<'de> for RawQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = RawQuantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, or a string with a unit such as \"30s\" or \"512MiB\"")
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawQuantity, E> {
        Ok(RawQuantity(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawQuantity, E> {
        Ok(RawQuantity(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawQuantity, E> {
        Ok(RawQuantity(value.to_owned()))
    }
}

/// One limit in a file, with its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitEntry {
    pub(super) limit: Limit,
    pub(super) value: u64,
    pub(super) line: usize,
}

impl RawConfig {
    /// Parses a file; an unknown key is an error with its line.
    pub(super) fn parse(path: &Path, text: String) -> Result<Self, toml::de::Error> {
        let file = toml::from_str(&text)?;
        Ok(Self { path: path.to_owned(), text, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The limits in `[limits]`.
    pub(super) fn defaults(&self) -> Result<Vec<LimitEntry>, ConfigError> {
        self.stated("limits", &self.file.limits.stated)
    }

    /// The limits in `[limits.maximum]`.
    pub(super) fn maxima(&self) -> Result<Vec<LimitEntry>, ConfigError> {
        self.stated("limits.maximum", &self.file.limits.maximum)
    }

    /// The engines in `[engines]`, each with its language.
    pub(super) fn engines(&self) -> Result<Vec<(Language, EngineName)>, ConfigError> {
        let read = |(language, name): (&Language, &Spanned<String>)| {
            let engine = name.get_ref().parse().map_err(|error: UnknownEngine| error.to_string());
            let fits = engine.and_then(|engine: EngineName| match engine.check(*language) {
                Ok(()) => Ok((*language, engine)),
                Err(mismatch) => Err(format!("{mismatch}; {}", mismatch.hint())),
            });
            fits.map_err(|reason| ConfigError::Value {
                file: self.path.clone(),
                line: self.line_of(name.span().start),
                section: "engines",
                key: language.as_str(),
                reason,
            })
        };
        self.file.engines.iter().map(read).collect()
    }

    /// The table `[grants]`.
    pub(super) fn grants(&self) -> &RawGrants {
        &self.file.grants
    }

    /// The table `[net]`.
    pub(super) fn net(&self) -> &RawNet {
        &self.file.net
    }

    /// The servers in `[mcp_servers]`.
    pub(super) fn servers(&self) -> &BTreeMap<String, RawServer> {
        &self.file.mcp_servers
    }

    /// The rules in `[permissions]`.
    pub(super) fn policy(&self) -> ToolPolicy {
        let RawPermissions { allow, ask, deny, .. } = &self.file.permissions;
        ToolPolicy { allow: allow.clone(), ask: ask.clone(), deny: deny.clone() }
    }

    /// How long a person has to decide about a call.
    pub(super) fn approval_timeout(&self) -> Result<Option<Duration>, ConfigError> {
        let value = self.file.permissions.approval_timeout.as_ref();
        self.one("permissions", "approval_timeout", value, quantity::duration)
    }

    /// The largest value, in tokens, that a result contains in full.
    pub(super) fn max_output_tokens(&self) -> Result<Option<u32>, ConfigError> {
        let value = self.file.results.max_output_tokens.as_ref();
        self.one("results", "max_output_tokens", value, quantity::count)
    }

    /// How long a cached answer may be reused.
    pub(super) fn cache_ttl(&self) -> Result<Option<Duration>, ConfigError> {
        self.one("cache", "ttl", self.file.cache.ttl.as_ref(), quantity::duration)
    }

    /// Whether `serve` offers workflows to clients.
    pub(super) fn serves_workflows(&self) -> Option<bool> {
        self.file.workflows.serve
    }

    /// Whether workflows may contain code.
    pub(super) fn enables_code_execution(&self) -> Option<bool> {
        self.file.workflows.enable_code_execution
    }

    /// Whether workflows may contain bash.
    pub(super) fn enables_shell(&self) -> Option<bool> {
        self.file.workflows.enable_shell
    }

    /// How many workflows run in parallel.
    pub(super) fn max_running(&self) -> Result<Option<u32>, ConfigError> {
        let value = self.file.workflows.max_running.as_ref();
        self.one("workflows", "max_running", value, quantity::count)
    }

    /// How many workflows may wait in the queue.
    pub(super) fn max_queued(&self) -> Result<Option<u32>, ConfigError> {
        let value = self.file.workflows.max_queued.as_ref();
        self.one("workflows", "max_queued", value, quantity::count)
    }

    /// How many days ended workflows are kept.
    pub(super) fn keep_days(&self) -> Result<Option<u32>, ConfigError> {
        let value = self.file.workflows.keep_days.as_ref();
        self.one("workflows", "keep_days", value, quantity::count)
    }

    /// How long records of each kind are kept; `None` means for ever.
    pub(super) fn ages(&self) -> Result<Vec<(RecordKind, Option<Duration>)>, ConfigError> {
        let mut ages = Vec::new();
        for (kind, key, value) in self.file.retention.ages() {
            let age = self.one("retention", key, Some(value), retention::age)?;
            ages.extend(age.map(|age| (kind, age)));
        }
        Ok(ages)
    }

    /// The largest size of the store; `None` means no limit.
    pub(super) fn max_size(&self) -> Result<Option<Option<u64>>, ConfigError> {
        let value = self.file.retention.max_size.as_ref();
        self.one("retention", "max_size", value, retention::most_bytes)
    }

    /// Refuses retention settings in a project's file: the author of a project must not decide how
    /// long its traces are kept.
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

    /// Whether audit rows of calls with effects may be lost if the host is killed.
    pub(super) fn loses_audit_rows(&self) -> Option<bool> {
        self.file.audit.lose_rows_on_crash.as_ref().map(|value| *value.get_ref())
    }

    /// Refuses the audit setting in a project's file, for the same reason.
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
            reason: "allowed only in the user's own belljar.toml, not in a project's".to_owned(),
        }
    }

    /// Names that every commit writes although the host would execute them.
    pub(super) fn commit_executable(&self) -> Result<Vec<String>, ConfigError> {
        let Some(value) = &self.file.workspace.commit_executable else { return Ok(Vec::new()) };
        match first_unlisted(value.get_ref()) {
            None => Ok(value.get_ref().clone()),
            Some(name) => {
                let reason = format!(
                    "{name:?} is not in the list of names that the host executes (docs/files.md)"
                );
                Err(self.not_executable(value, reason))
            }
        }
    }

    /// Refuses these names in a project's file: it may come with the very files that would be
    /// executed.
    pub(super) fn refuse_commit_executable(&self) -> Result<(), ConfigError> {
        let Some(value) = &self.file.workspace.commit_executable else { return Ok(()) };
        let reason = "allowed only in the user's own belljar.toml, not in a project's".to_owned();
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
        value: Option<&Spanned<RawQuantity>>,
        read: impl Fn(&str) -> Result<T, QuantityError>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(quantity) = value else { return Ok(None) };
        let bad_value = |error: QuantityError| ConfigError::Value {
            file: self.path.clone(),
            line: self.line_of(quantity.span().start),
            section,
            key,
            reason: error.to_string(),
        };
        read(&quantity.get_ref().0).map(Some).map_err(bad_value)
    }

    fn stated(
        &self,
        section: &'static str,
        entries: &[(Limit, Spanned<RawQuantity>)],
    ) -> Result<Vec<LimitEntry>, ConfigError> {
        let read = |(limit, quantity): &(Limit, Spanned<RawQuantity>)| {
            let (limit, line) = (*limit, self.line_of(quantity.span().start));
            match quantity::parse(limit, &quantity.get_ref().0) {
                Ok(value) => Ok(LimitEntry { limit, value, line }),
                Err(error) => Err(ConfigError::Value {
                    file: self.path.clone(),
                    line,
                    section,
                    key: limit.key(),
                    reason: error.to_string(),
                }),
            }
        };
        entries.iter().map(read).collect()
    }

    pub(super) fn line_of(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }
}
