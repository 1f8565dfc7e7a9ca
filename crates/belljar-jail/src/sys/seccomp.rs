//! Loading a filter program.
#![expect(unsafe_code, reason = "seccomp(2) has no safe wrapper")]

use std::io;

use crate::seccomp::SeccompProgram;

/// Puts the filter in force for this process and all it will ever start.
///
/// Needs `no_new_privs`, or the kernel refuses with EACCES.
pub(crate) fn load(program: &SeccompProgram) -> io::Result<()> {
    let mut instructions: Vec<libc::sock_filter> = program
        .instructions()
        .iter()
        .map(|at| libc::sock_filter { code: at.code, jt: at.jt, jf: at.jf, k: at.k })
        .collect();
    let length = u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let filter = libc::sock_fprog { len: length, filter: instructions.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, 0);
    // SAFETY: `filter` points at `length` instructions that live until the call returns; the
    // kernel copies and verifies them.
    let status = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const filter) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
