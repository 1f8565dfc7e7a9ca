//! The workflow's files: a manifest that tasks see a version of and change by deltas.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::WorkflowFiles;
use crate::effect::FileEntry;

/// The newest version of the files, and the older ones that running tasks still see.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct FileVersions {
    version: u64,
    now: WorkflowFiles,
    /// The version in which each path changed last.
    changed: BTreeMap<String, u64>,
    #[serde(with = "super::parts::pairs")]
    held: BTreeMap<u64, HeldVersion>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct HeldVersion {
    users: u32,
    /// `None` while it is the newest version.
    files: Option<WorkflowFiles>,
}

impl FileVersions {
    /// A first version that holds these files.
    pub(crate) fn of(now: WorkflowFiles) -> Self {
        Self { now, ..Self::default() }
    }

    /// The newest version of the files.
    pub(crate) fn now(&self) -> &WorkflowFiles {
        &self.now
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The size of all versions as JSON, estimated.
    pub(crate) fn bytes(&self) -> usize {
        let held = self.held.values().filter_map(|held| held.files.as_ref());
        let all = held.chain([&self.now]).flatten();
        all.map(|(path, entry)| match entry {
            FileEntry::File { blob, .. } => path.len() + blob.len() + 50,
            FileEntry::Link { to } => path.len() + to.len() + 50,
            FileEntry::Directory { .. } => path.len() + 50,
        })
        .sum()
    }

    /// A version that is still in use.
    pub(crate) fn at(&self, version: u64) -> Option<&WorkflowFiles> {
        if version == self.version {
            return Some(&self.now);
        }
        self.held.get(&version)?.files.as_ref()
    }

    /// Keeps the newest version for a task, and returns its number.
    pub(crate) fn hold(&mut self) -> u64 {
        self.held.entry(self.version).or_default().users += 1;
        self.version
    }

    /// Ends one use of a version; the last use drops it.
    pub(crate) fn release(&mut self, version: u64) {
        let Some(held) = self.held.get_mut(&version) else { return };
        held.users = held.users.saturating_sub(1);
        if held.users == 0 {
            self.held.remove(&version);
        }
    }

    /// Applies the changes of a task that saw version `seen`. Returns the paths that other tasks
    /// changed meanwhile, and those removed because a file cannot be a directory as well.
    pub(crate) fn merge(
        &mut self,
        seen: Option<u64>,
        delta: BTreeMap<String, Option<FileEntry>>,
    ) -> Vec<String> {
        if delta.is_empty() {
            return Vec::new();
        }
        if let Some(held) = self.held.get_mut(&self.version) {
            held.files = Some(self.now.clone());
        }
        self.version += 1;
        let mut conflicts = BTreeSet::new();
        // Removals go first: a directory may have become a file.
        let (gone, there): (Vec<_>, Vec<_>) =
            delta.into_iter().partition(|(_, entry)| entry.is_none());
        for (path, entry) in gone.into_iter().chain(there) {
            let since = self.changed.insert(path.clone(), self.version);
            if since.zip(seen).is_some_and(|(since, seen)| since > seen) {
                conflicts.insert(path.clone());
            }
            match entry {
                Some(entry) => {
                    conflicts.extend(self.make_room(&path, &entry));
                    self.now.insert(path, entry);
                }
                None => drop(self.now.remove(&path)),
            }
        }
        conflicts.into_iter().collect()
    }

    /// Removes entries that cannot exist beside a new one: files and links above it, and everything
    /// beneath it unless it is a directory. Returns their paths.
    fn make_room(&mut self, path: &str, entry: &FileEntry) -> Vec<String> {
        let is_directory = |entry: &FileEntry| matches!(entry, FileEntry::Directory { .. });
        let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        let above = above.filter(|above| self.now.get(*above).is_some_and(|e| !is_directory(e)));
        let mut dropped: Vec<String> = above.map(str::to_owned).collect();
        if !is_directory(entry) {
            let inside = format!("{path}/");
            let beneath = self.now.range(inside.clone()..).map(|(path, _)| path);
            dropped.extend(beneath.take_while(|path| path.starts_with(&inside)).cloned());
        }
        for path in &dropped {
            self.now.remove(path);
            self.changed.insert(path.clone(), self.version);
        }
        dropped
    }
}
