//! Attributes of mounts, id maps among them.
#![expect(unsafe_code, reason = "mount_setattr(2) has no safe wrapper")]

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use rustix::mount::MountAttrFlags;

/// Adds attributes to a mount and all mounts beneath it; with a user namespace, also its id map.
///
/// It also makes the mounts private: what is mounted later on the mounts they were copied from does
/// not appear here without the attributes, and the other way round.
pub(crate) fn add_attributes(
    tree: impl AsFd,
    attributes: MountAttrFlags,
    id_map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let map_flag = if id_map.is_some() { libc::MOUNT_ATTR_IDMAP } else { 0 };
    let id_map = id_map.map_or(0, |fd| u64::from(fd.as_raw_fd().unsigned_abs()));
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    set(tree, u64::from(attributes.bits()) | map_flag, libc::MS_PRIVATE, id_map, flags)
}

/// Adds attributes to one mount.
pub(crate) fn add_attributes_here(mount: impl AsFd, attributes: MountAttrFlags) -> io::Result<()> {
    set(mount, u64::from(attributes.bits()), 0, 0, libc::AT_EMPTY_PATH)
}

fn set(
    mount: impl AsFd,
    attributes: u64,
    propagation: u64,
    id_map: u64,
    flags: libc::c_int,
) -> io::Result<()> {
    let arguments =
        libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation, userns_fd: id_map };
    let (size, empty) = (size_of::<libc::mount_attr>(), c"".as_ptr());
    let (mount, arguments) = (mount.as_fd().as_raw_fd(), &raw const arguments);
    // SAFETY: the path is an empty C string, the kernel reads `size` bytes of `arguments`, and both
    // outlive the call.
    let status =
        unsafe { libc::syscall(libc::SYS_mount_setattr, mount, empty, flags, arguments, size) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
