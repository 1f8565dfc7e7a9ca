//! The servers of all files, by name.
//!
//! A definition says how a server is reached; the nearest one wins: the project's `belljar.toml`
//! before its `.mcp.json` before the user's file. An entry of a `belljar.toml` that does not say so
//! amends the definition of that name, wherever it is: `.mcp.json` has no place for `trusted`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use belljar_tools::{RawServer, ServerConfigError, read_mcp_json};

use super::{DefaultsFrom, Files, RawConfig};

/// A server as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredServer {
    pub(crate) raw: RawServer,
    /// Where it starts; the project's root if nothing is said.
    pub(crate) directory: Option<PathBuf>,
}

/// Reads a `.mcp.json`. One without servers belongs to somebody who has none.
pub(super) fn read(path: &Path) -> anyhow::Result<BTreeMap<String, ConfiguredServer>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    let servers = match read_mcp_json(&text) {
        Ok(servers) => servers,
        Err(ServerConfigError::NoServers) => BTreeMap::new(),
        Err(error) => bail!("{}: {error}", path.display()),
    };
    let directory = path.parent().map(Path::to_owned);
    let configured = |raw| ConfiguredServer { raw, directory: directory.clone() };
    Ok(servers.into_iter().map(|(name, raw)| (name, configured(raw))).collect())
}

/// All servers, each as the nearest definition has it, with all amendments.
pub(super) fn merge(
    files: Files<'_>,
    foreign: BTreeMap<String, ConfiguredServer>,
) -> BTreeMap<String, ConfiguredServer> {
    let of_operator = files.operator.into_iter().flat_map(|file| definitions(file, None));
    let of_project = files.project.into_iter().flat_map(|file| {
        let directory = file.path().parent().filter(|parent| parent.is_absolute());
        definitions(file, directory)
    });
    let mut all = BTreeMap::new();
    match files.order {
        DefaultsFrom::ProjectFirst => {
            all.extend(of_operator);
            all.extend(foreign);
            all.extend(of_project);
        }
        DefaultsFrom::OperatorFirst => {
            all.extend(foreign);
            all.extend(of_project);
            all.extend(of_operator);
        }
    }
    for file in files.weak_to_strong() {
        for (name, raw) in file.servers().iter().filter(|(_, raw)| !is_definition(raw)) {
            // Without a definition it stays what it is, and is told to lack one when it is used.
            let server = all
                .entry(name.clone())
                .or_insert_with(|| ConfiguredServer { raw: RawServer::default(), directory: None });
            amend(&mut server.raw, raw.clone());
        }
    }
    all
}

fn definitions(
    file: &RawConfig,
    directory: Option<&Path>,
) -> impl Iterator<Item = (String, ConfiguredServer)> {
    let directory = directory.map(Path::to_owned);
    let definitions = file.servers().iter().filter(|(_, raw)| is_definition(raw));
    definitions.map(move |(name, raw)| {
        (name.clone(), ConfiguredServer { raw: raw.clone(), directory: directory.clone() })
    })
}

fn is_definition(raw: &RawServer) -> bool {
    raw.command.is_some() || raw.url.is_some()
}

/// Adds what an amendment says to a definition.
fn amend(server: &mut RawServer, by: RawServer) {
    if !by.args.is_empty() {
        server.args = by.args;
    }
    server.env.extend(by.env);
    server.headers.extend(by.headers);
    server.idempotent.extend(by.idempotent);
    server.read_only.extend(by.read_only);
    server.disabled |= by.disabled;
    server.trusted |= by.trusted;
    server.cwd = by.cwd.or(server.cwd.take());
    server.kind = by.kind.or(server.kind.take());
    server.max_concurrent = by.max_concurrent.or(server.max_concurrent);
    server.rate_per_minute = by.rate_per_minute.or(server.rate_per_minute);
    server.timeout = by.timeout.or(server.timeout);
    server.idle_seconds = by.idle_seconds.or(server.idle_seconds);
}

#[cfg(test)]
mod tests;
