//! The runs or workflows that this process works on. Each is worked on once at a time.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The ids of active runs or workflows. All clones share one set.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActiveIds(Arc<Mutex<BTreeSet<String>>>);

impl ActiveIds {
    pub(crate) fn has(&self, id: &str) -> bool {
        self.lock().contains(id)
    }

    /// Adds an id until the guard is dropped; `None` if the id is active already.
    pub(crate) fn enter(&self, id: &str) -> Option<ActiveGuard> {
        let is_new = self.lock().insert(id.to_owned());
        is_new.then(|| ActiveGuard { all: self.clone(), id: id.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An id is active as long as its guard exists.
#[derive(Debug)]
pub(crate) struct ActiveGuard {
    all: ActiveIds,
    id: String,
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        self.all.lock().remove(&self.id);
    }
}
