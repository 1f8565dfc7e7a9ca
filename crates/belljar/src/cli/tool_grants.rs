//! From the flags of `belljar run` and the configuration to what a run gets of its project.

use std::time::Duration;

use anyhow::bail;
use belljar::{Durability, Executor};
use belljar_tools::{Glob, ToolGrants};

use super::{arguments::ToolArguments, patience::telling, project::Project};

/// What a run gets of its project.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) tools: ToolGrants,
    is_durable: bool,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) cache: Option<Duration>,
    /// Whether any of this takes servers or a store.
    pub(crate) needs_project: bool,
}

impl Wanted {
    /// Reads the flags; what they leave open is as configured.
    pub(crate) fn of(arguments: &ToolArguments, project: &Project) -> anyhow::Result<Self> {
        let tools = grants(&arguments.only, project)?;
        let configured = project.tools();
        let max_output_tokens = arguments.max_output_tokens.or(configured.max_output_tokens);
        let cache = arguments.cache.or(configured.cache);
        let needs_project = project.has_servers()
            || arguments.durable
            || max_output_tokens.is_some()
            || cache.is_some();
        let is_durable = arguments.durable;
        Ok(Self { tools, is_durable, max_output_tokens, cache, needs_project })
    }

    /// Whether the run is to keep a journal: if it was asked for, or if it could be made to wait for
    /// a person, which takes the servers' lists of tools to know.
    pub(crate) async fn durability(&self, executor: &Executor) -> Durability {
        match executor.bridge() {
            _ if self.is_durable => Durability::Always,
            None => Durability::Never,
            Some(bridge) => {
                let told = || format!("starting MCP servers: {}", bridge.servers().join(", "));
                match telling(told, bridge.may_ask(&self.tools)).await {
                    true => Durability::Always,
                    false => Durability::Never,
                }
            }
        }
    }
}

/// The tools that `--tool` names: no others, and these without asking where only a default asks.
fn grants(only: &[String], project: &Project) -> anyhow::Result<ToolGrants> {
    if only.is_empty() {
        return Ok(ToolGrants::default());
    }
    let servers = &project.tools().servers;
    for pattern in only {
        let Some((server, _)) = pattern.split_once("__") else {
            if pattern.contains('*') {
                continue;
            }
            bail!("--tool {pattern}: a tool is named SERVER__TOOL, for example fs__read_file");
        };
        let is_exact = Glob::new(server).is_exact();
        if is_exact && !servers.contains_key(server) {
            let known: Vec<&str> = servers.keys().map(String::as_str).collect();
            let known = match known.join(", ") {
                none if none.is_empty() => "none is configured".to_owned(),
                known => format!("configured are {known}"),
            };
            bail!("--tool {pattern}: there is no MCP server `{server}`; {known}");
        }
    }
    let globs: Vec<Glob> = only.iter().map(Glob::new).collect();
    Ok(ToolGrants { only: Some(globs.clone()), given: globs })
}
