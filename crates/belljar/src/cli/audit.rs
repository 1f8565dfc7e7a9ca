//! `belljar audit`: which tools were called, by whom, and how each call was decided.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use belljar_project::{Project, config::quantity::milliseconds, now_ms};
use belljar_store::{AuditFilter, AuditRow, Store};
use belljar_tools::Glob;

use super::{
    arguments::AuditArguments,
    print_json,
    project::existing_store,
    runs::find_run,
    runtime,
    terminal::{columns::columns, elapsed::ago, style::TextStyle, visible::visible},
};

/// Rows that are searched for a pattern.
const MOST_LOOKED_AT: u32 = 100_000;

/// Runs `belljar audit`: prints the recorded tool calls and decisions.
pub(crate) fn audit(arguments: &AuditArguments, project: &Project) -> anyhow::Result<ExitCode> {
    let store = existing_store(project)?;
    runtime()?.block_on(async {
        let rows = match &store {
            Some(store) => find(arguments, store).await?,
            None => Vec::new(),
        };
        if arguments.json {
            print_json(&rows)?;
            return Ok(ExitCode::SUCCESS);
        }
        if rows.is_empty() {
            writeln!(io::stderr(), "no tool has been called in this project")?;
            return Ok(ExitCode::SUCCESS);
        }
        let headings = ["WHEN", "TOOL", "DECISION", "OUTCOME", "TOOK", "BY", "RUN"];
        let cells: Vec<[String; 7]> = rows.iter().map(cells).collect();
        let table = columns(headings, &cells, TextStyle::of_stdout());
        io::stdout().write_all(table.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn find(arguments: &AuditArguments, store: &Store) -> anyhow::Result<Vec<AuditRow>> {
    // Runs without a journal have rows too.
    let run_id = match &arguments.run {
        Some(id) => Some(find_run(store, id).await.unwrap_or_else(|_| id.as_str().into())),
        None => None,
    };
    let glob = arguments.tool.as_deref().map(Glob::new);
    let (tool, limit) = match &glob {
        Some(glob) if !glob.is_exact() => (None, MOST_LOOKED_AT),
        exact => (exact.as_ref().map(|glob| glob.as_str().to_owned()), arguments.limit),
    };
    let mut rows = store.audit_rows(AuditFilter { run_id, tool }, limit).await?;
    rows.retain(|row| glob.as_ref().is_none_or(|glob| glob.matches(&row.tool)));
    rows.truncate(arguments.limit as usize);
    Ok(rows)
}

fn cells(row: &AuditRow) -> [String; 7] {
    [
        ago(row.started_ms, now_ms()),
        visible(&row.tool).into_owned(),
        row.decision.clone(),
        row.outcome.clone(),
        milliseconds(row.duration_ms),
        visible(&row.caller).into_owned(),
        row.run_id.to_string(),
    ]
}
