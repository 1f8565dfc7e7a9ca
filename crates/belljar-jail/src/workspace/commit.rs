//! Commit: applies a change list to the real directory.
//!
//! Each file appears whole or not at all. An entry that fails is reported, and the others are still
//! committed. Nothing is replaced or removed unless it is what the change list saw. Of the guest's
//! attributes, only permissions and the time of the last change are taken over.

use std::{
    fmt, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{fs::fsync, io::Errno, process::geteuid};

use super::{
    beneath::{RootedTree, change_mode, split},
    change::{ChangeKind, ChangeList, EntryKind, PathChange, WithheldReason},
    links::LinkChecker,
    remove::remove,
    upper::Upper,
};

mod make;

use make::UnfinishedDirectory;

/// How a commit is made.
#[derive(Debug, Clone)]
pub struct CommitOptions {
    /// Whether to wait for the disk.
    pub durability: CommitDurability,
    /// Bytes of content written at most. Hard links make many files of one, so this may be more
    /// than the upper directory holds.
    pub bytes: u64,
}

/// When a committed file counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitDurability {
    /// Once the kernel has it in its cache.
    #[default]
    Cached,
    /// Once it is on the disk.
    Synced,
}

impl Default for CommitOptions {
    fn default() -> Self {
        Self { durability: CommitDurability::Cached, bytes: 8 << 30 }
    }
}

/// The outcome of a commit.
#[derive(Debug, Default)]
pub struct CommitReport {
    /// The number of changes that were made.
    pub committed: usize,
    /// Bytes of content written.
    pub bytes: u64,
    /// Changes that were not made, with the reason of each.
    pub skipped: Vec<SkippedChange>,
}

/// A change that was not made.
#[derive(Debug)]
pub struct SkippedChange {
    /// Relative to the workspace; empty if it is about all of it.
    pub path: PathBuf,
    /// The reason why the change was not made.
    pub reason: NotCommitted,
}

/// Why a change was not made. The original is as it was, with one exception: of a directory that
/// could only be removed in part, the rest is left.
#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// The change list withholds it.
    #[error(transparent)]
    Withheld(#[from] WithheldReason),
    /// Another process has changed or created it since the list was made.
    #[error("conflict: the original has changed since the change list was made")]
    Conflict,
    /// The directory it belongs in is missing, or a link or mount is in its place.
    #[error("its directory is missing or not a plain directory")]
    NoDirectory,
    /// The commit would write more than [`CommitOptions::bytes`].
    #[error("the commit is too large")]
    TooLarge,
    /// The list was cut short, so it does not say everything that changed.
    #[error("the change list is incomplete, so nothing is committed")]
    ListCut,
    /// The operating system refused an operation.
    #[error(transparent)]
    Refused(#[from] io::Error),
}

impl From<Errno> for NotCommitted {
    fn from(error: Errno) -> Self {
        Self::Refused(error.into())
    }
}

impl fmt::Display for SkippedChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path.display(), self.reason)
    }
}

/// Applies a change list to the real directory.
///
/// `upper` is the directory the list was made from, still untouched, and `lower` the original.
/// Directories come first and deletions last. As root, new entries get the owner of the directory
/// they land in, and modified files keep theirs.
pub fn commit(
    changes: &ChangeList,
    upper: BorrowedFd<'_>,
    lower: BorrowedFd<'_>,
    options: &CommitOptions,
) -> CommitReport {
    let (upper, lower) = (Upper::new(upper), RootedTree::new(lower));
    let mut commit = Committer {
        upper: &upper,
        lower: &lower,
        view: LinkChecker::new(None, Some(&lower)),
        options,
        user: geteuid().as_raw(),
        parent: None,
        unfinished: Vec::new(),
        report: CommitReport::default(),
    };
    if changes.cut {
        commit.skip(Path::new(""), NotCommitted::ListCut);
    } else {
        commit.run(&changes.list);
    }
    commit.report
}

struct Committer<'a> {
    upper: &'a Upper<'a>,
    lower: &'a RootedTree<'a>,
    view: LinkChecker<'a>,
    options: &'a CommitOptions,
    user: u32,
    /// The directory last worked in: siblings follow each other.
    parent: Option<(PathBuf, OwnedFd)>,
    /// Directories whose permissions are still to be set, parents first.
    unfinished: Vec<UnfinishedDirectory>,
    report: CommitReport,
}

impl Committer<'_> {
    fn run(&mut self, list: &[PathChange]) {
        for change in list {
            if let Some(withheld) = &change.withheld {
                self.skip(&change.path, withheld.clone().into());
            }
        }
        let ready = || list.iter().filter(|change| change.withheld.is_none());
        let made = || ready().filter(|change| change.kind != ChangeKind::Deleted);
        for change in made().filter(|change| change.entry == EntryKind::Directory) {
            if let Err(reason) = self.make_directory(change) {
                self.skip(&change.path, reason);
            }
        }
        for change in made().filter(|change| change.entry == EntryKind::File) {
            let outcome = self.in_parent(change, Self::make_file);
            self.note(change, outcome);
        }
        for change in made().filter(|change| change.entry == EntryKind::Link) {
            let outcome = self.in_parent(change, Self::make_link);
            self.note(change, outcome);
        }
        let deleted = ready().filter(|change| change.kind == ChangeKind::Deleted);
        for change in deleted.collect::<Vec<_>>().into_iter().rev() {
            let outcome = self.in_parent(change, Self::delete);
            self.note(change, outcome);
        }
        self.finish_directories();
    }

    /// Works in the directory an entry belongs in, opened afresh unless it is the last one's too.
    fn in_parent<T>(
        &mut self,
        change: &PathChange,
        work: impl FnOnce(&mut Self, BorrowedFd<'_>, &PathChange) -> Result<T, NotCommitted>,
    ) -> Result<T, NotCommitted> {
        let (path, _) = split(&change.path).ok_or(Errno::INVAL)?;
        let parent = match self.parent.take() {
            Some((cached, parent)) if cached == path => parent,
            _ => self.lower.directory(path).map_err(no_directory)?,
        };
        let outcome = work(self, parent.as_fd(), change);
        let synced = outcome.is_ok() && self.options.durability == CommitDurability::Synced;
        if synced && let Ok(listing) = self.lower.listing(path) {
            fsync(listing)?;
        }
        self.parent = Some((path.to_owned(), parent));
        outcome
    }

    fn delete(&mut self, parent: BorrowedFd<'_>, change: &PathChange) -> Result<(), NotCommitted> {
        let before = change.before.as_ref().ok_or(NotCommitted::Conflict)?;
        remove(self.lower, parent, &change.path, before)
    }

    /// Permissions come last, and to the deepest first: a directory may forbid what was done in it.
    fn finish_directories(&mut self) {
        let unfinished = std::mem::take(&mut self.unfinished);
        for UnfinishedDirectory { path, seen, mode, times } in unfinished.into_iter().rev() {
            let finish = || -> Result<(), NotCommitted> {
                let directory = self.lower.directory(&path).map_err(no_directory)?;
                if !seen.matches(&rustix::fs::fstat(&directory)?) {
                    return Err(NotCommitted::Conflict);
                }
                if let Some(times) = times {
                    make::set_times(directory.as_fd(), &times)?;
                }
                Ok(change_mode(directory.as_fd(), mode)?)
            };
            match finish() {
                Ok(()) => self.report.committed += 1,
                Err(reason) => self.skip(&path, reason),
            }
        }
    }

    fn note(&mut self, change: &PathChange, outcome: Result<(), NotCommitted>) {
        match outcome {
            Ok(()) => self.report.committed += 1,
            Err(reason) => self.skip(&change.path, reason),
        }
    }

    fn skip(&mut self, path: &Path, reason: NotCommitted) {
        self.report.skipped.push(SkippedChange { path: path.to_owned(), reason });
    }
}

/// The reason to report when a directory of the original cannot be opened.
fn no_directory(error: io::Error) -> NotCommitted {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => NotCommitted::NoDirectory,
        _ => NotCommitted::Refused(error),
    }
}
