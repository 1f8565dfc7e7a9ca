//! `[grants]`: what clients of `belljar serve` may ask for.
//!
//! The operator allows: the user's file, or the one that `--config` names, and the flags of `serve` add up.
//! Invariant: a project's file narrows that, and what it states beyond it is left out and reported.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use belljar_contract::{Grant, GrantKey, GrantKind, GrantTable, IgnoredGrant};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::{ConfigError, ConfigFiles, RawConfig};

/// The table as a file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct RawGrants(BTreeMap<RawKey, Vec<Spanned<String>>>);

impl RawGrants {
    /// The list that the file states for a key.
    fn list(&self, key: GrantKey) -> Option<&Vec<Spanned<String>>> {
        self.0.get(&RawKey(key))
    }
}

/// A key of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RawKey(GrantKey);

static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| GrantKey::all().into_iter().map(GrantKey::name).collect());

impl<'de> Deserialize<'de> for RawKey {
    fn deserialize<D: Deserializer<'de>>(key: D) -> Result<Self, D::Error> {
        let name = String::deserialize(key)?;
        let key = GrantKey::all().into_iter().find(|key| key.name() == name);
        key.map(Self).ok_or_else(|| de::Error::unknown_field(&name, &KEYS))
    }
}

/// The tables of all files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantSettings {
    operator: GrantTable,
    project: Option<(PathBuf, GrantTable)>,
}

impl GrantSettings {
    pub(super) fn resolve(files: ConfigFiles<'_>) -> Result<Self, ConfigError> {
        let operator = files.operator.map(table).transpose()?.unwrap_or_default();
        files.project.map_or(Ok(()), refuse_values)?;
        let project = files.project.map(|file| Ok((file.path().to_owned(), table(file)?)));
        Ok(Self { operator, project: project.transpose()? })
    }

    /// The grants that clients may ask for if the flags of `serve` allow this, and the grants of the project's file
    /// beyond it. Relative paths start `here`.
    pub fn with_flags(&self, flags: GrantTable, here: &Path) -> (GrantTable, Vec<IgnoredGrant>) {
        let mut allowed = self.operator.clone().and(flags);
        allowed.resolve(here);
        let Some((file, project)) = &self.project else { return (allowed, Vec::new()) };
        let mut project = project.clone();
        project.resolve(here);
        allowed.narrowed_by(project, file)
    }
}

/// The table of a file. Its relative paths start in the directory of the file.
fn table(file: &RawConfig) -> Result<GrantTable, ConfigError> {
    let directory = file.path().parent().unwrap_or(file.path());
    let mut table = GrantTable::default();
    for key in GrantKey::all() {
        let Some(raw) = file.grants().list(key) else { continue };
        let read = |value: &Spanned<String>| {
            let text = value.get_ref();
            if text.is_empty() || text.starts_with('=') {
                return Err(invalid(file, key.name(), value, "a value is empty"));
            }
            Ok(match key.kind() == GrantKind::Paths {
                true => directory.join(text).to_string_lossy().into_owned(),
                false => text.clone(),
            })
        };
        table.state(key, raw.iter().map(read).collect::<Result<_, _>>()?);
    }
    Ok(table)
}

/// A project's file names variables; their values are the operator's.
fn refuse_values(file: &RawConfig) -> Result<(), ConfigError> {
    let mut variables = file.grants().list(Grant::Env.into()).into_iter().flatten();
    let Some(value) = variables.find(|value| value.get_ref().contains('=')) else {
        return Ok(());
    };
    Err(invalid(file, Grant::Env.key(), value, "a project's file names variables, without values"))
}

fn invalid(
    file: &RawConfig,
    key: &'static str,
    value: &Spanned<String>,
    reason: &str,
) -> ConfigError {
    ConfigError::Value {
        file: file.path().to_owned(),
        line: file.line_of(value.span().start),
        section: "grants",
        key,
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
