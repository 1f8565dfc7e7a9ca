//! From the flags of `belljar run` and the configuration to what a run gets of its project.

use std::time::Duration;

use anyhow::bail;
use belljar_project::{Execution, Executor, Project, RunDurability};
use belljar_tools::{Glob, ToolGrants};

use crate::cli::{arguments::ToolArguments, terminal::notice::with_notice};

/// What a run gets of its project.
#[derive(Debug)]
pub(crate) struct ProjectOptions {
    pub(crate) tools: ToolGrants,
    pub(crate) intent: Option<String>,
    is_durable: bool,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) cache: Option<Duration>,
    /// Whether any of this takes servers or a store.
    pub(crate) needs_project: bool,
}

impl ProjectOptions {
    /// Reads the flags; what they leave open is as configured.
    pub(crate) fn of(arguments: &ToolArguments, project: &Project) -> anyhow::Result<Self> {
        let tools = grants(&arguments.only, project)?;
        let configured = project.tools();
        let max_output_tokens = arguments.max_output_tokens.or(configured.max_output_tokens);
        let cache = arguments.cache.or(configured.cache);
        let needs_project = project.has_servers()
            || arguments.durable
            || arguments.intent.is_some()
            || max_output_tokens.is_some()
            || cache.is_some();
        let is_durable = arguments.durable;
        let intent = arguments.intent.clone();
        Ok(Self { tools, intent, is_durable, max_output_tokens, cache, needs_project })
    }

    /// Decides which tools the run gets, and then whether it is to keep a journal: if that was asked
    /// for, or if it could be made to wait for a person, which takes the servers' lists of tools to
    /// know.
    pub(crate) async fn prepare(&self, execution: &mut Execution, executor: &Executor) {
        let Some(bridge) = executor.bridge() else {
            execution.durability =
                if self.is_durable { RunDurability::Always } else { RunDurability::Never };
            return;
        };
        let told = || format!("starting MCP servers: {}", bridge.servers().join(", "));
        let decided = async {
            executor.inject(execution).await;
            self.is_durable || bridge.may_ask(&execution.tools).await
        };
        let keeps_journal = with_notice(told, decided).await;
        execution.durability =
            if keeps_journal { RunDurability::Always } else { RunDurability::Never };
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
