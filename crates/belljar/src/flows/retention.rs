//! What goes when it is needed no more: the directories of tasks that have ended, and workflows that
//! are deleted. Which are old enough is decided in `crate::retention`.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use belljar_flow::{Embedded, EngineError};
use belljar_paths::owner::is_private_directory;
use belljar_store::RunSummary;

use super::{Flows, FlowsError, code};
use crate::{executor::is_owner_this_process, is_owner_alive, now_ms};

/// The status of a run that somebody runs.
const RUNNING: &str = "running";
/// How deep directories are made accessible so that they can be removed.
const DEPTH: usize = 64;

impl Flows {
    /// Forgets a workflow that has ended, with all that is kept of it. What was forked from it stays.
    pub async fn forget(&self, id: &str) -> Result<(), FlowsError> {
        let hands = &self.shared.hands;
        let forgotten = forget_workflow(&hands.engine, id, &hands.options.scratch).await;
        forgotten.map_err(belljar_flow::WorkflowError::from)?;
        // What it had is not in the log either then, unless somebody is reading it just now.
        let _ = hands.engine.store().empty_log().await;
        Ok(())
    }
}

/// Forgets a workflow that has ended, with the runs of its code and the values nothing else refers to,
/// and removes what its tasks left in the directory for that.
pub async fn forget_workflow(
    engine: &Embedded,
    id: &str,
    scratch: &Path,
) -> Result<(), EngineError> {
    let left = left_behind(engine, id, scratch).await?;
    let store = engine.store();
    let keys = store.workflow_intents(id).await?;
    let named = keys.iter().flat_map(|key| code::runs_of_intent(key)).collect();
    let is_under_way = |run: &RunSummary| {
        let is_held = is_owner_alive(&run.owner) || is_owner_this_process(&run.owner);
        run.status == RUNNING && run.finished_ms.is_none() && is_held
    };
    let mut runs = store.runs_named(named).await?;
    runs.retain(|run| !is_under_way(run));
    let runs = runs.into_iter().map(|run| run.id).collect();
    store.forget_workflow(id, runs, now_ms()).await?;
    remove(left).await;
    Ok(())
}

/// Removes what tasks of a workflow that have ended left behind.
pub(super) async fn sweep(engine: &Embedded, id: &str, scratch: &Path) {
    match left_behind(engine, id, scratch).await {
        Ok(left) => remove(left).await,
        Err(error) => tracing::warn!(%error, id, "files of ended tasks are not removed"),
    }
}

/// The directories of tasks whose outcome is durable: nobody looks into them again.
async fn left_behind(
    engine: &Embedded,
    id: &str,
    scratch: &Path,
) -> Result<Vec<PathBuf>, EngineError> {
    // One that is not ours alone may have anything in it.
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
    let keys = engine.store().closed_workflow_intents(id).await?;
    let runs: BTreeSet<String> = keys.iter().flat_map(|key| code::runs_of_intent(key)).collect();
    let mine = there.into_iter().filter(|name| runs.contains(name));
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
    // It is tried again with the next workflow that ends.
    let _ = removed.await;
}

/// Lets the owner into directories that code has closed.
fn open_up(directory: &Path, depth: usize) {
    // Nothing that a link leads to.
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
