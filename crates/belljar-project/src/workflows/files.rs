//! The files of a workflow: written for a code task, collected after it, imported and exported.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use belljar_contract::{CommitExecutable, RunId};
use belljar_jail::workspace::WithheldReason;
use belljar_paths::{
    names::{GIT, executed_in, is_repository, is_same},
    owner::is_private_directory,
};
use belljar_store::RunRecord;
use belljar_tools::crash_point;
use belljar_workflow::{
    FileEntry, Job, TaskEnding, TaskFailure, TaskOutcome, WorkflowError, WorkflowFiles,
    WorkflowStore as _,
};

use super::{
    ExportReport, ProjectWorkflowError,
    directory::{DirectoryEntry, WorkflowDirectory},
    performer::TaskPerformer,
};
use crate::now_ms;

/// Largest total size of file names and link targets, which are part of the state.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Event of a run: the changes that it made to the workflow's files.
const COLLECTED: &str = "files_collected";

/// Changed files by path; `None` is a deletion.
type Delta = BTreeMap<String, Option<FileEntry>>;

impl TaskPerformer {
    /// Creates the directory of a code task. If the run has ended, the directory stays as the run
    /// left it.
    pub(super) async fn lay_out(
        &self,
        job: &Job,
        run: &RunId,
        begun: Option<&RunRecord>,
    ) -> Result<Option<PathBuf>, TaskFailure> {
        let Some(files) = &job.files else { return Ok(None) };
        // A resumed run finds its files where they were.
        let directory = begun.and_then(workspace_of);
        let directory = directory.unwrap_or_else(|| self.options.scratch.join(run.as_str()));
        let root = directory.parent().unwrap_or(&directory).to_owned();
        let has_ended = begun.is_some_and(|record| record.result_json.is_some());
        let failed = |error: io::Error| {
            TaskFailure::new("files.failed", format!("cannot write the task's files: {error}"))
        };
        create_private(&root).map_err(failed)?;
        if has_ended {
            return Ok(Some(directory));
        }
        let _ = fs::remove_dir_all(&directory);
        fs::DirBuilder::new().mode(0o700).create(&directory).map_err(failed)?;
        let tree = WorkflowDirectory::open(&directory).map_err(failed)?;
        self.write_all(&tree, files).await.map_err(failed)?;
        Ok(Some(directory))
    }

    /// Links come last, so that nothing is written through them.
    async fn write_all(&self, tree: &WorkflowDirectory, files: &WorkflowFiles) -> io::Result<()> {
        for (path, entry) in files {
            match entry {
                FileEntry::File { blob, mode } => {
                    tree.write(path, &self.blob(blob).await?, *mode)?
                }
                FileEntry::Directory { mode } => tree.create_directory(path, *mode)?,
                FileEntry::Link { .. } => {}
            }
        }
        for (path, entry) in files {
            if let FileEntry::Link { to } = entry {
                tree.create_link(path, to)?;
            }
        }
        Ok(())
    }

    async fn blob(&self, id: &str) -> io::Result<Vec<u8>> {
        let found = self.store.blob(id).await.map_err(io::Error::other)?;
        found.ok_or_else(|| io::Error::other(format!("there is no blob {id}")))
    }

    /// Adds a task's file changes to its outcome; a failed task changes nothing. The directory is
    /// removed only after the changes are durable: a repeated attempt finds them with its run.
    pub(super) async fn collect(
        &self,
        (flow, run): (&str, &RunId),
        directory: &Path,
        before: &WorkflowFiles,
        mut outcome: TaskOutcome,
    ) -> TaskOutcome {
        if matches!(outcome.ending, TaskEnding::Done { .. }) {
            match self.collected(flow, run, directory, before).await {
                Ok(delta) => outcome.files = delta,
                Err(error) => {
                    let message = format!("cannot collect the task's files: {error}");
                    let failure = TaskFailure::new("files.failed", message);
                    outcome = TaskOutcome {
                        read_only: outcome.read_only,
                        ..TaskOutcome::failed(failure)
                    };
                }
            }
        }
        outcome
    }

    async fn collected(
        &self,
        flow: &str,
        run: &RunId,
        directory: &Path,
        before: &WorkflowFiles,
    ) -> io::Result<Delta> {
        let store = self.store.project_store();
        let events = store.events(0, u32::MAX, Some(run)).await.map_err(io::Error::other)?;
        if let Some(noted) = events.iter().find(|event| event.name == COLLECTED) {
            return Ok(serde_json::from_str(&noted.data_json)?);
        }
        let delta = self.changes(flow, directory, before).await?;
        let noted = serde_json::to_string(&delta)?;
        store.append_event(run, COLLECTED, noted, now_ms()).await.map_err(io::Error::other)?;
        crash_point("flow_collected");
        Ok(delta)
    }

    async fn changes(
        &self,
        flow: &str,
        directory: &Path,
        before: &WorkflowFiles,
    ) -> io::Result<Delta> {
        let tree = WorkflowDirectory::open(directory)?;
        let mut delta = Delta::new();
        let now = self.manifest(&tree, &|_| false, Some(flow)).await?;
        for path in before.keys().filter(|path| !now.contains_key(*path)) {
            delta.insert(path.clone(), None);
        }
        for (path, entry) in now {
            if before.get(&path) != Some(&entry) {
                delta.insert(path, Some(entry));
            }
        }
        Ok(delta)
    }

    /// The entries of a directory. File contents are stored as blobs, of the workflow if it exists
    /// already.
    async fn manifest(
        &self,
        tree: &WorkflowDirectory,
        skip: &(dyn Fn(&Path) -> bool + Send + Sync),
        flow: Option<&str>,
    ) -> io::Result<WorkflowFiles> {
        let limits = self.options.limits;
        let most = usize::try_from(limits.inodes).unwrap_or(usize::MAX);
        let found = tree.walk(&|path| skip(path), most)?;
        let (mut room, mut text) = (limits.disk, MAX_TEXT_BYTES);
        let mut files = WorkflowFiles::new();
        for (path, there) in found {
            let target = if let DirectoryEntry::Link { to } = &there { to.len() } else { 0 };
            text = text.checked_sub(path.len() + target).ok_or_else(|| {
                io::Error::other(format!("the file names together exceed {MAX_TEXT_BYTES} bytes"))
            })?;
            let entry = match there {
                DirectoryEntry::Link { to } => FileEntry::Link { to },
                DirectoryEntry::Directory { mode, is_empty: true } => FileEntry::Directory { mode },
                DirectoryEntry::Directory { is_empty: false, .. } => continue,
                DirectoryEntry::File { mode, bytes } => {
                    room = room.checked_sub(bytes).ok_or_else(|| {
                        io::Error::other(format!("the files together exceed {} bytes", limits.disk))
                    })?;
                    let blob = self.store_blob(flow, tree.read(&path)?).await?;
                    FileEntry::File { blob, mode }
                }
            };
            files.insert(path, entry);
        }
        Ok(files)
    }

    async fn store_blob(&self, flow: Option<&str>, bytes: Vec<u8>) -> io::Result<String> {
        match flow {
            Some(flow) => {
                self.store.put_blob(flow, bytes, now_ms()).await.map_err(io::Error::other)
            }
            None => {
                let kind = "application/octet-stream";
                let put = self.store.project_store().put_blob(bytes, kind, now_ms()).await;
                put.map_err(io::Error::other)
            }
        }
    }

    /// Reads the files of a directory, except hidden ones.
    pub(super) async fn import_files(
        &self,
        path: &Path,
    ) -> Result<WorkflowFiles, ProjectWorkflowError> {
        let failed = |source| ProjectWorkflowError::Files { path: path.to_owned(), source };
        let tree = WorkflowDirectory::open(path).map_err(failed)?;
        let hidden = self.options.hidden.clone();
        let root = path.to_owned();
        let skip = move |below: &Path| hidden.covers(&root, below);
        self.manifest(&tree, &skip, None).await.map_err(failed)
    }

    /// Keeps blobs for as long as a workflow exists.
    pub(super) async fn retain_blobs(
        &self,
        flow: &str,
        blobs: Vec<String>,
    ) -> Result<(), ProjectWorkflowError> {
        for id in blobs {
            let Some(bytes) = self.store.blob(&id).await.map_err(WorkflowError::from)? else {
                continue;
            };
            self.store.put_blob(flow, bytes, now_ms()).await.map_err(WorkflowError::from)?;
        }
        Ok(())
    }

    /// Writes the changes between two versions to a directory. A file that no longer matches the
    /// first version is refused.
    pub(super) async fn export_files(
        &self,
        versions: Versions<'_>,
        to: &Path,
        executable: &CommitExecutable,
    ) -> Result<ExportReport, ProjectWorkflowError> {
        let Versions { before, after } = versions;
        let executable_files =
            ExecutableFiles { repositories: repositories(after), released: executable };
        let tree = WorkflowDirectory::open(to)
            .map_err(|source| ProjectWorkflowError::Files { path: to.to_owned(), source })?;
        let mut exported = ExportReport::default();
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        let changed = after.iter().filter(|(path, entry)| before.get(*path) != Some(entry));
        let all = gone.map(|path| (path, None)).chain(changed.map(|(path, e)| (path, Some(e))));
        for (path, entry) in all {
            if let Some(name) = executable_files.listed_as(path) {
                exported.withheld.push((path.clone(), WithheldReason::Executed(name).to_string()));
                continue;
            }
            let done = match self.options.hidden.covers(to, Path::new(path)) {
                true => Err(io::Error::other("the path belongs to the host")),
                false if entry.is_some_and(|entry| leads_astray(after, path, entry)) => {
                    Err(io::Error::other("the link leads out of the directory"))
                }
                false => self.write_entry(&tree, path, before.get(path), entry).await,
            };
            match done {
                Ok(()) => exported.written.push(path.clone()),
                Err(error) => exported.refused.push((path.clone(), error.to_string())),
            }
        }
        Ok(exported)
    }

    async fn write_entry(
        &self,
        tree: &WorkflowDirectory,
        path: &str,
        before: Option<&FileEntry>,
        entry: Option<&FileEntry>,
    ) -> io::Result<()> {
        if !self.is_as_before(tree, path, before).await? {
            return Err(io::Error::other("the file was changed in the meantime"));
        }
        match entry {
            None => tree.remove(path),
            Some(FileEntry::File { blob, mode }) => {
                tree.write(path, &self.blob(blob).await?, *mode)
            }
            Some(FileEntry::Directory { mode }) => tree.create_directory(path, *mode),
            Some(FileEntry::Link { to }) => tree.create_link(path, to),
        }
    }

    async fn is_as_before(
        &self,
        tree: &WorkflowDirectory,
        path: &str,
        before: Option<&FileEntry>,
    ) -> io::Result<bool> {
        Ok(match (tree.entry(path)?, before) {
            (None, None | Some(FileEntry::Directory { .. })) => true,
            (Some(DirectoryEntry::Directory { .. }), None | Some(FileEntry::Directory { .. })) => {
                true
            }
            (Some(DirectoryEntry::Link { to }), Some(FileEntry::Link { to: was })) => to == *was,
            (Some(DirectoryEntry::File { .. }), Some(FileEntry::File { blob, .. })) => {
                tree.read(path)? == self.blob(blob).await?
            }
            (Some(_) | None, _) => false,
        })
    }
}

/// The directory that a run was started with.
fn workspace_of(record: &RunRecord) -> Option<PathBuf> {
    let request: serde_json::Value = serde_json::from_str(&record.request_json).ok()?;
    Some(PathBuf::from(request.get("workspace")?.get(0)?.as_str()?))
}

/// The blobs of all files.
pub(super) fn blobs(files: &WorkflowFiles) -> Vec<String> {
    let blobs = files.values().filter_map(|entry| match entry {
        FileEntry::File { blob, .. } => Some(blob.clone()),
        FileEntry::Link { .. } | FileEntry::Directory { .. } => None,
    });
    blobs.collect()
}

/// Whether an entry is a link that could lead out of the directory, by itself or through another
/// link.
fn leads_astray(files: &WorkflowFiles, path: &str, entry: &FileEntry) -> bool {
    let FileEntry::Link { to } = entry else { return false };
    if to.starts_with('/') {
        return true;
    }
    let mut at: Vec<&str> = path.split('/').collect();
    at.pop();
    let mut parts = to.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    while let Some(part) = parts.next() {
        if part != ".." {
            at.push(part);
        } else if at.pop().is_none() {
            return true;
        }
        let is_on_the_way = parts.peek().is_some();
        if is_on_the_way && matches!(files.get(&at.join("/")), Some(FileEntry::Link { .. })) {
            return true;
        }
    }
    false
}

/// Creates a directory for its owner only. A directory that another user could write to is refused.
fn create_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    match is_private_directory(path) {
        true => Ok(()),
        false => Err(io::Error::other(format!("other users can access {}", path.display()))),
    }
}

/// The files of a workflow when it started, and now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Versions<'a> {
    pub(super) before: &'a WorkflowFiles,
    pub(super) after: &'a WorkflowFiles,
}

/// Decides which files the host would execute, and which of them may be written.
struct ExecutableFiles<'a> {
    /// Directories that are git repositories, whatever their names.
    repositories: Vec<PathBuf>,
    released: &'a CommitExecutable,
}

impl ExecutableFiles<'_> {
    /// The listed name of a path that is only written on request.
    fn listed_as(&self, path: &str) -> Option<&'static str> {
        let path = Path::new(path);
        let in_repository = || self.repositories.iter().any(|root| path.starts_with(root));
        let name = executed_in(path).or_else(|| in_repository().then_some(GIT));
        name.filter(|name| !self.released.has(name))
    }
}

/// Directories that git accepts as repositories because of their contents.
fn repositories(files: &WorkflowFiles) -> Vec<PathBuf> {
    let mut entries: BTreeMap<&Path, BTreeSet<&OsStr>> = BTreeMap::new();
    for path in files.keys().flat_map(|path| Path::new(path).ancestors()) {
        if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
            entries.entry(directory).or_default().insert(name);
        }
    }
    let is_one = |names: &BTreeSet<&OsStr>| {
        is_repository(&|entry| names.iter().any(|name| name.eq_ignore_ascii_case(entry)))
    };
    entries.into_iter().filter(|(_, names)| is_one(names)).map(|(root, _)| root.into()).collect()
}

/// Paths of the host that no workflow may read in or write out.
#[derive(Debug, Clone, Default)]
pub struct HiddenPaths {
    /// Names, in any directory.
    pub names: Vec<String>,
    /// Absolute paths; everything beneath them is hidden, too.
    pub paths: Vec<PathBuf>,
}

impl HiddenPaths {
    fn covers(&self, root: &Path, below: &Path) -> bool {
        let named = below.iter().any(|part| self.names.iter().any(|name| is_same(part, name)));
        named || self.paths.iter().any(|path| root.join(below).starts_with(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_a_repository_is_known_by_what_is_in_it() {
        let file = || FileEntry::File { blob: String::new(), mode: 0o644 };
        let files: WorkflowFiles =
            ["a/HEAD", "a/config", "a/objects/x", "a/refs/y", "b/HEAD", "b/refs/y"]
                .into_iter()
                .chain(["c/d/Head", "c/d/CommonDir", "c/x", "e/head", "e/Objects/x", "e/REFS/y"])
                .map(|path| (path.to_owned(), file()))
                .collect();
        assert_eq!(repositories(&files), ["a", "c/d", "e"].map(PathBuf::from));
        let withheld = CommitExecutable::default();
        let executable_files =
            ExecutableFiles { repositories: repositories(&files), released: &withheld };
        assert_eq!(
            (executable_files.listed_as("a/config"), executable_files.listed_as("b/HEAD")),
            (Some(GIT), None)
        );
        assert_eq!(executable_files.listed_as("c/.Envrc"), Some(".envrc"));
        assert_eq!(
            (executable_files.listed_as("c/d/Head"), executable_files.listed_as("c/x")),
            (Some(GIT), None)
        );
        assert_eq!(executable_files.listed_as("b/config.worktree"), Some(GIT));
        let released = CommitExecutable::Names(vec![GIT.to_owned()]);
        let executable_files =
            ExecutableFiles { repositories: repositories(&files), released: &released };
        assert_eq!(
            (executable_files.listed_as("a/config"), executable_files.listed_as("x/.git/config")),
            (None, None)
        );
        assert_eq!(executable_files.listed_as(".envrc"), Some(".envrc"));
    }

    #[test]
    fn f6_links_lead_out_by_themselves_or_through_others() {
        let link = |to: &str| FileEntry::Link { to: to.to_owned() };
        let file = FileEntry::File { blob: String::new(), mode: 0o644 };
        let files: WorkflowFiles = [("d/up", link("..")), ("d/f", file)]
            .map(|(path, entry)| (path.to_owned(), entry))
            .into_iter()
            .collect();
        for (path, to, is_out) in [
            ("a", "d/f", false),
            ("d/a", "../b", false),
            ("d/a", "./x/../../b", false),
            ("a", "/etc", true),
            ("a", "..", true),
            ("d/a", "../../b", true),
            ("d/a", "up/../../b", true),
            ("a", "d/up/x", true),
        ] {
            assert_eq!(leads_astray(&files, path, &link(to)), is_out, "{path} -> {to}");
        }
    }
}
