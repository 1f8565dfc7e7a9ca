//! Receiving a message together with a pidfd of its sender.
#![expect(unsafe_code, reason = "SCM_PIDFD has no safe wrapper")]

use std::{
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// Not in every C library's headers yet; the numbers are those of all architectures but a few that
/// are not supported.
const SO_PASSPIDFD: libc::c_int = 76;
const SCM_PIDFD: libc::c_int = 4;

/// A received message, and a pidfd of its sender.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) bytes: usize,
    pub(crate) sender: Option<OwnedFd>,
}

/// Sets whether a socket's messages come with a pidfd of their sender.
pub(crate) fn pass_pidfds(socket: impl AsFd, on: bool) -> io::Result<()> {
    let value = libc::c_int::from(on);
    let (socket, size) = (socket.as_fd().as_raw_fd(), size_of::<libc::c_int>());
    let size = libc::socklen_t::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
    let (level, value) = (libc::SOL_SOCKET, &raw const value);
    // SAFETY: the kernel reads `size` bytes of `value`, an int that outlives the call.
    let status = unsafe { libc::setsockopt(socket, level, SO_PASSPIDFD, value.cast(), size) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Room for one control message with one descriptor, as aligned as its header has to be.
#[repr(C)]
#[derive(Clone, Copy)]
struct OneDescriptor {
    header: libc::cmsghdr,
    descriptor: RawFd,
    padding: RawFd,
}

/// Receives the next message, and a pidfd of its sender.
pub(crate) fn receive_with_pidfd(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Greeting> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let empty = libc::cmsghdr { cmsg_len: 0, cmsg_level: 0, cmsg_type: 0 };
    let mut control = OneDescriptor { header: empty, descriptor: -1, padding: 0 };
    let mut message = libc::msghdr {
        msg_name: std::ptr::null_mut(),
        msg_namelen: 0,
        msg_iov: &raw mut part,
        msg_iovlen: 1,
        msg_control: (&raw mut control).cast(),
        msg_controllen: size_of::<OneDescriptor>(),
        msg_flags: 0,
    };
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the one part is `buffer`, the control buffer is `control` with its own size, both
    // outlive the call, and the kernel writes no more than these sizes say.
    let received = unsafe { libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let is_pidfd = message.msg_controllen > 0
        && control.header.cmsg_level == libc::SOL_SOCKET
        && control.header.cmsg_type == SCM_PIDFD
        && control.descriptor >= 0;
    // SAFETY: the kernel has just made this descriptor for the caller, and nothing else owns it.
    let sender = is_pidfd.then(|| unsafe { OwnedFd::from_raw_fd(control.descriptor) });
    Ok(Greeting { bytes, sender })
}
