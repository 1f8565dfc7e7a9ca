//! Removes the directories of ended tasks, and deleted workflows. `crate::retention` decides which
//! are old enough.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use belljar_contract::{RunId, RunStatus};
use belljar_paths::owner::is_private_directory;
use belljar_store::RunSummary;
use belljar_workflow::{SqliteWorkflowStore, WorkflowStoreError};

use super::{ProjectWorkflowError, ProjectWorkflows, code};
use crate::{executor::is_owner_this_process, is_owner_alive, now_ms};

/// How deep directories are made accessible for removal.
const DEPTH: usize = 64;

impl ProjectWorkflows {
    /// Deletes an ended workflow with everything stored for it. Its forks stay.
    pub async fn forget(&self, id: &str) -> Result<(), ProjectWorkflowError> {
        let performer = &self.inner.performer;
        let forgotten = forget_workflow(&performer.store, id, &performer.options.scratch).await;
        forgotten.map_err(belljar_workflow::WorkflowError::from)?;
        // Its values must not stay in the log; this fails if another process is reading the log.
        let _ = performer.store.project_store().empty_log().await;
        Ok(())
    }
}

/// Deletes an ended workflow with the runs of its code and all values without other references, and
/// removes the directories of its tasks.
pub async fn forget_workflow(
    store: &SqliteWorkflowStore,
    id: &str,
    scratch: &Path,
) -> Result<(), WorkflowStoreError> {
    let left = left_behind(store, id, scratch).await?;
    let records = store.project_store();
    let keys = records.workflow_intents(id).await?;
    let named = keys.iter().flat_map(|key| code::runs_of_intent(key)).collect();
    let is_under_way = |run: &RunSummary| {
        let is_held = is_owner_alive(&run.owner) || is_owner_this_process(&run.owner);
        run.status == RunStatus::Running && run.finished_ms.is_none() && is_held
    };
    let mut runs = records.runs_named(named).await?;
    runs.retain(|run| !is_under_way(run));
    let runs = runs.into_iter().map(|run| run.id).collect();
    records.forget_workflow(id, runs, now_ms()).await?;
    remove(left).await;
    Ok(())
}

/// Removes the directories of ended tasks of a workflow.
pub(super) async fn sweep(store: &SqliteWorkflowStore, id: &str, scratch: &Path) {
    match left_behind(store, id, scratch).await {
        Ok(left) => remove(left).await,
        Err(error) => tracing::warn!(%error, id, "cannot remove files of ended tasks"),
    }
}

/// The directories of tasks whose outcome is durable; they are not needed again.
async fn left_behind(
    store: &SqliteWorkflowStore,
    id: &str,
    scratch: &Path,
) -> Result<Vec<PathBuf>, WorkflowStoreError> {
    // A directory that others can write to may contain anything.
    if !is_private_directory(scratch) {
        return Ok(Vec::new());
    }
    let names = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let there: Vec<String> = match fs::read_dir(scratch) {
        Ok(entries) => entries.filter_map(names).collect(),
        Err(_) => return Ok(Vec::new()),
    };
    if there.is_empty() {
        return Ok(Vec::new());
    }
    let keys = store.project_store().closed_workflow_intents(id).await?;
    let runs: BTreeSet<RunId> = keys.iter().flat_map(|key| code::runs_of_intent(key)).collect();
    let mine = there.into_iter().filter(|name| runs.contains(name.as_str()));
    Ok(mine.map(|name| scratch.join(name)).collect())
}

async fn remove(directories: Vec<PathBuf>) {
    if directories.is_empty() {
        return;
    }
    let removed = tokio::task::spawn_blocking(move || {
        for directory in directories {
            if fs::remove_dir_all(&directory).is_err() {
                open_up(&directory, 0);
                let _ = fs::remove_dir_all(&directory);
            }
        }
    });
    // The next ended workflow retries it.
    let _ = removed.await;
}

/// Makes directories accessible that code has closed.
fn open_up(directory: &Path, depth: usize) {
    // Links are not followed.
    if !fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir()) {
        return;
    }
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if depth < DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path(), depth + 1);
        }
    }
}
