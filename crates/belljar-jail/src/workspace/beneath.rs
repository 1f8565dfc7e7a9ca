//! Opening paths beneath a directory handle, through no link of any kind.
//!
//! This is the only way from a guest's path to a host's file. Paths are relative and of plain names
//! only; anything else is refused before the kernel sees it.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, Stat, chmodat, openat, openat2, statat},
    io::Errno,
};

/// The most levels below the workspace that are walked. Each open costs one lookup per level, so
/// this bounds the time of a walk; real trees are an order of magnitude flatter.
pub(super) const MAX_DEPTH: usize = 256;
/// The longest path that is opened: the limit of one system call, without the terminating NUL.
pub(super) const MAX_PATH: usize = 4095;

/// Permissions an owner needs to list, search and change a directory.
pub(super) const WORKABLE: u32 = 0o700;

const PLAIN: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW);
/// Mounts stay closed too: an overlay shows what is underneath those of its lower directory.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// A directory, and how paths beneath it are resolved.
#[derive(Debug)]
pub(super) struct RootedTree<'fd> {
    root: BorrowedFd<'fd>,
    resolution: PathResolution,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathResolution {
    /// One `openat2`, which refuses links, `..` and magic links by itself.
    InKernel,
    /// One `openat` a component, for kernels and containers without `openat2`.
    ByComponent,
}

impl<'fd> RootedTree<'fd> {
    pub(super) fn new(root: BorrowedFd<'fd>) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | PLAIN;
        let probe = openat2(root, ".", flags, Mode::empty(), ResolveFlags::BENEATH);
        let resolution = match probe {
            // Some containers answer calls they do not know with EPERM.
            Err(Errno::NOSYS | Errno::PERM) => PathResolution::ByComponent,
            Ok(_) | Err(_) => PathResolution::InKernel,
        };
        Self { root, resolution }
    }

    /// A directory to work in; it need not be readable.
    pub(super) fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open(path, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// A directory to list.
    pub(super) fn listing(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// A file to read. Never waits for the other end of a fifo; whether it is a regular file is for
    /// the caller to check.
    pub(super) fn file(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    /// A handle on any kind of file, links included, to look at but not to read.
    pub(super) fn entry(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open(path, OFlags::PATH)
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        check_plain(path)?;
        let flags = flags | PLAIN;
        let opened = match self.resolution {
            PathResolution::InKernel => self.open_in_kernel(path, flags),
            PathResolution::ByComponent => self.open_by_component(path, flags),
        };
        Ok(opened?)
    }

    fn open_in_kernel(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        openat2(self.root, path, flags, Mode::empty(), RESOLVE)
    }

    fn open_by_component(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let step = OFlags::PATH | OFlags::DIRECTORY | PLAIN;
        let Some((parent, name)) = split(path) else {
            return openat(self.root, ".", flags, Mode::empty());
        };
        let mut here = openat(self.root, ".", step, Mode::empty())?;
        for component in parent {
            here = openat(&here, component, step, Mode::empty())?;
        }
        openat(&here, name, flags, Mode::empty())
    }
}

/// Whether a path is relative, of plain names only, and within the bounds of a walk.
pub(super) fn check_plain(path: &Path) -> io::Result<()> {
    let bytes = path.as_os_str().as_bytes();
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || bytes.contains(&0) {
        return Err(Errno::INVAL.into());
    }
    if bytes.len() > MAX_PATH || path.components().count() > MAX_DEPTH {
        return Err(Errno::NAMETOOLONG.into());
    }
    Ok(())
}

/// The directory a path is in, and its name there.
pub(super) fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    Some((path.parent()?, path.file_name()?))
}

/// The names in a directory, up to a number of them; `None` if there are more.
pub(super) fn names(directory: impl AsFd, most: usize) -> io::Result<Option<Vec<OsString>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == most {
            return Ok(None);
        }
        names.push(OsString::from_vec(name.to_vec()));
    }
    Ok(Some(names))
}

/// The status of a directory's entry; a link is not followed. `None` if there is no such entry.
pub(super) fn look(directory: impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Changes the permissions of the file behind a handle, also one opened with `O_PATH`.
pub(super) fn change_mode(handle: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let mode = Mode::from_raw_mode(mode & 0o7777);
    Ok(chmodat(CWD, proc_path(handle), mode, AtFlags::empty())?)
}

/// The path that leads to the file behind a handle, and to nothing else.
pub(super) fn proc_path(handle: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

#[cfg(test)]
mod tests;
