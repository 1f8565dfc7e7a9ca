//! `[grants]`: what clients of `belljar serve` may ask for.
//!
//! The operator allows: the user's file, or the one that `--config` names, and the flags of `serve` add up.
//! Invariant: a project's file narrows that, and what it states beyond it is left out and reported.

use std::{
    fmt, mem,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, ConfigFiles, RawConfig};
use crate::containment::contained;

macro_rules! grant_tables {
    ($($(#[doc = $doc:literal])* $field:ident,)*) => {
        /// The table as a file has it.
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct RawGrants {
            $($field: Option<Vec<Spanned<String>>>,)*
        }

        /// What may be asked for, as a file or flags state it; `None` is not stated.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct GrantTable {
            $($(#[doc = $doc])* pub $field: Option<Vec<String>>,)*
        }

        impl RawGrants {
            fn columns(&self) -> Vec<(&'static str, Option<&Vec<Spanned<String>>>)> {
                vec![$((stringify!($field), self.$field.as_ref()),)*]
            }
        }

        impl GrantTable {
            /// The keys of the table, each with its list.
            fn columns(&mut self) -> Vec<(&'static str, &mut Option<Vec<String>>)> {
                vec![$((stringify!($field), &mut self.$field),)*]
            }
        }
    };
}

grant_tables! {
    /// Paths that clients may ask to read.
    read,
    /// Paths that clients may ask to change.
    write,
    /// Directories that clients may work on, copy-on-write.
    workspace,
    /// Variables of the operator, `NAME` or `NAME=VALUE`.
    env,
    /// Python modules; if not stated, clients may ask for any.
    modules,
    /// Commands beyond the default set.
    commands,
}

/// Keys whose values are paths.
const PATHS: [&str; 3] = ["read", "write", "workspace"];
/// The key whose values are variables.
const VARIABLES: &str = "env";
/// The key that allows everything if it is not stated.
const MODULES: &str = "modules";

impl GrantTable {
    /// Makes every path absolute.
    fn resolve(&mut self, here: &Path) {
        let lists = self.columns().into_iter().filter(|(key, _)| PATHS.contains(key));
        for path in lists.flat_map(|(_, list)| list.iter_mut().flatten()) {
            *path = absolute(here, path);
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

    /// What clients may ask for, if the flags of `serve` allow this, and what the project's file states
    /// beyond it. Relative paths start `here`.
    pub fn with_flags(
        &self,
        mut flags: GrantTable,
        here: &Path,
    ) -> (GrantTable, Vec<IgnoredGrant>) {
        let (mut allowed, mut ignored) = (self.operator.clone(), Vec::new());
        for ((_, stated), (_, more)) in allowed.columns().into_iter().zip(flags.columns()) {
            if let Some(more) = more.take() {
                stated.get_or_insert_default().extend(more);
            }
        }
        allowed.resolve(here);
        let Some((file, mut project)) = self.project.clone() else { return (allowed, ignored) };
        project.resolve(here);
        for ((key, stated), (_, narrower)) in allowed.columns().into_iter().zip(project.columns()) {
            let Some(narrower) = narrower.take() else { continue };
            let wider = mem::take(stated);
            if key == MODULES && wider.is_none() {
                *stated = Some(narrower);
                continue;
            }
            let wider = wider.unwrap_or_default();
            let beyond = narrower.iter().filter(|value| !is_within(key, value, &wider));
            ignored.extend(beyond.map(|value| IgnoredGrant {
                file: file.clone(),
                key,
                value: value.clone(),
            }));
            *stated = Some(both(key, &wider, &narrower));
        }
        (allowed, ignored)
    }
}

/// A value in a project's file that the operator does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredGrant {
    file: PathBuf,
    key: &'static str,
    value: String,
}

impl fmt::Display for IgnoredGrant {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, key, value } = self;
        let flag = match *key {
            "modules" => "module",
            "commands" => "command",
            other => other,
        };
        write!(
            to,
            "{}: grants.{key}: {value} does not count: a project cannot allow more than its user; allow \
             it with `belljar serve --{flag} {value}`, or `{key} = [{value:?}]` under [grants] in your own \
             belljar.toml",
            file.display(),
        )
    }
}

/// What both lists allow.
fn both(key: &str, wider: &[String], narrower: &[String]) -> Vec<String> {
    let of_operator = wider.iter().filter(|value| is_within(key, value, narrower));
    if !PATHS.contains(&key) {
        return of_operator.cloned().collect();
    }
    let of_project = narrower.iter().filter(|value| is_within(key, value, wider));
    let mut all: Vec<String> = of_operator.chain(of_project).cloned().collect();
    all.sort();
    all.dedup();
    all
}

fn is_within(key: &str, value: &str, list: &[String]) -> bool {
    if PATHS.contains(&key) {
        let roots: Vec<PathBuf> = list.iter().map(PathBuf::from).collect();
        return contained(value, &roots).is_some();
    }
    let name = |value: &str| match key == VARIABLES {
        true => value.split('=').next().unwrap_or_default().to_owned(),
        false => value.to_owned(),
    };
    list.iter().any(|other| name(other) == name(value))
}

/// The table of a file. Its relative paths start in the directory of the file.
fn table(file: &RawConfig) -> Result<GrantTable, ConfigError> {
    let directory = file.path().parent().unwrap_or(file.path());
    let mut table = GrantTable::default();
    for ((key, raw), (_, list)) in file.grants().columns().into_iter().zip(table.columns()) {
        let Some(raw) = raw else { continue };
        let read = |value: &Spanned<String>| {
            let text = value.get_ref();
            if text.is_empty() || text.starts_with('=') {
                return Err(invalid(file, key, value, "a value is empty"));
            }
            Ok(match PATHS.contains(&key) {
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
    Err(invalid(file, VARIABLES, value, "a project's file names variables, without values"))
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

/// An absolute path without `.` and `..`, resolved as text.
fn absolute(here: &Path, path: &str) -> String {
    let mut resolved = PathBuf::new();
    for part in here.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => resolved.push(part),
        }
    }
    resolved.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
