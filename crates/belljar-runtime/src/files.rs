//! The files of a run in its workspace: artifacts, the change list, and the commit.
//!
//! All of it happens after every process of the cell is dead, so no guest can race with it.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fmt, io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use belljar_contract::{
    Artifact, Change, ChangeKind, CommitExecutable, EntryKind, ErrorCode, Limits, RunError,
    UnreturnedFile, UnreturnedFiles,
};
use belljar_jail::{
    workspace,
    workspace::{
        ArtifactCaps, ChangeCaps, CommitOptions, CommitReport, ExecutedDirectory, NameUse,
        NotCommitted, ProtectedPaths,
    },
};
use belljar_paths::{names, names::GIT};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::{grants::OpenWorkspace, run};

/// Files in this directory come back without being named. Engines name the directory if it exists.
const OUTPUT_DIRECTORY: &str = "/work/out";
/// Engines name the workspace itself if there are files in it, so that those which do not come back are
/// listed.
const WORKSPACE: &str = "/work";

/// The most changes that a result lists.
const MAX_LISTED: usize = 10_000;
/// How long a killed cell may take to end; far longer than a working machine needs.
const DEATH: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// The files of a run that has ended, and what to do with them.
#[derive(Debug)]
pub(crate) struct Leftovers {
    /// The files that the guest wrote to `/work`.
    pub(crate) work: OwnedFd,
    /// The keeper, which ends after all other processes of the cell. `None` in a session: there nothing is
    /// compared or committed, and a guest that changes its files meanwhile only changes its own artifacts.
    pub(crate) keeper: Option<OwnedFd>,
    /// Paths of artifacts that the code named.
    pub(crate) named: Vec<String>,
    pub(crate) workspace: Option<OpenWorkspace>,
    /// Names that no commit creates in any directory.
    pub(crate) reserved_names: Arc<[OsString]>,
    /// When the run was admitted: later changes of the workspace are conflicts.
    pub(crate) began: SystemTime,
    /// Whether the run succeeded. Otherwise nothing is committed.
    pub(crate) success: bool,
    /// Bounds what a commit may write and what may come back.
    pub(crate) limits: Limits,
    /// Set when the caller is gone or has aborted the run: then nothing is committed.
    pub(crate) is_abandoned: Arc<AtomicBool>,
}

/// Marks a run as abandoned when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct AbandonOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The files that come back from a run.
#[derive(Debug, Default)]
pub(crate) struct CollectedFiles {
    pub(crate) artifacts: Vec<Artifact>,
    /// Files that end with the run and do not come back.
    pub(crate) unreturned: UnreturnedFiles,
    pub(crate) changes: Vec<Change>,
    /// Lines for the log of the run.
    pub(crate) notes: Vec<String>,
    pub(crate) error: Option<RunError>,
}

impl Leftovers {
    /// Waits until the cell is dead, then collects artifacts, lists changes and commits. Blocks.
    pub(crate) fn collect_and_commit(self) -> CollectedFiles {
        let mut files = CollectedFiles::default();
        let is_dead = self.keeper.as_ref().map_or(Ok(()), wait_until_dead);
        let result = is_dead.and_then(|()| self.collect_into(&mut files));
        match result {
            Ok(()) => files,
            Err(error) => CollectedFiles { error: CollectedFiles::failed(&error).error, ..files },
        }
    }

    fn collect_into(&self, files: &mut CollectedFiles) -> io::Result<()> {
        let lower = self.workspace.as_ref().map(|workspace| workspace.directory.as_fd());
        let bytes = self.limits.result_bytes;
        let kept = self.workspace.as_ref().map(|workspace| workspace.kept.iter().cloned());
        let kept = ProtectedPaths::new(kept.into_iter().flatten());
        let caps = ArtifactCaps {
            bytes_each: bytes,
            bytes_total: bytes,
            protected: kept.clone(),
            ..ArtifactCaps::default()
        };
        let named: Vec<String> =
            self.named.iter().filter(|path| !is_directory(path)).cloned().collect();
        let found = workspace::collect(self.work.as_fd(), lower, &named, &caps);
        if self.workspace.is_none() && self.keeper.is_some() {
            files.unreturned = self.unreturned(&found)?;
        }
        files.artifacts = found.list.into_iter().map(artifact).collect();
        let skipped = found.skipped.iter();
        files.notes = skipped
            .map(|skipped| format!("[artifact] {}: left out: {}", skipped.path, skipped.reason))
            .collect();
        let Some(OpenWorkspace { directory, commit, executable, .. }) = &self.workspace else {
            return Ok(());
        };
        let kept = with_names(kept, self.reserved_names.clone(), executable);
        let caps = ChangeCaps { began: Some(self.began), protected: kept, ..ChangeCaps::default() };
        let changes = workspace::changes(self.work.as_fd(), lower, &caps)?;
        let mut report = None;
        if *commit && self.success {
            if self.is_abandoned.load(Ordering::SeqCst) {
                files.error = Some(run::aborted());
            } else {
                let options = CommitOptions { bytes: self.limits.disk, ..CommitOptions::default() };
                let (work, directory) = (self.work.as_fd(), directory.as_fd());
                report = Some(workspace::commit(&changes, work, directory, &options));
            }
        }
        files.error = files.error.take().or_else(|| commit_error(report.as_ref()?));
        files.changes = change_entries(&changes, report.as_ref());
        if changes.cut || changes.list.len() > MAX_LISTED {
            files.notes.push("[workspace] too many changes to list them all".to_owned());
        }
        Ok(())
    }

    /// The files of a workspace in memory that are not among the artifacts: they end with the cell.
    fn unreturned(&self, found: &workspace::Artifacts) -> io::Result<UnreturnedFiles> {
        let (files, more) = workspace::unreturned(self.work.as_fd(), &found.list)?;
        let file = |workspace::WorkFile { path, bytes }| UnreturnedFile { path, bytes };
        Ok(UnreturnedFiles { files: files.into_iter().map(file).collect(), more })
    }
}

/// Whether a named path is one of the two directories that engines name.
pub(crate) fn is_directory(named: &str) -> bool {
    named == OUTPUT_DIRECTORY || named == WORKSPACE
}

/// Whether a path names files that come back.
pub(crate) fn is_returned(named: &str) -> bool {
    named != WORKSPACE
}

impl CollectedFiles {
    /// The result of a run whose files could not be read.
    pub(crate) fn failed(error: &dyn fmt::Display) -> Self {
        let message = format!("could not read the files the run left in /work: {error}");
        let error = RunError::new(ErrorCode::WorkspaceFailed, message);
        Self { error: Some(error), ..Self::default() }
    }
}

/// Adds the names that no commit creates, and the names that this request does not let it create.
fn with_names(
    kept: ProtectedPaths,
    reserved: Arc<[OsString]>,
    executable: &CommitExecutable,
) -> ProtectedPaths {
    let released = executable.clone();
    let kept = kept.with_names(move |name| {
        if reserved.iter().any(|reserved| is_reserved(name, reserved)) {
            return Some(NameUse::Reserved);
        }
        names::executed(name).filter(|listed| !released.has(listed)).map(NameUse::Executed)
    });
    match executable.has(GIT) {
        true => kept,
        false => kept.with_directory(ExecutedDirectory { name: GIT, is: names::is_repository }),
    }
}

/// Whether some file system takes a name for a reserved one.
pub(crate) fn is_reserved(name: &OsStr, reserved: &OsStr) -> bool {
    name == reserved || reserved.to_str().is_some_and(|reserved| names::is_same(name, reserved))
}

/// Waits until a cell, given its keeper, has ended. Blocks.
pub(crate) fn wait_until_dead(keeper: &OwnedFd) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(keeper, PollFlags::IN)], Some(&DEATH)) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(0) => {
                return Err(io::Error::other("the cell was killed and did not end within 10 s"));
            }
            Ok(_) => return Ok(()),
        }
    }
}

fn change_kind(kind: workspace::ChangeKind) -> ChangeKind {
    match kind {
        workspace::ChangeKind::Added => ChangeKind::Added,
        workspace::ChangeKind::Modified => ChangeKind::Modified,
        workspace::ChangeKind::Deleted => ChangeKind::Deleted,
    }
}

fn entry_kind(kind: workspace::EntryKind) -> EntryKind {
    match kind {
        workspace::EntryKind::File => EntryKind::File,
        workspace::EntryKind::Directory => EntryKind::Directory,
        workspace::EntryKind::Link => EntryKind::Link,
        workspace::EntryKind::Other => EntryKind::Other,
    }
}

fn artifact(found: workspace::ArtifactFile) -> Artifact {
    let workspace::ArtifactFile { path, bytes, media_type, data } = found;
    let (media_type, data) = (media_type.into(), BASE64.encode(data));
    Artifact { path, media_type, bytes, data, handle: None }
}

/// The changes as results list them, with the outcome of the commit.
fn change_entries(changes: &workspace::ChangeList, report: Option<&CommitReport>) -> Vec<Change> {
    let skipped: HashMap<&Path, &NotCommitted> = report
        .iter()
        .flat_map(|report| &report.skipped)
        .map(|skipped| (skipped.path.as_path(), &skipped.reason))
        .collect();
    let list = changes.list.iter().take(MAX_LISTED);
    let entry = |found: &workspace::PathChange| {
        let skipped = skipped.get(found.path.as_path());
        Change {
            path: found.shown_path(),
            kind: change_kind(found.kind),
            entry: entry_kind(found.entry),
            bytes: found.bytes,
            // If the list is cut, nothing is committed.
            committed: report.is_some() && !changes.cut && skipped.is_none(),
            note: skipped.map(|reason| format!("not committed: {reason}")).or_else(|| found.note()),
        }
    };
    list.map(entry).collect()
}

/// The error if something that should have been committed was not.
fn commit_error(report: &CommitReport) -> Option<RunError> {
    let mut failed = report.skipped.iter().filter_map(|skipped| {
        let code = match &skipped.reason {
            // The other withheld paths were never meant to be committed; the list says why.
            NotCommitted::Withheld(workspace::WithheldReason::ChangedMeanwhile)
            | NotCommitted::Conflict => ErrorCode::WorkspaceConflict,
            NotCommitted::Withheld(_) => return None,
            NotCommitted::Refused(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                ErrorCode::PermissionFile
            }
            NotCommitted::NoDirectory
            | NotCommitted::TooLarge
            | NotCommitted::ListCut
            | NotCommitted::Refused(_) => ErrorCode::WorkspaceFailed,
        };
        Some((code, skipped))
    });
    let (code, first) = failed.next()?;
    let more = match failed.count() {
        0 => String::new(),
        more => format!(" ({more} more: see changes)"),
    };
    let path = first.path.to_string_lossy();
    let path = if path.is_empty() { "the workspace".into() } else { path };
    let message = format!("{path} was not committed: {}{more}", first.reason);
    Some(RunError::new(code, message).with_hint("see the note of each path in `changes`"))
}
