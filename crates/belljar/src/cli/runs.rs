//! `belljar runs`: the durable runs of a project, and which of them can go on.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use belljar::{is_owner_alive, now_ms};
use belljar_store::{RunSummary, Store};
use serde::Serialize;

use super::{
    arguments::RunsArguments, columns::columns, look::Look, moments::ago, print_json,
    project::Project, runtime, visible::visible,
};

/// Runs that are looked through for the one whose id begins in a way.
const MOST_LOOKED_AT: u32 = 10_000;
/// A run is found by no less than this of its id.
const SHORTEST_PREFIX: usize = 4;

/// Runs the command.
pub(crate) fn runs(arguments: RunsArguments, project: &Project) -> anyhow::Result<ExitCode> {
    let store = project.existing_store()?;
    runtime()?.block_on(async {
        let found = match store {
            Some(store) => store.runs(arguments.limit, None).await?,
            None => Vec::new(),
        };
        let shown: Vec<Shown<'_>> = found.iter().map(Shown::from).collect();
        if arguments.json {
            print_json(&shown)?;
            return Ok(ExitCode::SUCCESS);
        }
        if shown.is_empty() {
            writeln!(io::stderr(), "no durable runs here yet: belljar run --durable …")?;
            return Ok(ExitCode::SUCCESS);
        }
        let rows: Vec<[String; 5]> = shown.iter().map(row).collect();
        let table =
            columns(["RUN", "STATUS", "LANGUAGE", "STARTED", "BY"], &rows, Look::of_stdout());
        io::stdout().write_all(table.as_bytes())?;
        if let Some(run) = shown.iter().find(|run| run.resumable) {
            writeln!(
                io::stderr(),
                "go on with one that was interrupted: belljar resume {}",
                run.id
            )?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// A run as JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    id: &'a str,
    status: &'a str,
    /// Whether `belljar resume` would make it go on.
    resumable: bool,
    language: &'a str,
    caller: &'a str,
    started_ms: i64,
    finished_ms: Option<i64>,
}

impl<'a> From<&'a RunSummary> for Shown<'a> {
    fn from(run: &'a RunSummary) -> Self {
        let is_running = run.status == "running" && is_owner_alive(&run.owner);
        let has_ended = run.finished_ms.is_some();
        // Who was killed had no time to write that down.
        let was_killed = run.status == "running" && !is_running;
        Self {
            id: &run.id,
            status: if was_killed { "interrupted" } else { &run.status },
            resumable: run.durable && !is_running && !has_ended,
            language: &run.language,
            caller: &run.caller,
            started_ms: run.started_ms,
            finished_ms: run.finished_ms,
        }
    }
}

fn row(run: &Shown<'_>) -> [String; 5] {
    [
        run.id.to_owned(),
        run.status.to_owned(),
        run.language.to_owned(),
        ago(run.started_ms, now_ms()),
        visible(run.caller).into_owned(),
    ]
}

/// The id of the run a person means by the beginning of it.
pub(crate) async fn find_run(store: &Store, id: &str) -> anyhow::Result<String> {
    if store.run(id).await?.is_some() {
        return Ok(id.to_owned());
    }
    let bare = id.strip_prefix("run_").unwrap_or(id);
    let unknown = || format!("there is no run {id} in this project; `belljar runs` lists them");
    if bare.len() < SHORTEST_PREFIX {
        bail!(unknown());
    }
    let runs = store.runs(MOST_LOOKED_AT, None).await?;
    let is_meant = |run: &&RunSummary| {
        run.id.strip_prefix("run_").is_some_and(|known| known.starts_with(bare))
    };
    let mut found = runs.iter().filter(is_meant);
    let first = found.next().with_context(unknown)?;
    if found.next().is_some() {
        bail!("several runs begin with {id}: write more of the id");
    }
    Ok(first.id.clone())
}
