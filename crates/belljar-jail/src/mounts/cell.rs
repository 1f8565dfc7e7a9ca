//! The mounts of each cell: `/tmp` and `/work` with one common bound, and a `/proc`.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
    mount::{FsPickFlags, MountAttrFlags, fsconfig_reconfigure, fsconfig_set_string, fspick},
};

use super::{INERT, attach, attach_as, bind};
use crate::Guests;

/// More inodes than a cell uses before its code begins.
const MOST_AT_FIRST: u64 = 32;
const PRIVATE: Mode = Mode::from_raw_mode(0o700);

/// Gives this mount namespace a `/tmp` and a `/work` that share one bound on bytes and files.
pub(crate) fn mount_scratch(bytes: u64, inodes: u64) -> io::Result<()> {
    mount_scratch_base(bytes, inodes)?;
    mkdirat(CWD, "/tmp/work", PRIVATE)?;
    bind("/tmp/work", "/work")?;
    hide_base()
}

/// Mounts the file system itself on `/tmp`; in it is only the directory that will be `/tmp`.
pub(super) fn mount_scratch_base(bytes: u64, inodes: u64) -> io::Result<()> {
    let (bytes, inodes) = (bytes.to_string(), inodes.to_string());
    let options = [("size", &*bytes), ("nr_inodes", &*inodes), ("mode", "0700")];
    attach("tmpfs", &options, "/tmp")?;
    Ok(mkdirat(CWD, "/tmp/tmp", PRIVATE)?)
}

/// Hides everything on the file system at `/tmp` except its own `/tmp`.
pub(super) fn hide_base() -> io::Result<()> {
    Ok(bind("/tmp/tmp", "/tmp")?)
}

/// Mounts a small scratch file system, to find out whether that works.
pub(crate) fn scratch_for_trial() -> io::Result<()> {
    mount_scratch(1 << 20, 64)
}

/// Changes the bounds of the file system that [`mount_scratch`] made. A bound below the present
/// number of files means that none can be added.
pub(crate) fn resize_scratch(bytes: u64, inodes: u64) -> io::Result<()> {
    let most_there = inodes.max(MOST_AT_FIRST);
    let mut inodes = inodes;
    loop {
        // A context that was refused takes no further options, so each attempt needs a new one.
        let tmp = fspick(CWD, "/tmp", FsPickFlags::FSPICK_CLOEXEC)?;
        fsconfig_set_string(&tmp, "size", bytes.to_string())?;
        fsconfig_set_string(&tmp, "nr_inodes", inodes.to_string())?;
        match fsconfig_reconfigure(&tmp) {
            Err(Errno::INVAL) if inodes < most_there => inodes += 1,
            done => return Ok(done?),
        }
    }
}

/// A handle on the cell's own `/work`.
pub(crate) fn open_work() -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, "/work", flags, Mode::empty())?)
}

/// Gives this mount namespace a `/proc` of its own pid namespace, processes only.
///
/// Its links are not followed for a script: `/proc/self/exe` leads to the program's file on the
/// host, past every mount, and its owner is the guest's own user where the host is an ordinary one.
/// A program was started from a read-only mount of the zygote's, and `/dev/fd` needs the links.
pub(crate) fn mount_private_proc(guests: Guests, at: &str) -> io::Result<()> {
    let attributes = match guests {
        Guests::Script => INERT | MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW,
        Guests::Programs => INERT,
    };
    Ok(attach_as("proc", &[("subset", "pid")], at, attributes)?)
}

/// Mounts the `/proc` of a session's programs. Landlock cannot tell it from the cell's own files,
/// so it is read-only, and it shows only processes that its reader could trace anyway: neither the
/// keeper nor the guests of other branches.
pub(crate) fn mount_session_proc(at: &str) -> io::Result<()> {
    let attributes = INERT | MountAttrFlags::MOUNT_ATTR_RDONLY;
    let options = [("subset", "pid"), ("hidepid", "ptraceable")];
    Ok(attach_as("proc", &options, at, attributes)?)
}
