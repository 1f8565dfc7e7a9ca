//! `belljar tools describe` and `belljar tools types`: show how code calls the tools.

use std::{io, io::Write as _, process::ExitCode};

use anyhow::bail;
use belljar_tools::{Tool, ToolGrants, python, typescript};
use serde_json::json;

use super::{ToolAccess, print_failures, print_fault};
use crate::cli::{
    arguments::{ToolsDescribeArguments, ToolsTypesArguments, TypesLanguage},
    print_json,
    terminal::{style::TextStyle, visible::for_stream},
};

/// Runs `belljar tools describe`.
pub(super) async fn describe(
    arguments: &ToolsDescribeArguments,
    access: &ToolAccess,
) -> anyhow::Result<ExitCode> {
    let tool = match access.waiting(access.bridge.tool(&arguments.name)).await {
        Ok(tool) => tool,
        Err(fault) => {
            print_fault(&fault)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let decision = access.bridge.verdict(&tool, &ToolGrants::default());
    if arguments.json {
        print_json(&json!({
            "name": tool.qualified_name(),
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations,
            "policy": decision.verdict,
            "reason": decision.reason,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = access.bridge.describe_tool(&tool).await;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", tool.qualified_name())?;
    writeln!(stdout, "{}", for_stream(text.trim_end(), TextStyle::of_stdout()))?;
    let verdict = format!("{:?}", decision.verdict).to_lowercase();
    writeln!(stdout, "Policy: {verdict}, because {}", decision.reason)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `belljar tools types`.
pub(super) async fn types(
    arguments: &ToolsTypesArguments,
    access: &ToolAccess,
) -> anyhow::Result<ExitCode> {
    let known = access.bridge.servers();
    if let Some(other) = arguments.servers.iter().find(|server| !known.contains(server)) {
        bail!("there is no MCP server `{other}`; configured servers: {}", known.join(", "));
    }
    let only = match arguments.servers.as_slice() {
        [one] => Some(one.as_str()),
        _ => None,
    };
    let (catalogue, failures) = access.catalogue(only).await;
    let shapes = access.bridge.shapes(catalogue.tools()).await;
    let is_chosen =
        |tool: &Tool| arguments.servers.is_empty() || arguments.servers.contains(&tool.server);
    let text = match arguments.language {
        TypesLanguage::Typescript => typescript(&catalogue, is_chosen, &shapes),
        TypesLanguage::Python => python(&catalogue, is_chosen, &shapes),
    };
    io::stdout().write_all(for_stream(&text, TextStyle::of_stdout()).as_bytes())?;
    print_failures(&failures)?;
    let is_useless = catalogue.tools().is_empty() && !failures.is_empty();
    Ok(if is_useless { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
