//! `[net]`: which hosts code may reach, which a person is asked about, and which it may never reach.
//!
//! The user's file, or the one that `--config` names, and flags allow. Invariant: a project's file only
//! takes away, and states no header and no private address. A `${NAME}` in a header is replaced when the
//! rules are used, so that its value is in no settings and in no error.

mod rule;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use belljar_net::{HostPattern, NetRule, NetRules, ProjectNetRules};
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, ConfigFiles, RawConfig};
use rule::{RawNetRule, StatedRule};

/// The table as a file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawNet {
    allow: Option<Vec<Spanned<RawNetRule>>>,
    ask: Option<Vec<Spanned<RawNetRule>>>,
    deny: Option<Vec<Spanned<RawNetRule>>>,
}

/// The tables of all files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetSettings {
    allow: Vec<StatedRule>,
    ask: Vec<StatedRule>,
    deny: Vec<StatedRule>,
    project: Option<(PathBuf, ProjectNetRules)>,
}

/// A rule in a project's file for hosts that the user does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredHost {
    file: PathBuf,
    key: &'static str,
    pattern: HostPattern,
}

impl NetSettings {
    pub(super) fn resolve(files: ConfigFiles<'_>) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        if let Some(file) = files.operator {
            let RawNet { allow, ask, deny } = file.net();
            settings.allow = stated(file, "allow", allow.as_deref().unwrap_or_default())?;
            settings.ask = stated(file, "ask", ask.as_deref().unwrap_or_default())?;
            settings.deny = stated(file, "deny", deny.as_deref().unwrap_or_default())?;
        }
        if let Some(file) = files.project {
            let RawNet { allow, ask, deny } = file.net();
            let rules = |key, list: &[Spanned<RawNetRule>]| of_project(file, key, list);
            let rules = ProjectNetRules {
                allow: allow.as_deref().map(|list| rules("allow", list)).transpose()?,
                ask: rules("ask", ask.as_deref().unwrap_or_default())?,
                deny: rules("deny", deny.as_deref().unwrap_or_default())?,
            };
            settings.project = Some((file.path().to_owned(), rules));
        }
        Ok(settings)
    }

    /// The rules that hold if flags allow these hosts, and what the project's file states beyond them.
    ///
    /// # Errors
    /// A header needs a variable that is not set.
    pub fn rules(
        &self,
        flags: impl IntoIterator<Item = HostPattern>,
        variables: &BTreeMap<String, String>,
    ) -> Result<(NetRules, Vec<IgnoredHost>), ConfigError> {
        let filled = |list: &[StatedRule]| {
            list.iter().map(|rule| rule.filled(variables)).collect::<Result<Vec<_>, _>>()
        };
        let rules = NetRules {
            allow: filled(&self.allow)?,
            ask: filled(&self.ask)?,
            deny: filled(&self.deny)?,
        };
        let rules = rules.with_hosts(flags);
        let Some((file, project)) = &self.project else { return Ok((rules, Vec::new())) };
        let named = project.allow.iter().flatten().map(|rule| ("allow", rule));
        let named = named.chain(project.ask.iter().map(|rule| ("ask", rule)));
        let beyond = named.filter(|(_, rule)| !rules.may_reach(&rule.pattern));
        let ignored = beyond.map(|(key, rule)| IgnoredHost {
            file: file.clone(),
            key,
            pattern: rule.pattern.clone(),
        });
        let ignored = ignored.collect();
        Ok((rules.narrowed_by(project), ignored))
    }

    /// The project's file, if it has something to say about hosts.
    pub fn project_file(&self) -> Option<&Path> {
        let (file, rules) = self.project.as_ref()?;
        (*rules != ProjectNetRules::default()).then_some(file)
    }
}

/// The rules of the user's file for one key.
fn stated(
    file: &RawConfig,
    key: &'static str,
    list: &[Spanned<RawNetRule>],
) -> Result<Vec<StatedRule>, ConfigError> {
    let read = |raw: &Spanned<RawNetRule>| {
        let place = (file.path().to_owned(), file.line_of(raw.span().start), key);
        StatedRule::read(raw.get_ref(), place)
    };
    list.iter().map(read).collect()
}

/// The rules of a project's file for one key.
fn of_project(
    file: &RawConfig,
    key: &'static str,
    list: &[Spanned<RawNetRule>],
) -> Result<Vec<NetRule>, ConfigError> {
    let rules = stated(file, key, list)?;
    rules.into_iter().map(StatedRule::of_project).collect()
}

impl fmt::Display for IgnoredHost {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, key, pattern } = self;
        write!(
            to,
            "{}: net.{key}: {pattern} does not count: a project cannot allow more than its user; allow it \
             with `--net {pattern}`, or with `allow = [\"{pattern}\"]` under [net] in the user's belljar.toml",
            file.display(),
        )
    }
}

#[cfg(test)]
mod tests;
