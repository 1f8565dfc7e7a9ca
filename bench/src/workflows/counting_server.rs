//! The MCP server of the examples: a separate small program on its standard streams.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use belljar_tools::{RawServer, ServerSpec};

use super::super::tool_host;

/// The server's name in workflows.
const SERVER: &str = "count";
const SCRIPT: &str = include_str!("../../../crates/belljar/tests/it/servers/counting.py");

/// The command that starts the server.
#[derive(Debug)]
pub(super) struct CountingServer {
    python: PathBuf,
    script: PathBuf,
    /// The file the server writes its notes to.
    notes: PathBuf,
}

impl CountingServer {
    /// Writes the server's script into a directory.
    pub(super) fn install(directory: &Path, python: &Path) -> anyhow::Result<Self> {
        let script = directory.join("counting.py");
        fs::write(&script, SCRIPT).context("cannot write the server's script")?;
        Ok(Self { python: python.to_owned(), script, notes: directory.join("count.txt") })
    }

    pub(super) fn notes(&self) -> &Path {
        &self.notes
    }

    /// Configuration for a bridge. The server is trusted: its tool annotations apply.
    pub(super) fn spec(&self) -> anyhow::Result<ServerSpec> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let raw = RawServer {
            command: Some(text(&self.python)),
            args: vec!["-S".to_owned(), text(&self.script)],
            env: BTreeMap::from([("COUNT_FILE".to_owned(), text(&self.notes))]),
            trusted: true,
            ..RawServer::default()
        };
        let directory = self.script.parent().unwrap_or(Path::new("/"));
        tool_host::spec(SERVER, raw, directory)
    }

    /// The same configuration for a project's `belljar.toml`.
    pub(super) fn configuration(&self) -> String {
        let text = |path: &Path| toml::Value::from(path.to_string_lossy().into_owned());
        format!(
            "[mcp_servers.{SERVER}]\ncommand = {}\nargs = [\"-S\", {}]\nenv = {{ COUNT_FILE = {} }}\n\
             trusted = true\n\n[permissions]\nallow = [\"{SERVER}__*\"]\n",
            text(&self.python),
            text(&self.script),
            text(&self.notes)
        )
    }
}

#[cfg(test)]
mod tests;
