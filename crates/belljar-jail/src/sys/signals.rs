//! Signal dispositions and a descriptor that reports SIGCHLD.
#![expect(unsafe_code, reason = "signal and signalfd have no safe wrapper")]

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{FromRawFd, OwnedFd},
};

/// The fate of ended children.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EndedChildren {
    /// The kernel reaps them, and their status is lost.
    Reaped,
    /// They stay zombies until they are waited for.
    WaitedFor,
}

/// Sets the fate of ended children. Inherited by [`clone`](super::process::clone).
pub(crate) fn ended_children_are(what: EndedChildren) -> io::Result<()> {
    let disposition = match what {
        EndedChildren::Reaped => libc::SIG_IGN,
        EndedChildren::WaitedFor => libc::SIG_DFL,
    };
    // SAFETY: both dispositions are the kernel's own, so no handler of ours can ever run.
    let previous = unsafe { libc::signal(libc::SIGCHLD, disposition) };
    if previous == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A descriptor that becomes readable when a child ends; the signal itself is blocked.
pub(crate) fn child_signal_descriptor() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call initialises the whole set it is given.
    let emptied = unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `set` was initialised by the call above, and SIGCHLD is a valid signal.
    let added = unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    if emptied != 0 || added != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `set` is initialised; a null old set is allowed.
    let blocked = unsafe { libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
    if blocked != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `set` is initialised; -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call made this descriptor and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Unblocks every signal, as a new program would expect.
pub(crate) fn unblock_all() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call initialises the whole set it is given.
    let emptied = unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `set` is initialised; a null old set is allowed.
    let status =
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) };
    if emptied == 0 && status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
