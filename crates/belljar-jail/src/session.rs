//! The host's side of a session's branches: their sockets, descriptors and pidfds.
//!
//! To branch, while the guest waits for a command:
//!
//! 1. In parallel, ask the keeper for two trees ([`request_branch`]) and the guest for a copy: send
//!    it the frame `Branch` and, with [`send_descriptors`], the copy's end of [`branch_sockets`];
//!    the guest answers `Branched`, and the copy greets ([`receive_greeting`]).
//! 2. Send the copy its tree ([`send_descriptors`]); it answers `Ready`.
//! 3. Send the guest the frame `Reroot` and the other tree; it answers `Rerooted`.
//!
//! If there are no trees, kill the copy by its pidfd and send the guest `Reroot` without a tree. If
//! there is no copy, the guest moves to its new tree, and the copy's tree is dropped.
//!
//! [`request_branch`]: crate::request_branch

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::{
    GuestEnd,
    sys::{self, socket::Greeting},
};

/// The number of the branch a session's cell has from the beginning.
pub const FIRST_BRANCH: u64 = crate::mounts::SessionRoot::FIRST;
/// The most branches a session's cell has at a time.
pub const MAX_BRANCHES: usize = crate::mounts::MAX_BRANCHES;

/// The host's end and the guest's end of a new branch's socket.
pub fn branch_sockets() -> io::Result<(UnixStream, UnixStream)> {
    let (host, guest) = UnixStream::pair()?;
    sys::socket::pass_pidfds(&host, true)?;
    Ok((host, guest))
}

/// Sends one byte with descriptors attached, if any, right after the frame they belong to.
pub fn send_descriptors(socket: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The byte that a branch greets with: a pidfd of the process that sent it.
///
/// The kernel vouches for the pidfd: it is a process of the cell, whichever that is. Only to be
/// used for what comes first.
pub fn receive_greeting(socket: impl AsFd) -> io::Result<OwnedFd> {
    let Greeting { bytes, sender } = sys::socket::receive_with_pidfd(&socket, &mut [0])?;
    sys::socket::pass_pidfds(&socket, false)?;
    match sender {
        Some(sender) if bytes == 1 => Ok(sender),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// How the process behind a pidfd ended; `None` while it lives, or if the kernel does not say.
///
/// It says so once the keeper has seen the end, which is a moment after the pidfd has become
/// readable: the pidfd is hung up then (`POLLHUP`).
pub fn guest_end(pidfd: impl AsFd) -> io::Result<Option<GuestEnd>> {
    let status = sys::process::exit_status(pidfd)?;
    Ok(status.map(|status| {
        if libc::WIFSIGNALED(status) {
            GuestEnd::Killed(libc::WTERMSIG(status))
        } else {
            GuestEnd::Exited(libc::WEXITSTATUS(status))
        }
    }))
}
