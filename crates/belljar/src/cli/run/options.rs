//! Options of a run that concern its project, from flags and configuration.

use std::time::Duration;

use anyhow::bail;
use belljar_project::{Project, RunDurability};
use belljar_tools::{Glob, ToolGrants};

use crate::cli::{approvals::prompt::ApprovalWait, arguments::ToolArguments};

/// The tools, durability and budget of a run.
#[derive(Debug)]
pub(crate) struct ProjectOptions {
    pub(crate) tools: ToolGrants,
    pub(crate) intent: Option<String>,
    pub(crate) durability: RunDurability,
    pub(crate) wait: ApprovalWait,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) cache: Option<Duration>,
    /// Whether any option needs servers or a store.
    pub(crate) needs_project: bool,
}

impl ProjectOptions {
    /// Reads the flags; the configuration supplies what they leave open.
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
        let durability = match (arguments.durable, arguments.no_durable) {
            (true, _) => RunDurability::Always,
            (false, true) => RunDurability::Never,
            (false, false) => RunDurability::IfAsked,
        };
        let intent = arguments.intent.clone();
        let wait = ApprovalWait::of(arguments.no_wait);
        Ok(Self { tools, intent, durability, wait, max_output_tokens, cache, needs_project })
    }
}

/// Grants the tools that `--tool` names and no others. Calls that only the default would ask about
/// are approved in advance.
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
                none if none.is_empty() => "no servers are configured".to_owned(),
                known => format!("configured servers: {known}"),
            };
            bail!("--tool {pattern}: there is no MCP server `{server}`; {known}");
        }
    }
    let globs: Vec<Glob> = only.iter().map(Glob::new).collect();
    Ok(ToolGrants { only: Some(globs.clone()), given: globs })
}
