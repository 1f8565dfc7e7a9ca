//! What goes when it is needed no more: the directories of tasks that have ended, and workflows.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use belljar_flow::{DurableEngine as _, Embedded, EngineError};

use super::{Flows, FlowsError, code, files};
use crate::now_ms;

/// Workflows that are forgotten at once.
const SOME: u32 = 100;
/// How deep directories are made accessible so that they can be removed.
const DEPTH: usize = 64;

impl Flows {
    /// Forgets a workflow that has ended, with all that is kept of it. What was forked from it stays.
    pub async fn forget(&self, id: &str) -> Result<(), FlowsError> {
        let hands = &self.shared.hands;
        let forgotten = forget_workflow(&hands.engine, id, &hands.options.scratch).await;
        Ok(forgotten.map_err(belljar_flow::WorkflowError::from)?)
    }

    /// Forgets workflows that ended longer ago than the operator keeps them; how many.
    pub async fn forget_old(&self) -> Result<usize, FlowsError> {
        let Some(keep) = self.shared.hands.options.keep else { return Ok(0) };
        let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let before = now_ms().saturating_sub(keep_ms);
        let store = self.shared.hands.engine.store();
        let mut forgotten = 0;
        loop {
            let old = store.flows_over_since(before, SOME).await;
            let old = old.map_err(EngineError::from).map_err(belljar_flow::WorkflowError::from)?;
            let mut gone = 0;
            for id in &old {
                // One that somebody is at is left for another time.
                gone += usize::from(self.forget(id).await.is_ok());
            }
            forgotten += gone;
            if gone == 0 || old.len() < SOME as usize {
                return Ok(forgotten);
            }
        }
    }
}

/// Forgets a workflow that has ended, and removes what its tasks left in the directory for that.
pub async fn forget_workflow(
    engine: &Embedded,
    id: &str,
    scratch: &Path,
) -> Result<(), EngineError> {
    let left = left_behind(engine, id, scratch).await?;
    engine.forget(id, now_ms()).await?;
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
    if !files::is_private(scratch) {
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
    let keys = engine.store().settled_flow_intents(id).await?;
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
