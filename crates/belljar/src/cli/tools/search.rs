//! `belljar tools search`: finds tools by purpose.

use std::{io, io::Write as _, process::ExitCode};

use belljar_tools::{Hit, ToolQuery};
use serde_json::{Value, json};

use super::{ToolAccess, first_line, print_failures};
use crate::cli::{
    arguments::ToolsSearchArguments,
    print_json,
    terminal::{columns::columns, style::TextStyle, visible::visible},
};

/// From this share of the best score on, similar meaning is named as a reason.
const CLOSE: f64 = 0.7;

/// Runs `belljar tools search`.
pub(super) async fn search(
    arguments: &ToolsSearchArguments,
    access: &ToolAccess,
) -> anyhow::Result<ExitCode> {
    let (catalogue, failures) = access.catalogue(None).await;
    let wanted = ToolQuery {
        server_hint: arguments.server.clone(),
        ..ToolQuery::new(&arguments.intent, arguments.k)
    };
    let hits = access.bridge.find(&catalogue, wanted).await;
    if arguments.json {
        print_json(&hits.iter().map(as_json).collect::<Vec<_>>())?;
    } else if hits.is_empty() {
        writeln!(io::stderr(), "no matching tools")?;
    } else {
        let rows: Vec<[String; 4]> = hits.iter().map(cells).collect();
        let table = columns(["SCORE", "NAME", "WHY", "DESCRIPTION"], &rows, TextStyle::of_stdout());
        io::stdout().write_all(table.as_bytes())?;
    }
    print_failures(&failures)?;
    let is_useless = catalogue.tools().is_empty() && !failures.is_empty();
    Ok(if is_useless { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn as_json(hit: &Hit) -> Value {
    json!({
        "name": hit.tool.qualified_name(),
        "description": hit.tool.description,
        "score": hit.score,
        "words": hit.words,
        "meaning": hit.meaning,
        "why": hit.why,
    })
}

fn cells(hit: &Hit) -> [String; 4] {
    let name = hit.tool.qualified_name();
    let description = hit.tool.description.as_deref().or(hit.tool.title.as_deref());
    let score = format!("{:.2}", hit.score);
    [score, visible(&name).into_owned(), why(hit), first_line(description)]
}

/// The words that the tool shares with the intent, and how close its meaning is.
fn why(hit: &Hit) -> String {
    let mut reasons: Vec<String> =
        hit.why.iter().take(3).map(|word| visible(word).into_owned()).collect();
    if hit.meaning >= CLOSE || reasons.is_empty() {
        reasons.push(format!("meaning {:.0} %", hit.meaning * 100.0));
    }
    reasons.join(", ")
}
