//! A process that looks like a branch and is none.
#![expect(unsafe_code, reason = "clone has no safe wrapper")]

use super::raw::{Errno, last_errno};

/// Copies the process beside itself, as a child of its parent; the copy waits for its end.
pub(crate) fn hide() -> Result<u64, Errno> {
    copy(|| {})
}

/// The same, and only a second thread of the copy waits: its first one ends, so that all of it looks
/// as if it had.
pub(crate) fn hide_without_first_thread() -> Result<u64, Errno> {
    copy(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
        // SAFETY: the call ends this thread and takes an integer; nothing of its stack is used after.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    })
}

fn copy(then: impl FnOnce()) -> Result<u64, Errno> {
    let (flags, none) = (i64::from(libc::CLONE_PARENT | libc::SIGCHLD), 0u64);
    // SAFETY: no flag used here shares memory, so the copy has its own stack, and never returns.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        0 => {
            then();
            loop {
                std::thread::park();
            }
        }
        -1 => Err(last_errno()),
        pid => Ok(pid.cast_unsigned()),
    }
}
