//! `belljar runs`: lists the durable runs of a project, and which can be resumed.

use std::{io, io::Write as _, process::ExitCode};

use anyhow::{Context as _, bail};
use belljar_contract::{RecordedWork, RunId, RunStatus};
use belljar_project::{Project, is_owner_alive, now_ms, run_status};
use belljar_store::{Lease, RunSummary, Store, StoreError};
use serde::Serialize;

use super::{
    arguments::{RunsArguments, RunsCommand, RunsRmArguments},
    print_json,
    project::existing_store,
    runtime,
    terminal::{columns::columns, elapsed::ago, style::TextStyle, visible::visible},
};

/// Runs that are searched for an id prefix.
const MOST_LOOKED_AT: u32 = 10_000;
/// Shortest prefix of an id.
const SHORTEST_PREFIX: usize = 4;

/// Runs `belljar runs`: lists or deletes the durable runs of the project.
pub(crate) fn runs(arguments: &RunsArguments, project: &Project) -> anyhow::Result<ExitCode> {
    let store = existing_store(project)?;
    if let Some(RunsCommand::Rm(arguments)) = &arguments.command {
        return runtime()?.block_on(remove(arguments, store));
    }
    runtime()?.block_on(async {
        let found = match store {
            Some(store) => store.runs(arguments.limit, None).await?,
            None => Vec::new(),
        };
        let shown: Vec<RunView<'_>> = found.iter().map(RunView::from).collect();
        if arguments.json {
            print_json(&shown)?;
            return Ok(ExitCode::SUCCESS);
        }
        if shown.is_empty() {
            writeln!(
                io::stderr(),
                "this project has no durable runs yet: belljar run --durable …"
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        let rows: Vec<[String; 5]> = shown.iter().map(row).collect();
        let table =
            columns(["RUN", "STATUS", "LANGUAGE", "STARTED", "BY"], &rows, TextStyle::of_stdout());
        io::stdout().write_all(table.as_bytes())?;
        if let Some(run) = shown.iter().find(|run| run.resumable) {
            writeln!(io::stderr(), "to resume an interrupted run: belljar resume {}", run.id)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Runs `belljar runs rm`.
async fn remove(arguments: &RunsRmArguments, store: Option<Store>) -> anyhow::Result<ExitCode> {
    let store = store.context("there are no runs in this project")?;
    for given in &arguments.ids {
        let id = find_run(&store, given).await?;
        let run = store.run(&id).await?.with_context(|| format!("there is no run {id}"))?.summary;
        if run.status == RunStatus::Running
            && run.finished_ms.is_none()
            && is_owner_alive(&run.owner)
        {
            let process = run.owner.split(':').next().unwrap_or_default();
            bail!("run {id} is still running in process {process}: end it first");
        }
        let seen = Lease { run_id: id.clone(), fence: run.fence };
        match store.delete_run(seen).await {
            Ok(_) => writeln!(io::stderr(), "deleted {id}")?,
            Err(StoreError::Fenced { .. }) => bail!("run {id} has just been resumed: end it first"),
            Err(error) => return Err(error.into()),
        }
    }
    // Deleted values must not stay in the log; this fails if another process is reading it.
    let _ = store.empty_log().await;
    Ok(ExitCode::SUCCESS)
}

/// A run in the JSON output.
#[derive(Debug, Serialize)]
struct RunView<'a> {
    id: &'a str,
    status: RunStatus,
    /// Whether it keeps a journal.
    durable: bool,
    /// Whether `belljar resume` can continue it.
    resumable: bool,
    language: &'a RecordedWork,
    caller: &'a str,
    started_ms: i64,
    finished_ms: Option<i64>,
}

impl<'a> From<&'a RunSummary> for RunView<'a> {
    fn from(run: &'a RunSummary) -> Self {
        let is_running = run.status == RunStatus::Running && is_owner_alive(&run.owner);
        let has_ended = run.finished_ms.is_some();
        Self {
            id: &run.id,
            status: run_status(run),
            durable: run.durable,
            resumable: run.durable && !is_running && !has_ended,
            language: &run.work,
            caller: &run.caller,
            started_ms: run.started_ms,
            finished_ms: run.finished_ms,
        }
    }
}

fn row(run: &RunView<'_>) -> [String; 5] {
    [
        run.id.to_owned(),
        run.status.to_string(),
        run.language.to_string(),
        ago(run.started_ms, now_ms()),
        visible(run.caller).into_owned(),
    ]
}

/// Finds a run by its id or a prefix.
pub(crate) async fn find_run(store: &Store, id: &str) -> anyhow::Result<RunId> {
    let exact = RunId::from(id);
    if store.run(&exact).await?.is_some() {
        return Ok(exact);
    }
    let bare = id.strip_prefix(RunId::PREFIX).unwrap_or(id);
    let unknown = || format!("there is no run {id} in this project; `belljar runs` lists them");
    if bare.len() < SHORTEST_PREFIX {
        bail!(unknown());
    }
    let runs = store.runs(MOST_LOOKED_AT, None).await?;
    let is_meant = |run: &&RunSummary| {
        run.id.strip_prefix(RunId::PREFIX).is_some_and(|known| known.starts_with(bare))
    };
    let mut found = runs.iter().filter(is_meant);
    let first = found.next().with_context(unknown)?;
    if found.next().is_some() {
        bail!("several runs start with {id}: give more of the id");
    }
    Ok(first.id.clone())
}
