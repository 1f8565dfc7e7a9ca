//! Whose a durable run is: this executor's, another process's that lives, or nobody's.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use belljar_store::RunSummary;

use crate::owner::{is_owner_alive, is_owner_this_process};

/// The status of a run that some process is at.
pub(super) const RUNNING: &str = "running";
/// The status of a run that its host could not go on with.
pub(super) const INTERRUPTED: &str = "interrupted";

/// The durable runs this executor and its clones are at.
#[derive(Debug, Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<BTreeSet<String>>>);

impl UnderWay {
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// One more, until the guard is dropped; nothing if it is there.
    pub(super) fn enter(&self, id: &str) -> Option<Entered> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        is_new.then(|| Entered { all: self.clone(), id: id.to_owned() })
    }
}

/// A run is under way as long as this is there.
#[derive(Debug)]
pub(super) struct Entered {
    all: UnderWay,
    id: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Where a run is, for those who look on. A host that was killed had no time to write that down.
pub fn run_status(run: &RunSummary) -> &str {
    let is_had = is_owner_alive(&run.owner) || is_owner_this_process(&run.owner);
    if run.status == RUNNING && !is_had { INTERRUPTED } else { &run.status }
}
