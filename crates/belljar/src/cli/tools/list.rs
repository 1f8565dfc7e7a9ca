//! `belljar tools list`: lists the tools, and whether code may call them.

use std::{io, io::Write as _, process::ExitCode};

use belljar_project::config::{IgnoredRule, ProjectSettings};
use belljar_tools::{Annotations, PolicyDecision, PolicyVerdict, Tool, ToolGrants};
use serde::Serialize;

use super::{ToolAccess, first_line, print_failures};
use crate::cli::{
    arguments::ToolsListArguments,
    print_json,
    terminal::{columns::columns, style::TextStyle, visible::visible},
};

/// Runs `belljar tools list`.
pub(super) async fn list(
    arguments: &ToolsListArguments,
    settings: &ProjectSettings,
    access: &ToolAccess,
) -> anyhow::Result<ExitCode> {
    let (catalogue, failures) = access.catalogue(arguments.server.as_deref()).await;
    let grants = ToolGrants::default();
    let rows: Vec<ToolRow<'_>> = catalogue
        .tools()
        .iter()
        .map(|tool| ToolRow::of(tool, access.bridge.verdict(tool, &grants)))
        .collect();
    if arguments.json {
        let failed = failures.iter().map(|failure| FailedServer {
            server: failure.server(),
            reason: failure.to_string(),
            hint: failure.hint(),
        });
        let not_counted = &settings.tools.ignored_rules;
        print_json(&ToolListing { tools: &rows, failed: failed.collect(), not_counted })?;
    } else if !rows.is_empty() {
        let cells: Vec<[String; 3]> = rows.iter().map(ToolRow::cells).collect();
        let table = columns(["NAME", "POLICY", "DESCRIPTION"], &cells, TextStyle::of_stdout());
        io::stdout().write_all(table.as_bytes())?;
    }
    print_failures(&failures)?;
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// All tools in the JSON output.
#[derive(Debug, Serialize)]
struct ToolListing<'a> {
    tools: &'a [ToolRow<'a>],
    failed: Vec<FailedServer<'a>>,
    /// Rules of the project's file that do not apply to some servers.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_counted: &'a [IgnoredRule],
}

#[derive(Debug, Serialize)]
struct FailedServer<'a> {
    server: &'a str,
    reason: String,
    hint: Option<String>,
}

/// A tool in the JSON output.
#[derive(Debug, Serialize)]
struct ToolRow<'a> {
    name: String,
    server: &'a str,
    tool: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    annotations: Annotations,
    policy: PolicyVerdict,
    reason: String,
}

impl<'a> ToolRow<'a> {
    fn of(tool: &'a Tool, PolicyDecision { verdict, reason, .. }: PolicyDecision) -> Self {
        Self {
            name: tool.qualified_name(),
            server: &tool.server,
            tool: &tool.name,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            annotations: tool.annotations,
            policy: verdict,
            reason,
        }
    }

    fn cells(&self) -> [String; 3] {
        let policy = match self.policy {
            PolicyVerdict::Allow => "allow",
            PolicyVerdict::Ask => "ask",
            PolicyVerdict::Deny => "deny",
        };
        let description = first_line(self.description.or(self.title));
        [visible(&self.name).into_owned(), policy.to_owned(), description]
    }
}
