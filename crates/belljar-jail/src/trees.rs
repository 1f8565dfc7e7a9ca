//! Detached trees: parts of the host's file tree that are handed to a cell.
//!
//! A pivoted zygote cannot see the host's files, and a directory's descriptor from outside cannot
//! be mounted inside. A detached copy of its mount can: it is made where the host's tree is still
//! seen, by root as itself, by an ordinary user in namespaces of a short-lived process's own.

use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    mount::{MountAttrFlags, OpenTreeFlags, open_tree},
    process::{Pid, WaitId, WaitIdOptions, getuid, waitid},
};

use crate::{
    GrantedTree, TreeAccess,
    control::{self, Ids, ZygoteReply},
    identity::OuterIds,
    sys::{
        self,
        process::{CloneSide, exit_now},
    },
};

/// No grant brings programs, devices or setuid files with it.
const GRANTED: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// The meaning of `EINVAL` for a tree whose owner is to appear as another user.
const NOT_MAPPED: &str = "its file system does not support id-mapped mounts, which a host that runs \
     as root needs (ext4, XFS and Btrfs do, tmpfs from Linux 6.3 on): run belljar as the owner of \
     the files instead";

/// Detaches a copy of the mounts at a path and beneath, with attributes added.
///
/// With `owner`, the owner of the path appears as that user.
pub(crate) fn detach(
    path: &Path,
    attributes: MountAttrFlags,
    owner: Option<Ids>,
) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, path, flags)?;
    let map = owner.map(|shown| id_map(&tree, shown)).transpose()?;
    match sys::mount::add_attributes(&tree, attributes, map.as_ref().map(AsFd::as_fd)) {
        Ok(()) => Ok(tree),
        Err(error) if map.is_some() && error.raw_os_error() == Some(libc::EINVAL) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, NOT_MAPPED))
        }
        Err(error) => Err(error),
    }
}

/// A user namespace that maps the owner of a tree to the user it is to appear as.
fn id_map(tree: &OwnedFd, shown: Ids) -> io::Result<OwnedFd> {
    let real = fs::metadata(format!("/proc/self/fd/{}", tree.as_raw_fd()))?;
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match sys::process::clone(libc::CLONE_NEWUSER)? {
        CloneSide::Child => {
            drop(write);
            let _ = rustix::io::read(&read, &mut [0; 1]);
            exit_now(0)
        }
        CloneSide::Parent { pid, .. } => {
            let map = map_ids(pid, (real.uid(), real.gid()), shown);
            drop(write);
            waitid(WaitId::Pid(pid), WaitIdOptions::EXITED)?;
            map
        }
    }
}

/// Maps one user and one group in the user namespace of a process, and opens it.
fn map_ids(pid: Pid, (uid, gid): (u32, u32), shown: Ids) -> io::Result<OwnedFd> {
    let of_child = |file: &str| format!("/proc/{}/{file}", pid.as_raw_pid());
    fs::write(of_child("uid_map"), format!("{uid} {} 1", shown.uid))?;
    fs::write(of_child("gid_map"), format!("{gid} {} 1", shown.gid))?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(openat(CWD, of_child("ns/user"), flags, Mode::empty())?)
}

/// Detaches the trees that a cell is granted, for the host that asks over `control`, and ends.
pub(crate) fn hand_over(control: &OwnedFd, trees: &[GrantedTree], cells: Ids) -> io::Result<()> {
    let is_root = getuid().is_root();
    let owner = is_root.then_some(cells);
    let prepared = if is_root { Ok(()) } else { enter_own_namespaces() };
    let mut detached = Vec::new();
    for tree in trees {
        let read_only = match tree.access {
            TreeAccess::Read | TreeAccess::Workspace => MountAttrFlags::MOUNT_ATTR_RDONLY,
            TreeAccess::Write => MountAttrFlags::empty(),
        };
        let made = match &prepared {
            Ok(()) => detach(&tree.path, GRANTED | read_only, owner)
                .and_then(|detached| same(detached, tree.identity)),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        match made {
            Ok(tree) => detached.push(tree),
            Err(error) => {
                let (path, message) = (tree.path.clone(), error.to_string());
                return control::send(control, &ZygoteReply::NoTree { path, message }, &[]);
            }
        }
    }
    let fds: Vec<_> = detached.iter().map(AsFd::as_fd).collect();
    control::send(control, &ZygoteReply::Trees, &fds)
}

/// The tree, if it is the one that was granted.
fn same(tree: OwnedFd, identity: (u64, u64)) -> io::Result<OwnedFd> {
    let found = rustix::fs::fstat(&tree)?;
    if (found.st_dev, found.st_ino) == identity {
        return Ok(tree);
    }
    Err(io::Error::other("it was replaced while the run was being prepared"))
}

fn enter_own_namespaces() -> io::Result<()> {
    let ids = OuterIds::current();
    sys::process::unshare_user()?;
    ids.map_inside()?;
    sys::process::unshare_mounts()
}
