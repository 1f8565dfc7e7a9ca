//! What each cell gets: room for files, bounded as a whole, and a `/proc`.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
    mount::{FsPickFlags, MountAttrFlags, fsconfig_reconfigure, fsconfig_set_string, fspick},
};

use super::{INERT, attach, attach_as, bind};
use crate::Guests;

/// More files than a cell has before its code begins.
const MOST_AT_FIRST: u64 = 32;
const PRIVATE: Mode = Mode::from_raw_mode(0o700);

/// Gives this mount namespace a `/tmp` and a `/work` that share one bound on bytes and files.
pub(crate) fn mount_scratch(bytes: u64, inodes: u64) -> io::Result<()> {
    mount_scratch_base(bytes, inodes)?;
    mkdirat(CWD, "/tmp/work", PRIVATE)?;
    bind("/tmp/work", "/work")?;
    hide_base()
}

/// The file system itself, on `/tmp`, with nothing in it but the `/tmp` to be.
pub(super) fn mount_scratch_base(bytes: u64, inodes: u64) -> io::Result<()> {
    let (bytes, inodes) = (bytes.to_string(), inodes.to_string());
    let options = [("size", &*bytes), ("nr_inodes", &*inodes), ("mode", "0700")];
    attach("tmpfs", &options, "/tmp")?;
    Ok(mkdirat(CWD, "/tmp/tmp", PRIVATE)?)
}

/// Leaves of the file system on `/tmp` only its own `/tmp` in sight.
pub(super) fn hide_base() -> io::Result<()> {
    Ok(bind("/tmp/tmp", "/tmp")?)
}

/// A scratch file system, to see whether one can be had.
pub(crate) fn scratch_for_trial() -> io::Result<()> {
    mount_scratch(1 << 20, 64)
}

/// Changes the bounds of what [`mount_scratch`] made. There may be fewer files than there are already:
/// then none can be added.
pub(crate) fn resize_scratch(bytes: u64, inodes: u64) -> io::Result<()> {
    let most_there = inodes.max(MOST_AT_FIRST);
    let mut inodes = inodes;
    loop {
        // One that was refused takes no further options.
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

/// The same for a session's programs. No rule about files tells it from the cell's own, so nothing in
/// it can be written, and it shows of other processes only those that its reader could look into
/// anyway: neither the keeper nor the guests of other branches.
pub(crate) fn mount_session_proc(at: &str) -> io::Result<()> {
    let attributes = INERT | MountAttrFlags::MOUNT_ATTR_RDONLY;
    let options = [("subset", "pid"), ("hidepid", "ptraceable")];
    Ok(attach_as("proc", &options, at, attributes)?)
}
