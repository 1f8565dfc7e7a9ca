//! Hiding parts of a granted tree from its cell: a layer of whiteouts over the tree.
//!
//! A whiteout hides a name, whatever has that name: a file that is replaced or created during the
//! run stays hidden. A mount on top of the file would disappear with the file.

use std::{
    ffi::OsStr,
    io,
    os::fd::OwnedFd,
    path::{Component, Path},
};

use rustix::{
    fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, accessat, fstat, mkdirat, mknodat, openat},
    io::Errno,
    mount::{MountAttrFlags, MoveMountFlags, move_mount},
    process::umask,
};

use super::{INERT, make_mount};
use crate::{GrantedTree, TreeAccess};

/// Where layers and covered trees are, on the cell's scratch file system but out of its sight.
const BASE: &str = "/tmp/covers";
const PRIVATE: Mode = Mode::from_raw_mode(0o700);
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
/// The bits of a directory's mode that a copy of it gets.
const COPIED: u32 = 0o1777;

/// The layer that covers parts of one tree.
#[derive(Debug)]
pub(super) struct Cover {
    layer: String,
    /// An empty directory, for the tree itself.
    tree: String,
}

impl Cover {
    /// Makes the layer for a tree, if it needs one. `name` tells it from others of the cell.
    pub(super) fn of(tree: &GrantedTree, handle: &OwnedFd, name: &str) -> io::Result<Option<Self>> {
        if tree.covered.is_empty() { Ok(None) } else { Self::made(tree, handle, name).map(Some) }
    }

    /// Makes the layer for a tree, whether it has something to hide or not.
    pub(super) fn made(tree: &GrantedTree, handle: &OwnedFd, name: &str) -> io::Result<Self> {
        if tree.access == TreeAccess::Write || !tree.is_directory {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let at = format!("{BASE}/{name}");
        let cover = Self { layer: format!("{at}/layer"), tree: format!("{at}/tree") };
        match mkdirat(CWD, BASE, PRIVATE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        mkdirat(CWD, &at, PRIVATE)?;
        mkdirat(CWD, &cover.tree, PRIVATE)?;
        let before = umask(Mode::empty());
        let made = cover.make_layer(tree, handle);
        umask(before);
        made.map(|()| cover)
    }

    fn make_layer(&self, tree: &GrantedTree, handle: &OwnedFd) -> io::Result<()> {
        let root = openat(handle, ".", PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?;
        repeat_directory(&root, CWD, OsStr::new(&self.layer), TreeAccess::Read)?;
        tree.covered.iter().try_for_each(|path| self.hide(path, &root, tree.access))
    }

    /// Hides one path, or as much of what leads there as the guest could not pass now.
    fn hide(&self, path: &Path, root: &OwnedFd, access: TreeAccess) -> io::Result<()> {
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
        if !is_plain {
            return Err(Errno::INVAL.into());
        }
        let mut original = root.try_clone()?;
        let mut layer = openat(CWD, &self.layer, PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?;
        for part in parent.iter() {
            original = match openat(&original, part, PATH_ONLY, Mode::empty()) {
                Ok(found) => found,
                Err(Errno::NOENT | Errno::ACCESS) => return whiteout(&layer, part),
                Err(errno) => return Err(errno.into()),
            };
            layer = repeat_directory(&original, &layer, part, access)?;
        }
        whiteout(&layer, name)
    }

    /// Where the layer is.
    pub(super) fn layer(&self) -> &str {
        &self.layer
    }

    /// The value of `lowerdir` that lays it over the tree at a path.
    pub(super) fn over(&self, tree: &str) -> String {
        format!("{}:{tree}", self.layer)
    }
}

/// A read-only view of a tree with its cover over it. Mounts beneath it are not seen in there.
pub(super) fn covered_view(cover: &Cover, handle: &OwnedFd) -> io::Result<OwnedFd> {
    move_mount(handle, "", CWD, &*cover.tree, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let lower = cover.over(&cover.tree);
    let options = [("userxattr", ""), ("lowerdir", &*lower)];
    Ok(make_mount("overlay", &options, INERT | MountAttrFlags::MOUNT_ATTR_RDONLY)?)
}

fn whiteout(layer: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match mknodat(layer, name, FileType::CharacterDevice, Mode::empty(), 0) {
        Ok(()) => Ok(()),
        // Two hidden paths may share this name, which needs one whiteout.
        Err(Errno::EXIST) if is_whiteout(layer, name)? => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn is_whiteout(layer: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    let found = fstat(openat(layer, name, PATH_ONLY, Mode::empty())?)?;
    Ok(FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice)
}

/// Makes a directory of the layer, which shows in place of the original one and so must allow no
/// more than that does.
fn repeat_directory(
    original: &OwnedFd,
    layer: impl std::os::fd::AsFd,
    name: &OsStr,
    access: TreeAccess,
) -> io::Result<OwnedFd> {
    let found = fstat(original)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return Err(io::Error::other("a link or file stands in the path of a protected file"));
    }
    let is_own = found.st_uid == rustix::process::getuid().as_raw();
    if !is_own && access == TreeAccess::Workspace {
        return Err(io::Error::other("a directory above a protected path belongs to another user"));
    }
    let mode = if is_own { found.st_mode & COPIED } else { allowed(original) };
    match mkdirat(&layer, name, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(openat(&layer, name, PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?)
}

/// The mode bits that say what this process may do with another user's directory, without
/// capabilities.
fn allowed(directory: &OwnedFd) -> u32 {
    let may = |what| accessat(directory, ".", what, AtFlags::empty()).is_ok();
    let bits = if may(Access::READ_OK) { 4 } else { 0 } | if may(Access::EXEC_OK) { 1 } else { 0 };
    bits << 6 | bits << 3 | bits
}
