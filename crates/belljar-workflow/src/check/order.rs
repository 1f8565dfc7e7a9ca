//! The order that dependencies give to the tasks of one list.

use std::collections::{BTreeMap, BTreeSet};

use crate::dag::Task;

/// The dependencies of a list of tasks.
pub(super) struct DependencyOrder<'a> {
    after: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> DependencyOrder<'a> {
    pub(super) fn of(tasks: &'a [Task]) -> Self {
        let ids: BTreeSet<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
        let mut after: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for task in tasks {
            let deps = task.depends_on.iter().map(String::as_str);
            let deps = deps.filter(|dep| ids.contains(dep) && *dep != task.id);
            after.entry(&task.id).or_default().extend(deps);
        }
        Self { after }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.after.contains_key(id)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.after.keys().map(|id| (*id).to_owned()).collect()
    }

    /// The direct dependencies of a task.
    pub(super) fn direct(&self, id: &str) -> BTreeSet<&'a str> {
        self.after.get(id).into_iter().flatten().copied().collect()
    }

    /// Whether one task has ended when another starts.
    pub(super) fn comes_before(&self, one: &str, other: &str) -> bool {
        let direct = self.after.get(other).is_some_and(|deps| deps.contains(&one));
        direct || (self.has(one) && self.before(other).contains(one))
    }

    /// All tasks that have ended when a task starts.
    pub(super) fn before(&self, id: &str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&str> = self.after.get(id).cloned().unwrap_or_default();
        while let Some(id) = next.pop() {
            if found.insert(id) {
                next.extend(self.after.get(id).into_iter().flatten());
            }
        }
        found
    }

    /// A cycle, from a task back to itself, if there is one.
    pub(super) fn cycle(&self) -> Option<Vec<&'a str>> {
        let mut left = self.in_circles();
        // Every task left depends on another one left: following them leads round a cycle.
        let mut walked: Vec<&str> = Vec::new();
        let mut here = left.pop_first()?;
        left.insert(here);
        loop {
            if let Some(start) = walked.iter().position(|seen| *seen == here) {
                let mut cycle = walked.split_off(start);
                cycle.push(here);
                return Some(cycle);
            }
            walked.push(here);
            here = self.after.get(here)?.iter().find(|dep| left.contains(*dep))?;
        }
    }

    /// The tasks that remain after removing all that can run in some order.
    fn in_circles(&self) -> BTreeSet<&'a str> {
        let mut waits: BTreeMap<&str, usize> = BTreeMap::new();
        let mut wanted_by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (id, deps) in &self.after {
            waits.insert(id, deps.len());
            for dep in deps {
                wanted_by.entry(dep).or_default().push(id);
            }
        }
        let mut free: Vec<&str> =
            waits.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        let mut left: BTreeSet<&str> = self.after.keys().copied().collect();
        while let Some(id) = free.pop() {
            left.remove(id);
            for other in wanted_by.get(id).into_iter().flatten() {
                if let Some(count) = waits.get_mut(other) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(other);
                    }
                }
            }
        }
        left
    }
}
