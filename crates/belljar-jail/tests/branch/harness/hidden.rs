//! A process that looks like a branch and is none.
#![expect(unsafe_code, reason = "clone has no safe wrapper")]

use super::raw::{Errno, last_errno};

/// Copies the process beside itself, as a child of its parent; the copy waits for its end.
pub(crate) fn hide() -> Result<u64, Errno> {
    let (flags, none) = (i64::from(libc::CLONE_PARENT | libc::SIGCHLD), 0u64);
    // SAFETY: no flag used here shares memory, so the copy has its own stack, and never returns.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        0 => loop {
            std::thread::park();
        },
        -1 => Err(last_errno()),
        pid => Ok(pid.cast_unsigned()),
    }
}
