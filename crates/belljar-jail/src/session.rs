//! The host's side of a session's branches: sockets for them, descriptors to them, handles on them.
//!
//! In order, for a branch `n` whose guest waits for a command: [`request_branch`]; a pair of sockets
//! by [`branch_sockets`]; the frame `Branch` and [`send_descriptors`] with the copy's socket and
//! tree; `Branched` from the guest and [`receive_greeting`] from the copy; the frame `Reroot` and
//! [`send_descriptors`] with the other tree; `Rerooted`.
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

/// The host's end and the guest's end for a branch to be.
pub fn branch_sockets() -> io::Result<(UnixStream, UnixStream)> {
    let (host, guest) = UnixStream::pair()?;
    sys::socket::pass_pidfds(&host, true)?;
    Ok((host, guest))
}

/// Sends one byte with descriptors attached, right after the frame they belong to.
pub fn send_descriptors(socket: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The first bytes a branch sends, into `buffer`: how many, and a pidfd of the process that sent
/// them. Zero bytes mean that it ended without a word.
///
/// The kernel vouches for the pidfd: it is a process of the cell, whichever that is. Only to be used
/// for what comes first.
pub fn receive_greeting(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<OwnedFd>)> {
    let Greeting { bytes, sender } = sys::socket::receive_with_pidfd(&socket, buffer)?;
    sys::socket::pass_pidfds(&socket, false)?;
    Ok((bytes, sender))
}

/// How the process behind a pidfd ended; `None` while it lives, or if the kernel does not say.
///
/// It says so once the keeper has seen the end, which is a moment after the pidfd has become readable:
/// the pidfd is hung up then (`POLLHUP`).
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
