//! `belljar tools search`: tools by what they are for.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use belljar_tools::{Hit, search as find};
use serde_json::{Value, json};

use super::{Desk, first_line, tell_failures};
use crate::cli::{
    arguments::ToolsSearchArguments, columns::columns, look::Look, print_json, visible::visible,
};

/// Runs the command.
pub(super) async fn search(
    arguments: &ToolsSearchArguments,
    desk: &Desk,
) -> anyhow::Result<ExitCode> {
    let (catalogue, failures) = desk.catalogue(None).await;
    let hits = find(&catalogue, &arguments.intent, arguments.k);
    if arguments.json {
        print_json(&hits.iter().map(as_json).collect::<Vec<_>>())?;
    } else if hits.is_empty() {
        writeln!(io::stderr(), "no tool fits that")?;
    } else {
        let rows: Vec<[String; 2]> = hits.iter().map(cells).collect();
        let table = columns(["NAME", "DESCRIPTION"], &rows, Look::of_stdout());
        io::stdout().write_all(table.as_bytes())?;
    }
    tell_failures(&failures)?;
    let is_useless = catalogue.tools().is_empty() && !failures.is_empty();
    Ok(if is_useless { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn as_json(hit: &Hit<'_>) -> Value {
    json!({
        "name": hit.tool.qualified_name(),
        "description": hit.tool.description,
        "score": hit.score,
        "why": hit.why,
    })
}

fn cells(hit: &Hit<'_>) -> [String; 2] {
    let name = hit.tool.qualified_name();
    let description = hit.tool.description.as_deref().or(hit.tool.title.as_deref());
    [visible(&name).into_owned(), first_line(description)]
}
