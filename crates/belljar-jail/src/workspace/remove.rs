//! Records the content of a directory of the original tree, and removes exactly that content.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::{
    fs::{AtFlags, RenameFlags, Stat, fstat, renameat_with, unlinkat},
    io::Errno,
};

use super::{
    beneath::{RootedTree, WORKABLE, change_mode, look, names, split},
    change::{InodeSnapshot, OriginalEntry, WithheldReason, changed_after},
    commit::NotCommitted,
    stage::temporary_name,
};

/// Records an entry of the original tree that is to be removed, with all it holds.
///
/// `budget` is how many entries may still be remembered.
pub(super) fn remember(
    tree: &RootedTree<'_>,
    path: &Path,
    stat: &Stat,
    began: Option<SystemTime>,
    budget: &mut usize,
) -> Result<OriginalEntry, WithheldReason> {
    let unreadable = |error: io::Error| WithheldReason::Unreadable(error.to_string());
    let mut before = OriginalEntry { seen: InodeSnapshot::of(stat), contents: Vec::new() };
    let mut pending = Vec::new();
    if before.seen.is_directory() {
        pending.push(path.to_owned());
    } else if changed_after(stat, began) {
        return Err(WithheldReason::ChangedMeanwhile);
    }
    while let Some(path) = pending.pop() {
        let directory = tree.listing(&path).map_err(unreadable)?;
        let stat = fstat(&directory).map_err(|error| unreadable(error.into()))?;
        let names = names(&directory, *budget).map_err(unreadable)?;
        let names = names.ok_or(WithheldReason::TooManyRemoved)?;
        *budget -= names.len();
        let mut fresh = changed_after(&stat, began);
        for name in names {
            let Some(stat) = look(&directory, &name).map_err(unreadable)? else { continue };
            let (path, seen) = (path.join(name), InodeSnapshot::of(&stat));
            if seen.is_directory() {
                pending.push(path.clone());
            }
            fresh |= changed_after(&stat, began);
            before.contents.push((path, seen));
        }
        if fresh {
            return Err(WithheldReason::ChangedMeanwhile);
        }
    }
    Ok(before)
}

/// Removes a recorded entry, if it and all it holds are unchanged.
///
/// Nothing is removed unless all of it was found unchanged first.
pub(super) fn remove(
    tree: &RootedTree<'_>,
    parent: BorrowedFd<'_>,
    path: &Path,
    before: &OriginalEntry,
) -> Result<(), NotCommitted> {
    let (_, name) = split(path).ok_or(Errno::INVAL)?;
    if !before.seen.is_directory() {
        return take_away(parent, name, &before.seen);
    }
    let now = look(parent, name)?;
    if !now.is_some_and(|now| before.seen.matches(&now)) {
        return Err(NotCommitted::Conflict);
    }
    check_contents(tree, path, before)?;
    unlock(tree, path, before)?;
    // Parents come first in the list, so the reverse is the deepest first.
    for (path, seen) in before.contents.iter().rev() {
        let (parent, name) = split(path).ok_or(Errno::INVAL)?;
        let parent = tree.directory(parent)?;
        if seen.is_directory() {
            remove_directory(parent.as_fd(), name)?;
        } else {
            take_away(parent.as_fd(), name, seen)?;
        }
    }
    remove_directory(parent, name)
}

/// Gives the owner access to directories that are about to be removed.
fn unlock(tree: &RootedTree<'_>, path: &Path, before: &OriginalEntry) -> Result<(), NotCommitted> {
    let within = before.contents.iter().map(|(path, seen)| (path.as_path(), seen));
    for (path, seen) in std::iter::once((path, &before.seen)).chain(within) {
        if seen.is_directory() && seen.mode() & WORKABLE != WORKABLE {
            change_mode(tree.directory(path)?.as_fd(), seen.mode() | WORKABLE)?;
        }
    }
    Ok(())
}

fn remove_directory(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), NotCommitted> {
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(()),
        // Another process has added something, or removed the directory.
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::NOENT) => {
            Err(NotCommitted::Conflict)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a directory holds exactly the recorded content.
fn check_contents(
    tree: &RootedTree<'_>,
    path: &Path,
    before: &OriginalEntry,
) -> Result<(), NotCommitted> {
    let mut directories: Vec<(&Path, usize)> = vec![(path, 0)];
    let seen_directories = before.contents.iter().filter(|(_, seen)| seen.is_directory());
    directories.extend(seen_directories.map(|(path, _)| (path.as_path(), 0)));
    directories.sort_unstable();
    let mut open: Option<(PathBuf, std::os::fd::OwnedFd)> = None;
    for (path, seen) in &before.contents {
        let (parent, name) = split(path).ok_or(Errno::INVAL)?;
        if open.as_ref().is_none_or(|(path, _)| path != parent) {
            open = Some((parent.to_owned(), tree.directory(parent)?));
        }
        let Some((_, directory)) = &open else { continue };
        if !look(directory, name)?.is_some_and(|now| seen.matches(&now)) {
            return Err(NotCommitted::Conflict);
        }
        if let Ok(at) = directories.binary_search_by(|(path, _)| (*path).cmp(parent))
            && let Some((_, entries)) = directories.get_mut(at)
        {
            *entries += 1;
        }
    }
    for (path, entries) in directories {
        if names(tree.listing(path)?, entries)?.is_none() {
            return Err(NotCommitted::Conflict);
        }
    }
    Ok(())
}

/// Removes a file, and only if it is the one that was seen.
///
/// It is moved to an unguessable name before it is compared, so that a file that another process
/// puts there at the same moment is not lost: it is moved back.
fn take_away(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    seen: &InodeSnapshot,
) -> Result<(), NotCommitted> {
    if !look(parent, name)?.is_some_and(|now| seen.matches(&now)) {
        return Err(NotCommitted::Conflict);
    }
    let aside = temporary_name()?;
    match renameat_with(parent, name, parent, &aside, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Err(NotCommitted::Conflict),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            return Ok(unlinkat(parent, name, AtFlags::empty())?);
        }
        Err(error) => return Err(error.into()),
    }
    let same = look(parent, OsStr::new(&aside))?.is_some_and(|now| seen.matches(&now));
    let outcome = if same {
        unlinkat(parent, &aside, AtFlags::empty()).map_err(NotCommitted::from)
    } else {
        Err(NotCommitted::Conflict)
    };
    if outcome.is_err() {
        renameat_with(parent, &aside, parent, name, RenameFlags::NOREPLACE)?;
    }
    outcome
}
