//! A session's `/work` from outside, while its guest is idle: files put in, taken out, listed.
//!
//! The tree belongs to hostile code. Paths are plain and relative, no link is followed, nothing but
//! regular files is read, and whatever is made there belongs to the cell's user, as the cell's own
//! files do, also when the host is root.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat},
    io::Errno,
};

use super::{
    beneath::{Tree, check_plain, look, names, split},
    change::EntryKind,
    stage::temporary_name,
};
use crate::{control::Ids, sys::owner::FilesBelongTo};

const DIRECTORY: Mode = Mode::from_raw_mode(0o755);
const FILE: Mode = Mode::from_raw_mode(0o644);

/// A branch's `/work`.
#[derive(Debug)]
pub struct BranchFiles {
    work: OwnedFd,
    owner: Ids,
}

/// What a directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name, any bytes.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
    /// Its size, if it is a regular file.
    pub bytes: u64,
}

/// A file on its way in. Nobody sees it before it is whole; dropped before that, it is gone.
#[derive(Debug)]
pub struct Upload {
    file: Option<File>,
    directory: OwnedFd,
    temporary: String,
    name: OsString,
    owner: Ids,
}

impl BranchFiles {
    /// By the handle a keeper gives, and whom the zygote's cells run as.
    pub fn new(work: OwnedFd, owner: Ids) -> Self {
        Self { work, owner }
    }

    /// Opens a regular file to be read.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let _as_owner = FilesBelongTo::owner(self.owner);
        let file = Tree::new(self.work.as_fd()).file(path)?;
        match EntryKind::of(&fstat(&file)?) {
            EntryKind::File => Ok(file.into()),
            EntryKind::Directory => Err(Errno::ISDIR.into()),
            EntryKind::Link | EntryKind::Other => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
            }
        }
    }

    /// Begins to put a file in, and makes the directories that lead there. It takes its place, and that
    /// of a file that is there, when it is [finished](Upload::finish).
    ///
    /// As long as it is open the branch cannot be branched.
    pub fn create(&self, path: &Path) -> io::Result<Upload> {
        check_plain(path)?;
        let (parent, name) = split(path).ok_or(Errno::INVAL)?;
        let _as_owner = FilesBelongTo::owner(self.owner);
        let directory = self.make_directories(parent)?;
        if look(&directory, name)?
            .is_some_and(|found| EntryKind::of(&found) == EntryKind::Directory)
        {
            return Err(Errno::ISDIR.into());
        }
        let temporary = temporary_name()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&directory, &temporary, flags, FILE)?;
        let (name, owner) = (name.to_owned(), self.owner);
        Ok(Upload { file: Some(file.into()), directory, temporary, name, owner })
    }

    /// What a directory holds, sorted by name, `""` being `/work` itself; `None` if there is more
    /// than this.
    pub fn list(&self, path: &Path, most: usize) -> io::Result<Option<Vec<Listed>>> {
        let _as_owner = FilesBelongTo::owner(self.owner);
        let directory = Tree::new(self.work.as_fd()).listing(path)?;
        let Some(names) = names(&directory, most)? else { return Ok(None) };
        let mut listed = Vec::new();
        for name in names {
            let Some(found) = look(&directory, &name)? else { continue };
            let kind = EntryKind::of(&found);
            let bytes = match kind {
                EntryKind::File => found.st_size.unsigned_abs(),
                EntryKind::Directory | EntryKind::Link | EntryKind::Other => 0,
            };
            listed.push(Listed { name, kind, bytes });
        }
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Some(listed))
    }

    /// Each directory is opened beneath `/work`, and only then is something made in it.
    fn make_directories(&self, path: &Path) -> io::Result<OwnedFd> {
        let tree = Tree::new(self.work.as_fd());
        let mut steps: Vec<&Path> = path.ancestors().collect();
        steps.reverse();
        for step in steps {
            let Some((parent, name)) = split(step) else { continue };
            match mkdirat(tree.directory(parent)?, name, DIRECTORY) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        tree.directory(path)
    }
}

impl Upload {
    /// Puts the file in its place.
    pub fn finish(mut self) -> io::Result<()> {
        self.file = None;
        let _as_owner = FilesBelongTo::owner(self.owner);
        renameat(&self.directory, &self.temporary, &self.directory, &self.name)?;
        self.temporary.clear();
        Ok(())
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.flush()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.file = None;
        if !self.temporary.is_empty() {
            let _as_owner = FilesBelongTo::owner(self.owner);
            let _ = unlinkat(&self.directory, &self.temporary, AtFlags::empty());
        }
    }
}
