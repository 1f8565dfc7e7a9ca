//! What a run leaves in its workspace: artifacts, the change list, and the commit.
//!
//! All of it happens once every process of the cell is dead: nobody is left to race with.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::SystemTime,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use belljar_jail::workspace::{
    self, ArtifactCaps, ChangeCaps, CommitOptions, CommitReport, NotCommitted,
};
use belljar_wire::ErrorCode;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags, openat},
    io::Errno,
};

use crate::{Artifact, Change, RunError, grants::OpenWorkspace};

/// Files in here come back by themselves. A script's engine names it when it is there.
const OUTPUT_DIRECTORY: &str = "/work/out";

/// What of a run's files is to be looked at.
#[derive(Debug)]
pub(crate) struct Leftovers {
    /// What the guest wrote to `/work`.
    pub(crate) work: OwnedFd,
    /// The keeper, which ends after everything else in the cell.
    pub(crate) keeper: OwnedFd,
    /// Artifacts the code named.
    pub(crate) named: Vec<String>,
    pub(crate) workspace: Option<OpenWorkspace>,
    /// When the run was admitted.
    pub(crate) began: SystemTime,
    /// Whether the run succeeded: only then is anything committed.
    pub(crate) success: bool,
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
    /// Whether there is anything to look at.
    pub(crate) fn is_anything(&self) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.workspace.is_some()
            || !self.named.is_empty()
            || openat(&self.work, "out", flags, Mode::empty()).is_ok()
    }

    /// Waits until the cell is dead, then collects, lists and commits. Blocks.
    pub(crate) fn settle(self) -> Settled {
        let mut settled = Settled::default();
        let result = wait_until_dead(&self.keeper).and_then(|()| self.look(&mut settled));
        if let Err(error) = result {
            settled.error = Some(RunError::new(
                ErrorCode::WorkspaceFailed,
                format!("what the run left in /work could not be read: {error}"),
            ));
        }
        settled
    }

    fn look(&self, settled: &mut Settled) -> io::Result<()> {
        let lower = self.workspace.as_ref().map(|workspace| workspace.directory.as_fd());
        let caps = ArtifactCaps::default();
        let named: Vec<String> =
            self.named.iter().filter(|path| *path != OUTPUT_DIRECTORY).cloned().collect();
        let found = workspace::collect(self.work.as_fd(), lower, &named, &caps);
        settled.artifacts = found.list.into_iter().map(artifact).collect();
        let skipped = found.skipped.iter();
        settled.notes = skipped
            .map(|skipped| format!("[artifact] {}: left out: {}", skipped.path, skipped.reason))
            .collect();
        let Some(OpenWorkspace { directory, commit }) = &self.workspace else { return Ok(()) };
        let caps = ChangeCaps { began: Some(self.began), ..ChangeCaps::default() };
        let changes = workspace::changes(self.work.as_fd(), lower, &caps)?;
        settled.changes = changes.list.iter().map(change).collect();
        if changes.cut {
            settled.notes.push("[workspace] too many changes to list them all".to_owned());
        }
        if *commit && self.success {
            let options = CommitOptions::default();
            let report =
                workspace::commit(&changes, self.work.as_fd(), directory.as_fd(), &options);
            mark_committed(&mut settled.changes, &report);
            settled.error = incomplete(&report);
        }
        Ok(())
    }
}

fn wait_until_dead(keeper: &OwnedFd) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(keeper, PollFlags::IN)], None) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(_) => return Ok(()),
        }
    }
}

fn artifact(found: workspace::Artifact) -> Artifact {
    let workspace::Artifact { path, bytes, media_type, data } = found;
    Artifact { path, media_type, bytes, data: BASE64.encode(data) }
}

fn change(found: &workspace::Change) -> Change {
    Change {
        path: found.shown_path(),
        kind: found.kind.as_str(),
        entry: found.entry.as_str(),
        bytes: found.bytes,
        committed: false,
        note: found.note(),
    }
}

fn mark_committed(changes: &mut [Change], report: &CommitReport) {
    for change in &mut *changes {
        change.committed = true;
    }
    for skipped in &report.skipped {
        let path = skipped.path.to_string_lossy();
        for change in changes.iter_mut().filter(|change| change.path == path) {
            change.committed = false;
            change.note = Some(format!("not committed: {}", skipped.reason));
        }
    }
}

/// The error when something that should have been committed was not.
fn incomplete(report: &CommitReport) -> Option<RunError> {
    let mut failed = report.skipped.iter().filter_map(|skipped| {
        let code = match &skipped.reason {
            // Listed, explained, and never meant to be committed.
            NotCommitted::Withheld(workspace::Withheld::ChangedMeanwhile)
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
    let message =
        format!("{} was not committed: {}{more}", first.path.to_string_lossy(), first.reason);
    Some(RunError::new(code, message).with_hint("`changes` says of each path what became of it"))
}
