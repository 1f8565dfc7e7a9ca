//! What a zygote and a cell see of the file system: a minimal read-only root, and in each cell a
//! sized `/tmp` and a `/proc` of its own.
//!
//! All of it lives in private mount namespaces made of memory, so it is gone with the processes.

use std::io;

use rustix::{
    fs::{CWD, Mode, mkdirat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MountFlags, MountPropagationFlags,
        MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_reconfigure, fsconfig_set_string,
        fsmount, fsopen, fspick, mount_change, mount_remount, move_mount, unmount,
    },
    process::{chdir, pivot_root},
};

/// Nothing on any mount of ours is executable, a device, or setuid.
const INERT: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Directories of the minimal root, all of them mount points of cells.
const ROOT_DIRECTORIES: [&str; 3] = ["proc", "tmp", "work"];

/// Where the new root is put together before it becomes the root; any directory will do.
const STAGING: [&str; 2] = ["/tmp", "/proc"];

/// Replaces the root of this mount namespace by a minimal, read-only one.
pub(crate) fn pivot_to_minimal_root() -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let [first, second] = STAGING;
    let options = [("size", "64k"), ("nr_inodes", "16"), ("mode", "0755")];
    let staging = match attach("tmpfs", &options, first) {
        Err(Errno::NOENT) => attach("tmpfs", &options, second).map(|()| second),
        other => other.map(|()| first),
    }?;
    chdir(staging)?;
    for directory in ROOT_DIRECTORIES {
        mkdirat(CWD, directory, Mode::from_raw_mode(0o755))?;
    }
    attach("proc", &[("subset", "pid")], "proc")?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    let flags = MountFlags::BIND | MountFlags::RDONLY;
    let inert = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount_remount("/", flags | inert, "")?;
    Ok(())
}

/// Gives this mount namespace a `/tmp` of a given size.
pub(crate) fn mount_private_tmp(bytes: u64, inodes: u64) -> io::Result<()> {
    let (bytes, inodes) = (bytes.to_string(), inodes.to_string());
    let options = [("size", &*bytes), ("nr_inodes", &*inodes), ("mode", "0700")];
    Ok(attach("tmpfs", &options, "/tmp")?)
}

/// Changes the size of the `/tmp` made by [`mount_private_tmp`].
pub(crate) fn resize_private_tmp(bytes: u64, inodes: u64) -> io::Result<()> {
    let tmp = fspick(CWD, "/tmp", FsPickFlags::FSPICK_CLOEXEC)?;
    fsconfig_set_string(&tmp, "size", bytes.to_string())?;
    fsconfig_set_string(&tmp, "nr_inodes", inodes.to_string())?;
    Ok(fsconfig_reconfigure(&tmp)?)
}

/// Gives this mount namespace a `/proc` of its own pid namespace, processes only.
///
/// Its links are not followed: `/proc/self/exe` leads to the program's file on the host, past every
/// mount, and its owner is the guest's own user where the host is an ordinary one.
pub(crate) fn mount_private_proc() -> io::Result<()> {
    let linkless = INERT | MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW;
    Ok(attach_as("proc", &[("subset", "pid")], "/proc", linkless)?)
}

fn attach(kind: &str, options: &[(&str, &str)], target: &str) -> Result<(), Errno> {
    attach_as(kind, options, target, INERT)
}

fn attach_as(
    kind: &str,
    options: &[(&str, &str)],
    target: &str,
    attributes: MountAttrFlags,
) -> Result<(), Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    move_mount(&mount, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}
