//! `belljar workflow`: durable graphs of tools, code and decisions.

mod board;
mod command;
mod decision_prompt;
mod event_line;
mod file;
mod fork;
mod graph;
mod host;
mod pause;
mod run;
mod show;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use belljar_project::{
    Project,
    config::{ConfigLocations, ProjectSettings},
};
use belljar_store::Store;
use belljar_workflow::{
    SqliteWorkflowStore, WorkflowStore as _, Workflows, workflow_store::WorkflowFilter,
};

use super::{arguments::WorkflowSubcommand, project::existing_store, runtime};

/// Workflows that are searched for an id prefix.
const MOST_LOOKED_AT: u32 = 10_000;
/// Shortest prefix of an id.
const SHORTEST_PREFIX: usize = 4;

/// Runs `belljar workflow`: checks, runs, watches and commands workflows of the project.
pub(crate) fn workflow(
    command: &WorkflowSubcommand,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
) -> anyhow::Result<ExitCode> {
    let project = Project::find(locations, settings)?;
    let context = host::WorkflowContext { settings, locations, project: &project };
    runtime()?.block_on(async {
        match command {
            WorkflowSubcommand::Run(arguments) => run::run(arguments, context).await,
            WorkflowSubcommand::Resume(arguments) => run::resume(arguments, context).await,
            WorkflowSubcommand::Show(arguments) => show::show(arguments, &project).await,
            WorkflowSubcommand::Events(arguments) => show::events(arguments, &project).await,
            WorkflowSubcommand::List(arguments) => show::list(arguments, &project).await,
            WorkflowSubcommand::Command(arguments) => {
                command::send_command(arguments, context).await
            }
            WorkflowSubcommand::Rollback(arguments) => command::rollback(arguments, context).await,
            WorkflowSubcommand::Fork(arguments) => fork::fork(arguments, &project).await,
            WorkflowSubcommand::Delete(arguments) => fork::delete(arguments, context).await,
            WorkflowSubcommand::Validate(arguments) => file::validate(arguments, &project).await,
        }
    })
}

/// The stored workflows of a project.
fn stored_workflows(project: &Project) -> anyhow::Result<Workflows<SqliteWorkflowStore>> {
    let store: Option<Store> = existing_store(project)?;
    let store = store.context("this project has no workflows yet: belljar workflow run FILE")?;
    Ok(Workflows::new(std::sync::Arc::new(SqliteWorkflowStore::new(store))))
}

/// Finds a workflow by its id or a prefix.
async fn find_workflow(
    workflows: &Workflows<SqliteWorkflowStore>,
    given: &str,
) -> anyhow::Result<String> {
    let store = workflows.store();
    if store.find(given).await?.is_some() {
        return Ok(given.to_owned());
    }
    let mut found = Vec::new();
    if given.len() >= SHORTEST_PREFIX {
        let rows = store.list(WorkflowFilter::default(), None, MOST_LOOKED_AT).await?;
        found.extend(rows.into_iter().map(|row| row.id).filter(|id| id.starts_with(given)));
    }
    match (found.pop(), found.len()) {
        (Some(id), 0) => Ok(id),
        (Some(_), more) => bail!("{} workflows start with {given}: give more of the id", more + 1),
        (None, _) => bail!(
            "there is no workflow {given} in this project; `belljar workflow list` lists them"
        ),
    }
}
