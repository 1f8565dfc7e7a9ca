//! The MCP servers of all files, by name.
//!
//! An entry with a command or a URL defines a server. The nearest definition wins: the project's
//! `belljar.toml`, then its `.mcp.json`, then the user's file. An entry without either amends the
//! definition of that name, wherever it is: `.mcp.json` has no place for `trusted`. A project may
//! only restrict a server that it does not define, because that server has the user's credentials.
//! This holds for servers of the user's file and of a `.mcp.json` further up.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use belljar_paths::owner::{Purpose, read_to_string};
use belljar_tools::{RawServer, ServerConfigError, read_mcp_json};

use super::{ConfigFiles, DefaultsOrder, RawConfig, SettingsError};

/// A server with its merged configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredServer {
    /// The merged entries of all files.
    pub raw: RawServer,
    /// Working directory of the server; the project's root if it is not set.
    pub directory: Option<PathBuf>,
    /// Decides how much the project's `belljar.toml` may change.
    owner: ServerOrigin,
}

/// Where a server is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerOrigin {
    /// Defined in the project's own files.
    Project,
    /// Defined in the user's own file.
    User,
    /// Defined in a directory above the project.
    Outside,
}

impl ConfiguredServer {
    /// Whether the project's own files define the server.
    pub(super) fn is_of_project(&self) -> bool {
        self.owner == ServerOrigin::Project
    }

    /// Whether the user's own file defines the server.
    pub fn is_of_user(&self) -> bool {
        self.owner == ServerOrigin::User
    }
}

/// A project changes more of the user's server than it may.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}: mcp_servers.{name} is defined outside of this project; a project may only disable it \
     or lower its limits, not set `{key}`: give it another name, with a command or url of its own",
    file = .file.display()
)]
pub struct ServerOverrideError {
    file: PathBuf,
    name: String,
    key: &'static str,
}

/// Reads a `.mcp.json`. A file without servers is valid.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, ConfiguredServer>, SettingsError> {
    let text = read_to_string(path, Purpose::Configuration)
        .map_err(|source| SettingsError::ServersUnreadable { path: path.to_owned(), source })?;
    let servers = match read_mcp_json(&text) {
        Ok(servers) => servers,
        Err(ServerConfigError::NoServers) => BTreeMap::new(),
        Err(fault) => return Err(SettingsError::ServersInvalid { path: path.to_owned(), fault }),
    };
    let directory = path.parent().map(Path::to_owned);
    let configured =
        |raw| ConfiguredServer { raw, directory: directory.clone(), owner: ServerOrigin::Project };
    Ok(servers.into_iter().map(|(name, raw)| (name, configured(raw))).collect())
}

/// Merges all files: each server has its nearest definition and all amendments.
pub(super) fn merge(
    files: ConfigFiles<'_>,
    mut foreign: BTreeMap<String, ConfiguredServer>,
) -> Result<BTreeMap<String, ConfiguredServer>, ServerOverrideError> {
    let root = files.project.and_then(|file| file.path().parent());
    for server in foreign.values_mut() {
        server.owner = owner(root, server.directory.as_deref());
    }
    let of_operator = files.operator.into_iter().flat_map(|file| {
        let own = definitions(file, None);
        own.map(|(name, server)| (name, ConfiguredServer { owner: ServerOrigin::User, ..server }))
    });
    let of_project = files.project.into_iter().flat_map(|file| {
        let directory = file.path().parent().filter(|parent| parent.is_absolute());
        definitions(file, directory)
    });
    let mut all = BTreeMap::new();
    match files.order {
        DefaultsOrder::ProjectFirst => {
            all.extend(of_operator);
            all.extend(foreign);
            all.extend(of_project);
        }
        DefaultsOrder::OperatorFirst => {
            all.extend(foreign);
            all.extend(of_project);
            all.extend(of_operator);
        }
    }
    for file in files.weak_to_strong() {
        let is_project = files.is_project(file);
        for (name, raw) in file.servers().iter().filter(|(_, raw)| !is_definition(raw)) {
            // Without a definition the server is kept; using it reports that the definition is
            // missing.
            let nothing = || ConfiguredServer {
                raw: RawServer::default(),
                directory: None,
                owner: ServerOrigin::Project,
            };
            let server = all.entry(name.clone()).or_insert_with(nothing);
            if is_project && !server.is_of_project() {
                restrict(&mut server.raw, raw).map_err(|key| ServerOverrideError {
                    file: file.path().to_owned(),
                    name: name.clone(),
                    key,
                })?;
            } else {
                amend(&mut server.raw, raw.clone());
            }
        }
    }
    Ok(all)
}

/// Whether a `.mcp.json` in `directory` belongs to a project in `root`.
fn owner(root: Option<&Path>, directory: Option<&Path>) -> ServerOrigin {
    let is_above = |root: &Path, directory: &Path| root != directory && root.starts_with(directory);
    match (root, directory) {
        (Some(root), Some(directory)) if is_above(root, directory) => ServerOrigin::Outside,
        _ => ServerOrigin::Project,
    }
}

fn definitions(
    file: &RawConfig,
    directory: Option<&Path>,
) -> impl Iterator<Item = (String, ConfiguredServer)> {
    let directory = directory.map(Path::to_owned);
    let definitions = file.servers().iter().filter(|(_, raw)| is_definition(raw));
    definitions.map(move |(name, raw)| {
        let directory = directory.clone();
        (
            name.clone(),
            ConfiguredServer { raw: raw.clone(), directory, owner: ServerOrigin::Project },
        )
    })
}

fn is_definition(raw: &RawServer) -> bool {
    raw.command.is_some() || raw.url.is_some()
}

/// Applies the restrictions of a project's entry. The error is the first key that does more than
/// restrict.
fn restrict(server: &mut RawServer, by: &RawServer) -> Result<(), &'static str> {
    let unchanged = RawServer {
        disabled: by.disabled,
        max_concurrent: by.max_concurrent,
        rate_per_minute: by.rate_per_minute,
        timeout: by.timeout,
        ..RawServer::default()
    };
    if *by != unchanged {
        let more = [
            ("args", !by.args.is_empty()),
            ("env", !by.env.is_empty()),
            ("headers", !by.headers.is_empty()),
            ("cwd", by.cwd.is_some()),
            ("trusted", by.trusted),
            ("idempotent", !by.idempotent.is_empty()),
            ("read_only", !by.read_only.is_empty()),
            ("idle_seconds", by.idle_seconds.is_some()),
        ];
        return Err(more.iter().find(|(_, is_set)| *is_set).map_or("type", |(key, _)| *key));
    }
    server.disabled |= by.disabled;
    server.max_concurrent = server.max_concurrent.into_iter().chain(by.max_concurrent).min();
    server.rate_per_minute = server.rate_per_minute.into_iter().chain(by.rate_per_minute).min();
    server.timeout = server.timeout.into_iter().chain(by.timeout).min();
    Ok(())
}

/// Applies an amendment to a definition.
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
