//! An upper directory, whose files the guest may have made unreadable for their owner.
//!
//! A host that is an ordinary user cannot open what the guest gave mode 0. It owns the file,
//! though, so it changes the mode and restores it when done. No other process uses the tree by
//! then.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, Stat, fstat};

use super::beneath::{RootedTree, WORKABLE, change_mode};

/// The permission needed to read a file.
const READABLE: u32 = 0o400;

#[derive(Debug)]
pub(super) struct Upper<'fd> {
    tree: RootedTree<'fd>,
    /// Modes to restore; parents sort before their content.
    unlocked: RefCell<BTreeMap<PathBuf, u32>>,
}

impl<'fd> Upper<'fd> {
    pub(super) fn new(root: BorrowedFd<'fd>) -> Self {
        Self { tree: RootedTree::new(root), unlocked: RefCell::default() }
    }

    /// A directory to list.
    pub(super) fn listing(&self, path: &Path) -> io::Result<OwnedFd> {
        self.or_unlock(path, || self.tree.listing(path))
    }

    /// A file to read.
    pub(super) fn file(&self, path: &Path) -> io::Result<OwnedFd> {
        self.or_unlock(path, || self.tree.file(path))
    }

    /// A handle on any kind of file, not to read it.
    pub(super) fn entry(&self, path: &Path) -> io::Result<OwnedFd> {
        self.or_unlock(path, || self.tree.entry(path))
    }

    /// The mode the guest left, whatever it has been changed to since.
    pub(super) fn mode(&self, path: &Path, stat: &Stat) -> u32 {
        self.unlocked.borrow().get(path).copied().unwrap_or(stat.st_mode) & 0o7777
    }

    fn or_unlock(
        &self,
        path: &Path,
        open: impl Fn() -> io::Result<OwnedFd>,
    ) -> io::Result<OwnedFd> {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.unlock(path).map_err(|_| error)?;
                open()
            }
            other => other,
        }
    }

    /// Adds the owner's permissions to a path and its parents, from the top.
    fn unlock(&self, path: &Path) -> io::Result<()> {
        let mut steps: Vec<&Path> = path.ancestors().collect();
        steps.reverse();
        for step in steps {
            let entry = self.tree.entry(step)?;
            let mode = fstat(&entry)?.st_mode;
            let needed = match FileType::from_raw_mode(mode) {
                FileType::Directory => WORKABLE,
                FileType::RegularFile => READABLE,
                FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => continue,
            };
            if mode & needed != needed {
                change_mode(entry.as_fd(), mode | needed)?;
                self.unlocked.borrow_mut().insert(step.to_owned(), mode);
            }
        }
        Ok(())
    }
}

impl Drop for Upper<'_> {
    fn drop(&mut self) {
        for (path, mode) in std::mem::take(self.unlocked.get_mut()).into_iter().rev() {
            if let Ok(entry) = self.tree.entry(&path) {
                let _ = change_mode(entry.as_fd(), mode);
            }
        }
    }
}
