//! A session's `/work` from outside, while its guest is idle: writing, reading, listing and
//! removing files.
//!
//! The tree belongs to hostile code. Paths are plain and relative, no link is followed, only
//! regular files are read, and everything is done as the cell's user, also when the host is root:
//! new files belong to that user, and what that user may not do is refused. So a guest that changes
//! its files meanwhile harms only itself.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat},
    io::Errno,
};

use super::{
    beneath::{RootedTree, check_plain, look, split},
    change::EntryKind,
    stage::temporary_name,
};
use crate::{control::Ids, sys::filesystem_user::as_user};

/// The most entries that are visited for one list.
const MAX_VISITED: usize = 100_000;

/// The `/work` of one branch of a session.
#[derive(Debug)]
pub struct BranchFiles {
    work: OwnedFd,
    owner: Ids,
}

/// One file, directory or link in a branch's `/work`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchEntry {
    /// Relative to `/work`, any bytes.
    pub path: PathBuf,
    /// Whether it is a file, a directory or a link.
    pub kind: EntryKind,
    /// The size that the file system reports.
    pub bytes: u64,
}

impl BranchFiles {
    /// From the keeper's handle on `/work`, and the ids that the zygote's cells run as.
    pub fn new(work: OwnedFd, owner: Ids) -> Self {
        Self { work, owner }
    }

    /// Opens a regular file for reading; returns its size and the file.
    pub fn open(&self, path: &Path) -> io::Result<(u64, File)> {
        let file = as_user(self.owner, || self.tree().file(path))?;
        let found = fstat(&file)?;
        match EntryKind::of(&found) {
            EntryKind::File => Ok((found.st_size.unsigned_abs(), file.into())),
            EntryKind::Directory => Err(Errno::ISDIR.into()),
            EntryKind::Link | EntryKind::Other => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
            }
        }
    }

    /// Writes a file, replacing the one that is there, and creates its directories. It appears when
    /// it is complete; if it cannot be completed, nothing appears.
    ///
    /// Until then the branch cannot be branched.
    pub fn put(&self, path: &Path, content: &mut impl Read) -> io::Result<()> {
        check_plain(path)?;
        let (parent, name) = split(path).ok_or(Errno::INVAL)?;
        as_user(self.owner, || {
            let directory = self.make_directories(parent)?;
            let temporary = temporary_name()?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = openat(&directory, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
            let put = io::copy(content, &mut File::from(made))
                .and_then(|_| Ok(renameat(&directory, &temporary, &directory, name)?));
            if put.is_err() {
                let _ = unlinkat(&directory, &temporary, AtFlags::empty());
            }
            put
        })
    }

    /// Removes a file, a link or an empty directory.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        check_plain(path)?;
        let (parent, name) = split(path).ok_or(Errno::INVAL)?;
        as_user(self.owner, || {
            let directory = self.tree().directory(parent)?;
            match unlinkat(&directory, name, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => {
                    Ok(unlinkat(&directory, name, AtFlags::REMOVEDIR)?)
                }
                other => Ok(other?),
            }
        })
    }

    /// The entries, sorted by path, and whether there are more than `at_most`. Devices, pipes and
    /// sockets are left out.
    pub fn list(&self, at_most: usize) -> io::Result<(Vec<BranchEntry>, bool)> {
        let (mut found, is_cut) = as_user(self.owner, || self.visit_all())?;
        found.sort_by(|one, other| one.path.as_os_str().cmp(other.path.as_os_str()));
        let is_cut = is_cut || found.len() > at_most;
        found.truncate(at_most);
        Ok((found, is_cut))
    }

    /// All entries up to [`MAX_VISITED`], and whether there are more.
    fn visit_all(&self) -> io::Result<(Vec<BranchEntry>, bool)> {
        let (mut found, mut visited) = (Vec::new(), 0);
        let (tree, mut pending) = (self.tree(), vec![PathBuf::new()]);
        while let Some(directory) = pending.pop() {
            // A directory that is gone by now, or closed to the guest's own user, is left out.
            let Ok(open) = tree.listing(&directory) else { continue };
            for entry in Dir::read_from(&open)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                visited += 1;
                if visited > MAX_VISITED {
                    return Ok((found, true));
                }
                let Ok(Some(stat)) = look(&open, name) else { continue };
                let (path, kind) = (directory.join(name), EntryKind::of(&stat));
                match kind {
                    EntryKind::Other => continue,
                    EntryKind::Directory => pending.push(path.clone()),
                    EntryKind::File | EntryKind::Link => {}
                }
                found.push(BranchEntry { path, kind, bytes: stat.st_size.unsigned_abs() });
            }
        }
        Ok((found, false))
    }

    /// Each directory is opened beneath `/work`, and only then is something made in it.
    fn make_directories(&self, path: &Path) -> io::Result<OwnedFd> {
        let tree = self.tree();
        let mut steps: Vec<&Path> = path.ancestors().collect();
        steps.reverse();
        for step in steps {
            let Some((parent, name)) = split(step) else { continue };
            match mkdirat(tree.directory(parent)?, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        tree.directory(path)
    }

    fn tree(&self) -> RootedTree<'_> {
        RootedTree::new(self.work.as_fd())
    }
}

#[cfg(test)]
mod tests;
