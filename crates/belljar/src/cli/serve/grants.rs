//! The grants that clients of `serve` may ask for: the flags, and `[grants]` of the files.
//!
//! A flag with a fault is an error. What a file states and this machine does not have is left out with a
//! warning, so that one entry of the user's file does not keep every server from starting.

use std::{
    collections::BTreeMap,
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use belljar_contract::{
    ClientGrants, GrantKey, GrantKind, GrantRule, GrantTable, GrantValue, NameRule, RunError,
};
use belljar_project::{
    ClientHosts,
    config::{GrantSettings, NetSettings},
    host_patterns,
};

use super::with_hint;
use crate::cli::{
    access::{existing, requested_grants},
    arguments::ServeArguments,
    terminal::{
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// The operator's permission. Of the files' variables those count that are set in `variables`.
pub(super) fn allowed(
    arguments: &ServeArguments,
    settings: &GrantSettings,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<ClientGrants> {
    let here = env::current_dir().context("cannot read the current directory")?;
    let (table, ignored) = settings.with_flags(of_flags(arguments, &here)?, &here);
    for one in ignored {
        warn(&one.to_string());
    }
    let mut allowed = ClientGrants::default();
    for key in GrantKey::all() {
        let stated = table.stated(key);
        let values = stated.into_iter().flatten();
        let rule = match key.kind() {
            GrantKind::Paths => {
                let flag = format!("grants.{}", key.name());
                let checked = values.map(|path| existing(&here, &flag, Path::new(path)));
                let found =
                    checked.filter_map(|found| found.map_err(|refused| warn_of(&refused)).ok());
                GrantRule::Paths(found.collect())
            }
            GrantKind::Variables => {
                GrantRule::Variables(values.filter_map(|one| value(one, variables)).collect())
            }
            GrantKind::Names | GrantKind::Hosts | GrantKind::Tools | GrantKind::Switch => {
                GrantRule::Names(match stated {
                    None if key.is_open() => NameRule::Any,
                    stated => NameRule::Only(stated.unwrap_or_default().to_vec()),
                })
            }
        };
        allowed.allow(key, rule);
    }
    Ok(allowed)
}

/// The hosts that clients may ask for. The flags and `[net]` of the user's file allow; what the project's
/// file states beyond them is reported.
pub(super) fn hosts(
    arguments: &ServeArguments,
    settings: &NetSettings,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<ClientHosts> {
    let net = requested_grants(&arguments.grants)?.net;
    let flags = host_patterns(&net).map_err(|refused| with_hint(&refused))?;
    let (rules, ignored) = settings.rules(flags.iter().cloned(), variables)?;
    for one in ignored {
        warn(&one.to_string());
    }
    Ok(ClientHosts { flags, rules: Arc::new(rules) })
}

/// The flags as a table. Their paths exist, and their variables have values.
fn of_flags(arguments: &ServeArguments, here: &Path) -> anyhow::Result<GrantTable> {
    let grants = requested_grants(&arguments.grants)?;
    let paths = |flag: &str, paths: &[PathBuf]| -> anyhow::Result<Vec<String>> {
        let text = |path: &PathBuf| -> anyhow::Result<String> {
            let path = existing(here, flag, path).map_err(|refused| with_hint(&refused))?;
            let not_text = || anyhow!("{flag} {}: the path is not UTF-8 text", path.display());
            path.to_str().map(str::to_owned).ok_or_else(not_text)
        };
        paths.iter().map(text).collect()
    };
    let mut table = GrantTable::default();
    for (grant, value) in grants.values() {
        let Some(flag) = grant.flag().filter(|_| grant.operator().is_some()) else { continue };
        let stated = match value {
            GrantValue::Paths(given) => paths(&format!("--{}", flag.name), &given)?,
            GrantValue::Variables(given) => {
                given.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
            }
            GrantValue::Names(given) => given,
            GrantValue::Switch(_) => continue,
        };
        if !stated.is_empty() {
            table.state(grant, stated);
        }
    }
    if !arguments.workspace.is_empty() {
        table.state(GrantKey::Workspace, paths("--workspace", &arguments.workspace)?);
    }
    Ok(table)
}

/// A variable and its value: the stated one, or the current one.
fn value(stated: &str, variables: &BTreeMap<String, String>) -> Option<(String, String)> {
    if let Some((name, value)) = stated.split_once('=') {
        return Some((name.to_owned(), value.to_owned()));
    }
    let value = variables.get(stated).cloned();
    if value.is_none() {
        warn(&format!("grants.env: {stated} is not set, so that clients cannot have it"));
    }
    Some((stated.to_owned(), value?))
}

fn warn_of(refused: &RunError) {
    warn(&with_hint(refused).to_string());
}

fn warn(text: &str) {
    let warning = TextStyle::of_stderr().paint(TextRole::Bad, "warning");
    let _ = writeln!(io::stderr(), "{warning}: {}", visible(text));
}
