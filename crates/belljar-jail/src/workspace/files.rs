//! A session's `/work` from outside, while its guest is idle: files put in, taken out, listed, removed.
//!
//! The tree belongs to hostile code. Paths are plain and relative, no link is followed, nothing but
//! regular files is read, and everything is done as the cell's user, also when the host is root: what
//! is made belongs to that user, and what that user may not do is refused. So a guest that changes its
//! files meanwhile changes only what it gets.

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

/// Entries that are looked at for one list.
const MAX_VISITED: usize = 100_000;

/// A branch's `/work`.
#[derive(Debug)]
pub struct BranchFiles {
    work: OwnedFd,
    owner: Ids,
}

/// What there is in a branch's `/work`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchEntry {
    /// Relative to `/work`, any bytes.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// Its size.
    pub bytes: u64,
}

impl BranchFiles {
    /// By the handle a keeper gives, and whom the zygote's cells run as.
    pub fn new(work: OwnedFd, owner: Ids) -> Self {
        Self { work, owner }
    }

    /// Opens a regular file to be read; how large it is.
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

    /// Puts a file in, in place of one that is there, and makes the directories that lead there.
    /// Nobody sees it before it is whole; if it cannot be, it was never there.
    ///
    /// Until it is there the branch cannot be branched.
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

    /// Removes a file or a link, or a directory with nothing in it.
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

    /// What there is, sorted by path, and whether there is more than `at_most`. Devices, pipes and
    /// sockets are nothing to be handed out, and are left out.
    pub fn list(&self, at_most: usize) -> io::Result<(Vec<BranchEntry>, bool)> {
        let (mut found, is_cut) = as_user(self.owner, || self.visit_all())?;
        found.sort_by(|one, other| one.path.as_os_str().cmp(other.path.as_os_str()));
        let is_cut = is_cut || found.len() > at_most;
        found.truncate(at_most);
        Ok((found, is_cut))
    }

    /// Everything, as far as that is looked at, and whether there is more.
    fn visit_all(&self) -> io::Result<(Vec<BranchEntry>, bool)> {
        let (mut found, mut visited) = (Vec::new(), 0);
        let (tree, mut pending) = (self.tree(), vec![PathBuf::new()]);
        while let Some(directory) = pending.pop() {
            // One that is gone by now, or closed to the guest's own user, shows nothing.
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
