//! New entries of a directory, made out of sight and put in place in one step.
//!
//! An entry that is already there is never lost: either the step fails, or the two entries are
//! exchanged and the old one is removed only after it was recognised.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with,
        symlinkat, unlinkat,
    },
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

use super::{
    beneath::{look, proc_path},
    change::InodeSnapshot,
    commit::NotCommitted,
};

/// Only the owner has access until the file is in place.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A new file that has no visible name yet.
#[derive(Debug)]
pub(super) struct StagedFile<'fd> {
    directory: BorrowedFd<'fd>,
    file: OwnedFd,
    /// Set where the file system has no files without a name.
    temporary: Option<TemporaryEntry<'fd>>,
}

/// An entry under an unguessable name; removed when dropped.
#[derive(Debug)]
pub(super) struct TemporaryEntry<'fd> {
    directory: BorrowedFd<'fd>,
    name: String,
}

impl<'fd> StagedFile<'fd> {
    pub(super) fn new(directory: BorrowedFd<'fd>) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::TMPFILE;
        match openat(directory, ".", flags, PRIVATE) {
            Ok(file) => Ok(Self { directory, file, temporary: None }),
            // The errors of file systems and kernels without such files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                Self::named(directory)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn named(directory: BorrowedFd<'fd>) -> io::Result<Self> {
        let name = temporary_name()?;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(directory, &name, flags | OFlags::CREATE | OFlags::EXCL, PRIVATE)?;
        Ok(Self { directory, file, temporary: Some(TemporaryEntry { directory, name }) })
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Puts the file in place of `expected`, or of nothing.
    pub(super) fn place(
        self,
        name: &OsStr,
        expected: Option<&InodeSnapshot>,
    ) -> Result<(), NotCommitted> {
        let Self { directory, file, temporary } = self;
        match (temporary, expected) {
            (Some(temporary), _) => temporary.place(name, expected),
            (None, None) => match link(&file, directory, name) {
                Err(Errno::EXIST) => Err(NotCommitted::Conflict),
                other => Ok(other?),
            },
            (None, Some(_)) => {
                let temporary = temporary_name()?;
                link(&file, directory, OsStr::new(&temporary))?;
                TemporaryEntry { directory, name: temporary }.place(name, expected)
            }
        }
    }
}

/// Gives a name to a file without one.
fn link(file: &OwnedFd, directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    linkat(CWD, proc_path(file.as_fd()), directory, name, AtFlags::SYMLINK_FOLLOW)
}

impl<'fd> TemporaryEntry<'fd> {
    /// A symbolic link that is not in place yet.
    pub(super) fn symlink(directory: BorrowedFd<'fd>, target: &OsStr) -> io::Result<Self> {
        let name = temporary_name()?;
        symlinkat(target, directory, &name)?;
        Ok(Self { directory, name })
    }

    /// A handle on the entry itself, not to read it.
    pub(super) fn entry(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(self.directory, &self.name, flags, Mode::empty())?)
    }

    /// Puts the entry in place of `expected`, or of nothing.
    pub(super) fn place(
        self,
        name: &OsStr,
        expected: Option<&InodeSnapshot>,
    ) -> Result<(), NotCommitted> {
        match expected {
            None => self.place_new(name),
            Some(seen) => self.place_instead(name, seen),
        }
    }

    fn place_new(self, name: &OsStr) -> Result<(), NotCommitted> {
        let directory = self.directory;
        let mut placed =
            renameat_with(directory, &self.name, directory, name, RenameFlags::NOREPLACE);
        if is_unsupported(placed) {
            placed = linkat(directory, &self.name, directory, name, AtFlags::empty());
        } else if placed.is_ok() {
            self.forget();
        }
        match placed {
            Err(Errno::EXIST) => Err(NotCommitted::Conflict),
            other => Ok(other?),
        }
    }

    fn place_instead(self, name: &OsStr, seen: &InodeSnapshot) -> Result<(), NotCommitted> {
        let directory = self.directory;
        let holds = |wanted: &InodeSnapshot| {
            let found = look(directory, OsStr::new(&self.name));
            found.is_ok_and(|found| found.is_some_and(|found| wanted.matches(&found)))
        };
        let new = look(directory, OsStr::new(&self.name))?.ok_or(NotCommitted::Conflict)?;
        let exchange =
            || renameat_with(directory, &self.name, directory, name, RenameFlags::EXCHANGE);
        let exchanged = exchange();
        if is_unsupported(exchanged) {
            return self.place_over(name, seen);
        }
        match exchanged {
            Err(Errno::NOENT) => return Err(NotCommitted::Conflict),
            other => other?,
        }
        if holds(seen) {
            return Ok(());
        }
        let mut undone = exchange();
        if undone.is_ok() && !holds(&InodeSnapshot::of(&new)) {
            // Another process replaced it once more before it was undone, and that one is the
            // latest.
            undone = exchange();
        }
        if let Err(error) = undone {
            // Another process's file is under our name now: leave it rather than lose it.
            self.forget();
            return Err(error.into());
        }
        Err(NotCommitted::Conflict)
    }

    /// For file systems that cannot exchange entries: a file created between check and rename is
    /// lost.
    fn place_over(self, name: &OsStr, seen: &InodeSnapshot) -> Result<(), NotCommitted> {
        let directory = self.directory;
        if !look(directory, name)?.is_some_and(|now| seen.matches(&now)) {
            return Err(NotCommitted::Conflict);
        }
        renameat(directory, &self.name, directory, name)?;
        self.forget();
        Ok(())
    }

    /// Keeps the entry of this name when dropped.
    fn forget(mut self) {
        self.name.clear();
    }
}

impl Drop for TemporaryEntry<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn is_unsupported(outcome: Result<(), Errno>) -> bool {
    matches!(outcome, Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP))
}

/// A new name that cannot be guessed.
pub(super) fn temporary_name() -> io::Result<String> {
    let mut random = [0_u8; 16];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let mut name = String::from(".belljar-");
    for byte in random {
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}

#[cfg(test)]
mod tests;
