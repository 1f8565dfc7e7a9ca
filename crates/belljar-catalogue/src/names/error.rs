//! Errors for names that do not resolve to one tool, with suggestions.

use crate::visible::{line, list};

/// Why a name in guest code does not resolve to one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveError {
    /// No server has this name.
    UnknownServer {
        /// As guest code spelt it.
        server: String,
        /// Servers with names like it, best first.
        nearest: Vec<String>,
        /// The servers that have tools.
        servers: Vec<String>,
    },
    /// No tool has this name.
    UnknownTool {
        /// As guest code spelt it.
        name: String,
        /// The server that the code named, if it named one.
        server: Option<String>,
        /// Tools with names like it, best first: of the server, or else qualified.
        nearest: Vec<String>,
        /// The servers that have tools.
        servers: Vec<String>,
    },
    /// Several tools or servers match.
    Ambiguous {
        /// As guest code spelt it.
        name: String,
        /// The names that match.
        candidates: Vec<String>,
    },
}

impl ResolveError {
    /// The hint: names to try instead.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownServer { servers, .. } => servers_hint(servers),
            Self::UnknownTool { server: Some(server), .. } => {
                format!(
                    "tools.search(\"what you want to do\") finds tools; {} has others",
                    line(server, 80)
                )
            }
            Self::UnknownTool { servers, .. } => servers_hint(servers),
            Self::Ambiguous { .. } => {
                "call it by its exact name: tools.call(\"server__tool\", args)".to_owned()
            }
        }
    }
}

impl std::fmt::Display for ResolveError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownServer { server, nearest, servers } => {
                write!(to, "there is no server `{}`", line(server, 80))?;
                did_you_mean(to, nearest)?;
                write!(to, " ({})", servers_hint(servers))
            }
            Self::UnknownTool { name, server: Some(server), nearest, .. } => {
                write!(to, "server `{}` has no tool `{}`", line(server, 80), line(name, 80))?;
                did_you_mean(to, nearest)
            }
            Self::UnknownTool { name, server: None, nearest, servers } => {
                write!(to, "there is no tool `{}`", line(name, 160))?;
                did_you_mean(to, nearest)?;
                write!(to, " ({})", servers_hint(servers))
            }
            Self::Ambiguous { name, candidates } => {
                let candidates = list(candidates, 10);
                write!(to, "`{}` could be any of: {candidates}", line(name, 160))
            }
        }
    }
}

impl std::error::Error for ResolveError {}

fn did_you_mean(to: &mut std::fmt::Formatter<'_>, nearest: &[String]) -> std::fmt::Result {
    let quoted: Vec<String> = nearest.iter().map(|name| format!("`{}`", line(name, 80))).collect();
    match quoted.split_last() {
        None => Ok(()),
        Some((only, [])) => write!(to, "; did you mean {only}?"),
        Some((last, others)) => write!(to, "; did you mean {} or {last}?", others.join(", ")),
    }
}

fn servers_hint(servers: &[String]) -> String {
    if servers.is_empty() {
        return "no server with tools is configured".to_owned();
    }
    format!("servers: {}", list(servers, 20))
}
