//! The three kinds of entries a commit makes: directories, files and links.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::ffi::OsStringExt,
    },
    path::PathBuf,
};

use rustix::{
    fs::{
        Access, AtFlags, CWD, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, UTIME_OMIT,
        Uid, accessat, chownat, fchmod, fchown, fstat, fsync, ftruncate, futimens, mkdirat, openat,
        readlinkat, seek, utimensat,
    },
    io::{Errno, pread, pwrite},
};

use super::{
    CommitDurability, Committer, EntryKind, NotCommitted, PathChange, WithheldReason, change_mode,
    remove,
};
use crate::workspace::{
    beneath::{WORKABLE, look, names, proc_path, split},
    change::{InodeSnapshot, OriginalEntry, size_of},
    stage::{StagedFile, TemporaryEntry},
};

const BLOCK: usize = 256 << 10;
const PERMISSIONS: u32 = 0o777;
const SET_GROUP_ID: u32 = 0o2000;

/// A directory that exists but does not have its final permissions yet.
#[derive(Debug)]
pub(super) struct UnfinishedDirectory {
    pub(super) path: PathBuf,
    pub(super) seen: InodeSnapshot,
    pub(super) mode: u32,
    pub(super) times: Option<Timestamps>,
}

impl Committer<'_> {
    pub(super) fn make_directory(&mut self, change: &PathChange) -> Result<(), NotCommitted> {
        let unfinished = match &change.before {
            Some(before) if before.seen.is_directory() => self.open_up(change, before)?,
            _ => self.in_parent(change, Self::make_new_directory)?,
        };
        self.unfinished.push(unfinished);
        Ok(())
    }

    /// Makes sure that an existing directory can be worked in.
    fn open_up(
        &self,
        change: &PathChange,
        before: &OriginalEntry,
    ) -> Result<UnfinishedDirectory, NotCommitted> {
        let directory = self.lower.directory(&change.path).map_err(super::no_directory)?;
        let stat = fstat(&directory)?;
        if !before.seen.matches(&stat) {
            return Err(NotCommitted::Conflict);
        }
        if stat.st_mode & WORKABLE != WORKABLE {
            change_mode(directory.as_fd(), stat.st_mode | WORKABLE)?;
        }
        let mode = (change.mode & PERMISSIONS) | (stat.st_mode & 0o7000);
        Ok(UnfinishedDirectory { path: change.path.clone(), seen: before.seen, mode, times: None })
    }

    fn make_new_directory(
        &mut self,
        parent: BorrowedFd<'_>,
        change: &PathChange,
    ) -> Result<UnfinishedDirectory, NotCommitted> {
        let (_, name) = split(&change.path).ok_or(Errno::INVAL)?;
        if let Some(before) = &change.before {
            remove(self.lower, parent, &change.path, before)?;
        }
        match mkdirat(parent, name, Mode::from_raw_mode(WORKABLE)) {
            Err(Errno::EXIST) => return Err(NotCommitted::Conflict),
            other => other?,
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(parent, name, flags, Mode::empty())?;
        let stat = fstat(&directory)?;
        // Root is about to give it away, so it has to be the one just made and not one that was
        // moved here since. Between two empty directories of root's there is no difference.
        let is_fresh = stat.st_uid == self.user && stat.st_mode & 0o077 == 0;
        if !is_fresh || names(&directory, 0)?.is_none() {
            return Err(NotCommitted::Conflict);
        }
        self.give(&directory, &fstat(parent)?)?;
        let mode = (change.mode & PERMISSIONS) | (stat.st_mode & SET_GROUP_ID);
        let times = self.upper.entry(&change.path).and_then(|entry| Ok(fstat(entry)?));
        let times = times.ok().map(|stat| modified(&stat));
        Ok(UnfinishedDirectory {
            path: change.path.clone(),
            seen: InodeSnapshot::of(&stat),
            mode,
            times,
        })
    }

    pub(super) fn make_file(
        &mut self,
        parent: BorrowedFd<'_>,
        change: &PathChange,
    ) -> Result<(), NotCommitted> {
        let (_, name) = split(&change.path).ok_or(Errno::INVAL)?;
        self.check_place(parent, change)?;
        let source = self.upper.file(&change.path)?;
        let stat = fstat(&source)?;
        if EntryKind::of(&stat) != EntryKind::File {
            return Err(WithheldReason::Special.into());
        }
        let staged = StagedFile::new(parent)?;
        let left = self.options.bytes.saturating_sub(self.report.bytes);
        let written = copy(source.as_fd(), staged.file(), size_of(&stat), left)?;
        self.own_file(staged.file(), parent, change)?;
        fchmod(staged.file(), Mode::from_raw_mode(change.mode & PERMISSIONS))?;
        futimens(staged.file(), &modified(&stat))?;
        if self.options.durability == CommitDurability::Synced {
            fsync(staged.file())?;
        }
        staged.place(name, self.clear_place(parent, change)?)?;
        self.report.bytes += written;
        Ok(())
    }

    pub(super) fn make_link(
        &mut self,
        parent: BorrowedFd<'_>,
        change: &PathChange,
    ) -> Result<(), NotCommitted> {
        let (_, name) = split(&change.path).ok_or(Errno::INVAL)?;
        self.check_place(parent, change)?;
        let entry = self.upper.entry(&change.path)?;
        let target = readlinkat(entry, "", Vec::new())?;
        let target = std::ffi::OsString::from_vec(target.into_bytes());
        self.view.check(&change.path, &target)?;
        let staged = TemporaryEntry::symlink(parent, &target)?;
        if self.user == 0 {
            let entry = staged.entry()?;
            if EntryKind::of(&fstat(&entry)?) != EntryKind::Link {
                return Err(NotCommitted::Conflict);
            }
            let (owner, group) = owners(&fstat(parent)?);
            chownat(&entry, "", Some(owner), Some(group), AtFlags::EMPTY_PATH)?;
        }
        staged.place(name, self.clear_place(parent, change)?)
    }

    /// Whether the original still has the entry that the change list saw at this path.
    fn check_place(&self, parent: BorrowedFd<'_>, change: &PathChange) -> Result<(), NotCommitted> {
        let (_, name) = split(&change.path).ok_or(Errno::INVAL)?;
        let seen = change.before.as_ref().map(|before| before.seen);
        let as_seen = match (look(parent, name)?, seen) {
            (None, None) => true,
            (Some(now), Some(seen)) => seen.matches(&now),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !as_seen {
            return Err(NotCommitted::Conflict);
        }
        // Write access to a directory is enough to replace any file in it. But a file that this
        // user may not write to is left alone.
        if let Some(seen) = seen
            && self.user != 0
            && seen.owner != self.user
            && seen.is_file()
        {
            accessat(parent, name, Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        Ok(())
    }

    /// Removes a directory that is in the way. Any other entry is exchanged for the new one.
    fn clear_place<'c>(
        &self,
        parent: BorrowedFd<'_>,
        change: &'c PathChange,
    ) -> Result<Option<&'c InodeSnapshot>, NotCommitted> {
        let Some(before) = &change.before else { return Ok(None) };
        if !before.seen.is_directory() {
            return Ok(Some(&before.seen));
        }
        remove(self.lower, parent, &change.path, before)?;
        Ok(None)
    }

    /// Gives a new file its owner: that of the file it replaces, or of its directory.
    fn own_file(
        &self,
        file: BorrowedFd<'_>,
        parent: BorrowedFd<'_>,
        change: &PathChange,
    ) -> Result<(), NotCommitted> {
        match change.before.as_ref().map(|before| before.seen).filter(InodeSnapshot::is_file) {
            Some(seen) if self.user == 0 => {
                let (owner, group) = (Uid::from_raw(seen.owner), Gid::from_raw(seen.group));
                fchown(file, Some(owner), Some(group))?;
            }
            // A process may give a file to its own groups only; a failure is no reason to stop.
            Some(seen) => {
                let _ = fchown(file, None, Some(Gid::from_raw(seen.group)));
            }
            None => self.give(file, &fstat(parent)?)?,
        }
        Ok(())
    }

    /// As root, gives a new entry to the owner of the directory it is in.
    fn give(&self, entry: impl AsFd, directory: &Stat) -> io::Result<()> {
        if self.user == 0 {
            let (owner, group) = owners(directory);
            fchown(entry, Some(owner), Some(group))?;
        }
        Ok(())
    }
}

fn owners(stat: &Stat) -> (Uid, Gid) {
    (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid))
}

/// The time of the last change, and no other.
fn modified(stat: &Stat) -> Timestamps {
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: nanoseconds },
    }
}

pub(super) fn set_times(handle: BorrowedFd<'_>, times: &Timestamps) -> io::Result<()> {
    Ok(utimensat(CWD, proc_path(handle), times, AtFlags::empty())?)
}

/// Copies a file's data and leaves its holes. Fails before it has written more than `most`.
fn copy(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    size: u64,
    most: u64,
) -> Result<u64, NotCommitted> {
    ftruncate(to, size)?;
    let mut block = vec![0; BLOCK.min(usize::try_from(size).unwrap_or(BLOCK))];
    let (mut at, mut written) = (0, 0);
    while at < size {
        let (start, end) = match next_data(from, at) {
            Ok(Some((start, end))) => (start, end.min(size)),
            Ok(None) => break,
            Err(error) => return Err(error.into()),
        };
        written += end - start;
        if written > most {
            return Err(NotCommitted::TooLarge);
        }
        copy_range(from, to, start..end, &mut block)?;
        at = end;
    }
    Ok(written)
}

/// Where the next data is; all that is left, where the file system cannot say.
fn next_data(file: BorrowedFd<'_>, at: u64) -> Result<Option<(u64, u64)>, Errno> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(start) => Ok(Some((start, seek(file, SeekFrom::Hole(start))?))),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some((at, u64::MAX))),
        Err(error) => Err(error),
    }
}

fn copy_range(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    range: std::ops::Range<u64>,
    block: &mut [u8],
) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let wanted = usize::try_from(range.end - at).unwrap_or(BLOCK).min(block.len());
        let buffer = block.get_mut(..wanted).unwrap_or_default();
        let read = pread(from, &mut *buffer, at)?;
        let mut rest = buffer.get(..read).unwrap_or_default();
        if rest.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while !rest.is_empty() {
            let written = pwrite(to, rest, at)?;
            at += written as u64;
            rest = rest.get(written..).unwrap_or_default();
        }
    }
    Ok(())
}
