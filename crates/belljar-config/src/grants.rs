//! `[grants]`: what clients of `belljar serve` may ask for.
//!
//! The operator allows: the user's file, or the one that `--config` names, and the flags of `serve` add up.
//! Invariant: a project's file narrows that, and what it states beyond it is left out and reported.

use std::path::{Path, PathBuf};

use belljar_contract::{GrantTable, IgnoredGrant};
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, ConfigFiles, RawConfig};

/// The table as a file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawGrants {
    read: Option<Vec<Spanned<String>>>,
    write: Option<Vec<Spanned<String>>>,
    workspace: Option<Vec<Spanned<String>>>,
    env: Option<Vec<Spanned<String>>>,
    modules: Option<Vec<Spanned<String>>>,
    commands: Option<Vec<Spanned<String>>>,
}

impl RawGrants {
    /// The list that the file states for a key.
    fn list(&self, key: &str) -> Option<&Vec<Spanned<String>>> {
        match key {
            "read" => self.read.as_ref(),
            "write" => self.write.as_ref(),
            "workspace" => self.workspace.as_ref(),
            "env" => self.env.as_ref(),
            "modules" => self.modules.as_ref(),
            "commands" => self.commands.as_ref(),
            _ => None,
        }
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
    for (key, list) in table.columns() {
        let Some(raw) = file.grants().list(key) else { continue };
        let read = |value: &Spanned<String>| {
            let text = value.get_ref();
            if text.is_empty() || text.starts_with('=') {
                return Err(invalid(file, key, value, "a value is empty"));
            }
            Ok(match GrantTable::PATHS.contains(&key) {
                true => directory.join(text).to_string_lossy().into_owned(),
                false => text.clone(),
            })
        };
        *list = Some(raw.iter().map(read).collect::<Result<_, _>>()?);
    }
    Ok(table)
}

/// A project's file names variables; their values are the operator's.
fn refuse_values(file: &RawConfig) -> Result<(), ConfigError> {
    let variables = file.grants().env.iter().flatten();
    let Some(value) = variables.into_iter().find(|value| value.get_ref().contains('=')) else {
        return Ok(());
    };
    Err(invalid(file, "env", value, "a project's file names variables, without values"))
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
