//! What a run leaves in its workspace: artifacts, the change list, and the commit.
//!
//! All of it happens once every process of the cell is dead: nobody is left to race with.

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

/// Files in here come back by themselves. Engines name it when it is there.
const OUTPUT_DIRECTORY: &str = "/work/out";

/// Changes a result lists.
const MAX_LISTED: usize = 10_000;
/// Longer than any machine that still works takes to end a cell.
const DEATH: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// What of a run's files is to be looked at.
#[derive(Debug)]
pub(crate) struct Leftovers {
    /// What the guest wrote to `/work`.
    pub(crate) work: OwnedFd,
    /// The keeper, which ends after everything else in the cell; `None` in a session, where nothing
    /// is compared or committed and a guest that changes its files meanwhile changes what it gets.
    pub(crate) keeper: Option<OwnedFd>,
    /// Artifacts the code named.
    pub(crate) named: Vec<String>,
    pub(crate) workspace: Option<OpenWorkspace>,
    /// Names that no commit brings to any directory.
    pub(crate) reserved_names: Arc<[OsString]>,
    /// When the run was admitted.
    pub(crate) began: SystemTime,
    /// Whether the run succeeded: only then is anything committed.
    pub(crate) success: bool,
    /// The most a commit may write, and the most that may come back.
    pub(crate) limits: Limits,
    /// Set when nobody waits for the run any more: then nothing is committed either.
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

/// What became of them.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) changes: Vec<Change>,
    /// What the caller should be told in the logs.
    pub(crate) notes: Vec<String>,
    pub(crate) error: Option<RunError>,
}

impl Leftovers {
    /// Waits until the cell is dead, then collects, lists and commits. Blocks.
    pub(crate) fn settle(self) -> Settled {
        let mut settled = Settled::default();
        let is_over = self.keeper.as_ref().map_or(Ok(()), wait_until_dead);
        let result = is_over.and_then(|()| self.look(&mut settled));
        match result {
            Ok(()) => settled,
            Err(error) => Settled { error: Settled::failed(&error).error, ..settled },
        }
    }

    fn look(&self, settled: &mut Settled) -> io::Result<()> {
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
            self.named.iter().filter(|path| *path != OUTPUT_DIRECTORY).cloned().collect();
        let found = workspace::collect(self.work.as_fd(), lower, &named, &caps);
        settled.artifacts = found.list.into_iter().map(artifact).collect();
        let skipped = found.skipped.iter();
        settled.notes = skipped
            .map(|skipped| format!("[artifact] {}: left out: {}", skipped.path, skipped.reason))
            .collect();
        let Some(OpenWorkspace { directory, commit, executable, .. }) = &self.workspace else {
            return Ok(());
        };
        let kept = obeying(kept, self.reserved_names.clone(), executable);
        let caps = ChangeCaps { began: Some(self.began), protected: kept, ..ChangeCaps::default() };
        let changes = workspace::changes(self.work.as_fd(), lower, &caps)?;
        let mut report = None;
        if *commit && self.success {
            if self.is_abandoned.load(Ordering::SeqCst) {
                settled.error = Some(run::aborted());
            } else {
                let options = CommitOptions { bytes: self.limits.disk, ..CommitOptions::default() };
                let (work, directory) = (self.work.as_fd(), directory.as_fd());
                report = Some(workspace::commit(&changes, work, directory, &options));
            }
        }
        settled.error = settled.error.take().or_else(|| incomplete(report.as_ref()?));
        settled.changes = told(&changes, report.as_ref());
        if changes.cut || changes.list.len() > MAX_LISTED {
            settled.notes.push("[workspace] too many changes to list them all".to_owned());
        }
        Ok(())
    }
}

impl Settled {
    /// The files could not be looked at.
    pub(crate) fn failed(error: &dyn fmt::Display) -> Self {
        let message = format!("what the run left in /work could not be read: {error}");
        let error = RunError::new(ErrorCode::WorkspaceFailed, message);
        Self { error: Some(error), ..Self::default() }
    }
}

/// With the names that no commit brings, and those that this one was not told to bring.
fn obeying(
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

/// Whether a name is a reserved one to some file system.
pub(crate) fn is_reserved(name: &OsStr, reserved: &OsStr) -> bool {
    name == reserved || reserved.to_str().is_some_and(|reserved| names::is_same(name, reserved))
}

pub(crate) fn wait_until_dead(keeper: &OwnedFd) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(keeper, PollFlags::IN)], Some(&DEATH)) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(0) => return Err(io::Error::other("the cell does not end")),
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
    Artifact { path, media_type: media_type.into(), bytes, data: BASE64.encode(data) }
}

/// The change list as it is told, with what became of each.
fn told(changes: &workspace::ChangeList, report: Option<&CommitReport>) -> Vec<Change> {
    let skipped: HashMap<&Path, &NotCommitted> = report
        .iter()
        .flat_map(|report| &report.skipped)
        .map(|skipped| (skipped.path.as_path(), &skipped.reason))
        .collect();
    let list = changes.list.iter().take(MAX_LISTED);
    let tell = |found: &workspace::PathChange| {
        let skipped = skipped.get(found.path.as_path());
        Change {
            path: found.shown_path(),
            kind: change_kind(found.kind),
            entry: entry_kind(found.entry),
            bytes: found.bytes,
            // Of a list that was cut, nothing is committed.
            committed: report.is_some() && !changes.cut && skipped.is_none(),
            note: skipped.map(|reason| format!("not committed: {reason}")).or_else(|| found.note()),
        }
    };
    list.map(tell).collect()
}

/// The error when something that should have been committed was not.
fn incomplete(report: &CommitReport) -> Option<RunError> {
    let mut failed = report.skipped.iter().filter_map(|skipped| {
        let code = match &skipped.reason {
            // Listed, explained, and never meant to be committed.
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
    Some(RunError::new(code, message).with_hint("`changes` says of each path what became of it"))
}
