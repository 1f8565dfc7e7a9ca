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
use belljar_contract::{ClientGrants, Grant, GrantTable, NameRule, RunError};
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
    let GrantTable { read, write, workspace, env, modules, commands } = table;
    let paths = |key: &str, list: Option<Vec<String>>| {
        let checked = list
            .into_iter()
            .flatten()
            .map(|path| existing(&here, &format!("grants.{key}"), Path::new(&path)));
        checked.filter_map(|found| found.map_err(|refused| warn_of(&refused)).ok()).collect()
    };
    Ok(ClientGrants {
        readable: paths("read", read),
        writable: paths("write", write),
        workspaces: paths("workspace", workspace),
        env: env.into_iter().flatten().filter_map(|stated| value(&stated, variables)).collect(),
        modules: modules.map_or(NameRule::Any, NameRule::Only),
        commands: NameRule::Only(commands.unwrap_or_default()),
    })
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
    let given = |grant: Grant| arguments.grants.given().iter().any(|(other, _)| *other == grant);
    let paths = |flag: &str, paths: &[PathBuf]| -> anyhow::Result<Option<Vec<String>>> {
        let text = |path: &PathBuf| -> anyhow::Result<String> {
            let path = existing(here, flag, path).map_err(|refused| with_hint(&refused))?;
            let not_text = || anyhow!("{flag} {}: the path is not UTF-8 text", path.display());
            path.to_str().map(str::to_owned).ok_or_else(not_text)
        };
        let all = paths.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        Ok((!all.is_empty()).then_some(all))
    };
    let env = grants.env.iter().map(|(name, value)| format!("{name}={value}"));
    Ok(GrantTable {
        read: paths("--read", &grants.read)?,
        write: paths("--write", &grants.write)?,
        workspace: paths("--workspace", &arguments.workspace)?,
        env: given(Grant::Env).then(|| env.collect()),
        modules: given(Grant::Modules).then_some(grants.modules),
        commands: given(Grant::Commands).then_some(grants.commands),
    })
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
