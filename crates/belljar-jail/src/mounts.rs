//! The file system that a zygote and a cell see: a minimal read-only root, and in each cell a sized
//! `/tmp` and `/work` and a `/proc` of its own.
//!
//! All of it lives in private mount namespaces made of memory, so it is gone with the processes.

mod cell;
mod covered;
mod granted;
mod layers;
mod parts;
mod session;

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat, symlinkat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
        OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
        fsmount, fsopen, mount_change, move_mount, open_tree, unmount,
    },
    process::{chdir, pivot_root},
};

pub(crate) use cell::{
    mount_private_proc, mount_scratch, mount_session_proc, open_work, resize_scratch,
    scratch_for_trial,
};
pub(crate) use granted::{LayeredWork, enter_granted_root};
pub(crate) use session::{MAX_BRANCHES, NewBranch, SessionRoot};

use crate::{Guests, sys};

/// No mount of ours has anything executable, setuid or a device on it, except as below.
const INERT: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);
/// The host's software can be read and executed, not written.
pub(crate) const SOFTWARE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_RDONLY);
/// A device file must work as one, and as nothing else.
pub(crate) const DEVICE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC)
    .union(MountAttrFlags::MOUNT_ATTR_RDONLY);

/// Devices that programs need, each with the host's device that it is. None leads out of the cell.
///
/// A shared mapping of `/dev/zero` is memory that no limit counts once it is all but unmapped.
/// `/dev/full` gives zeros as well and cannot be mapped.
pub(crate) const DEVICES: [(&str, &str); 4] = [
    ("/dev/null", "/dev/null"),
    ("/dev/zero", "/dev/full"),
    ("/dev/full", "/dev/full"),
    ("/dev/urandom", "/dev/urandom"),
];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("dev/random", "urandom"),
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
];

/// Directories of the minimal root, all of them mount points of cells.
const ROOT_DIRECTORIES: [&str; 3] = ["proc", "tmp", "work"];

/// Where the new root is put together before it becomes the root; any directory will do.
const STAGING: [&str; 2] = ["/tmp", "/proc"];

const DIRECTORY: Mode = Mode::from_raw_mode(0o755);

/// The content of a zygote's root besides its mount points.
#[derive(Debug, Default)]
pub(crate) struct RootContents {
    /// Detached trees, and where they go.
    pub(crate) trees: Vec<(PathBuf, OwnedFd)>,
    /// Symbolic links, as `(path, target)`.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// Files to write, by their path in the root.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
}

/// Replaces the root of this mount namespace by a minimal, read-only one.
pub(crate) fn pivot_to_minimal_root(guests: Guests, contents: &RootContents) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let attributes = match guests {
        Guests::Script => INERT,
        // The library a program loads to become a zygote is a file of the root.
        Guests::Programs => SOFTWARE.difference(MountAttrFlags::MOUNT_ATTR_RDONLY),
    };
    let of_files: usize = contents.files.iter().map(|(_, bytes)| bytes.len()).sum();
    let (bytes, inodes) = match guests {
        Guests::Script => (64 << 10, "16"),
        Guests::Programs => ((16 << 20) + of_files, "1024"),
    };
    let bytes = bytes.to_string();
    let size = [("size", bytes.as_str()), ("nr_inodes", inodes), ("mode", "0755")];
    let [first, second] = STAGING;
    let staging = match attach_as("tmpfs", &size, first, attributes) {
        Err(Errno::NOENT) => attach_as("tmpfs", &size, second, attributes).map(|()| second),
        other => other.map(|()| first),
    }?;
    chdir(staging)?;
    for directory in ROOT_DIRECTORIES {
        mkdirat(CWD, directory, DIRECTORY)?;
    }
    attach("proc", &[("subset", "pid")], "proc")?;
    fill_root(contents)?;
    become_root()
}

/// Makes the current directory, a mount point, the read-only root.
fn become_root() -> io::Result<()> {
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    let flags = OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let root = open_tree(CWD, "/", flags)?;
    sys::mount::add_attributes_here(&root, MountAttrFlags::MOUNT_ATTR_RDONLY)
}

/// Fills the current directory, which is to become the root.
fn fill_root(contents: &RootContents) -> io::Result<()> {
    for (path, tree) in &contents.trees {
        place_tree(tree, path)?;
    }
    for (path, bytes) in &contents.files {
        let path = inside(path);
        make_parents(path)?;
        fs::write(path, bytes)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    for (path, to) in &contents.links {
        let path = inside(path);
        make_parents(path)?;
        symlinkat(to, CWD, path)?;
    }
    if contents
        .trees
        .iter()
        .any(|(path, _)| DEVICES.iter().any(|(device, _)| path.as_os_str() == *device))
    {
        for (path, to) in DEVICE_LINKS {
            symlinkat(to, CWD, path)?;
        }
    }
    Ok(())
}

/// Moves a detached tree to a path beneath the current directory, and creates its parents.
pub(crate) fn place_tree(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    let target = inside(path);
    make_parents(target)?;
    let is_directory = rustix::fs::fstat(tree)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
    let made = if is_directory {
        mkdirat(CWD, target, DIRECTORY)
    } else {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(CWD, target, flags, Mode::from_raw_mode(0o600)).map(drop)
    };
    match made {
        // It may be there already, on a read-only tree that was placed before.
        Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(move_mount(tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// A path of the root to be, as seen from the current directory.
fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn make_parents(path: &Path) -> io::Result<()> {
    let parents: Vec<_> =
        path.ancestors().skip(1).filter(|at| !at.as_os_str().is_empty()).collect();
    for parent in parents.into_iter().rev() {
        match mkdirat(CWD, parent, DIRECTORY) {
            Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn attach(kind: &str, options: &[(&str, &str)], target: &str) -> Result<(), Errno> {
    attach_as(kind, options, target, INERT)
}

/// Mounts a new file system. An option without a value is a flag.
fn attach_as(
    kind: &str,
    options: &[(&str, &str)],
    target: &str,
    attributes: MountAttrFlags,
) -> Result<(), Errno> {
    let mount = make_mount(kind, options, attributes)?;
    move_mount(&mount, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// Makes a new file system that is mounted nowhere yet.
fn make_mount(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(&context, *key)?;
        } else {
            fsconfig_set_string(&context, *key, *value)?;
        }
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Copies a mount to another place of this mount namespace.
fn bind(from: &str, to: &str) -> Result<(), Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, from, flags)?;
    move_mount(&tree, "", CWD, to, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}
