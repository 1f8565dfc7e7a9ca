//! System calls as a hostile guest makes them: by number, unfiltered by any library.
//!
//! All `unsafe` of the suite is here. [`call_number`] is memory-safe as long as it is not used for
//! calls that change this process's own memory map or stack; those have wrappers of their own
//! below.
#![expect(unsafe_code, reason = "the probe makes system calls no crate would make")]

use std::{
    ffi::CStr,
    os::fd::{BorrowedFd, RawFd},
};

/// A system error number.
pub(crate) type Errno = i32;

/// One argument of a system call.
pub(crate) enum Arg<'a> {
    /// A number, or an address that nothing of ours lives at.
    Word(u64),
    /// A buffer the kernel reads.
    Bytes(&'a [u8]),
    /// A buffer the kernel writes.
    Room(&'a mut [u8]),
    /// The address of a NUL-terminated text.
    Text(&'a CStr),
}

macro_rules! word_from {
    ($($integer:ty)*) => {
        $(impl From<$integer> for Arg<'_> {
            // Signed numbers are sign-extended, as the C library's variadic call would.
            fn from(value: $integer) -> Self {
                Self::Word(value as i64 as u64)
            }
        })*
    };
}
word_from! { i32 i64 u32 u64 usize }

impl<'a> From<&'a CStr> for Arg<'a> {
    fn from(text: &'a CStr) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Arg<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a mut [u8]> for Arg<'a> {
    fn from(room: &'a mut [u8]) -> Self {
        Self::Room(room)
    }
}

impl Arg<'_> {
    fn into_word(self) -> u64 {
        match self {
            Self::Word(word) => word,
            Self::Bytes(bytes) => bytes.as_ptr() as u64,
            Self::Room(room) => room.as_mut_ptr() as u64,
            Self::Text(text) => text.as_ptr() as u64,
        }
    }
}

/// Makes a system call.
pub(crate) fn call_number<const N: usize>(
    number: libc::c_long,
    arguments: [Arg<'_>; N],
) -> Result<u64, Errno> {
    let mut words = [0; 6];
    for (word, argument) in words.iter_mut().zip(arguments) {
        *word = argument.into_word();
    }
    let [a, b, c, d, e, f] = words;
    // SAFETY: every pointer comes from a slice or text that is borrowed until this returns, and
    // attempts size those for what the call writes; bare numbers are never addresses of ours.
    let status = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if status == -1 { Err(last_errno()) } else { Ok(status.cast_unsigned()) }
}

/// Makes a system call by its name: `call!(SYS_name, argument…)`.
macro_rules! syscall {
    ($number:ident $(, $argument:expr)* $(,)?) => {
        $crate::harness::raw::call_number(libc::$number, [$($crate::harness::raw::Arg::from($argument)),*])
    };
}
pub(crate) use syscall as call;

/// The errno of the last failed call.
pub(crate) fn last_errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

/// Words as the kernel's structures want them.
pub(crate) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Copies the process; the copy ends at once. `Ok` holds the copy's number, in the caller only.
pub(crate) fn clone_and_end(flags: i32) -> Result<i32, Errno> {
    let (flags, none) = (i64::from(flags | libc::SIGCHLD), 0u64);
    // SAFETY: no flag used here shares memory, so the copy has its own stack and ends below.
    let status = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    settle(status)
}

/// The same by `clone3`.
pub(crate) fn clone3_and_end(flags: i32) -> Result<i32, Errno> {
    let flags = u64::from(flags.cast_unsigned());
    let arguments = words(&[flags, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0]);
    // SAFETY: no flag used here shares memory; the kernel reads the structure, which outlives it.
    let status = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), arguments.len()) };
    settle(status)
}

/// The same by the old `fork`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fork_and_end() -> Result<i32, Errno> {
    // SAFETY: the copy has its own memory and ends below.
    settle(unsafe { libc::syscall(libc::SYS_fork) })
}

fn settle(status: libc::c_long) -> Result<i32, Errno> {
    match i32::try_from(status) {
        Ok(0) => end_now(0),
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(last_errno()),
    }
}

/// Copies this single-threaded process: `Ok(None)` in the copy.
pub(crate) fn fork() -> Result<Option<i32>, Errno> {
    // SAFETY: callers have one thread, so no lock is held by a thread the copy does not have.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Ends the process at once.
pub(crate) fn end_now(status: i32) -> ! {
    // SAFETY: the call takes an integer and does not return.
    unsafe { libc::_exit(status) }
}

/// Lets a signal pass unnoticed.
pub(crate) fn ignore_signal(signal: i32) -> bool {
    // SAFETY: the disposition is the kernel's own, so no handler of ours can ever run.
    unsafe { libc::signal(signal, libc::SIG_IGN) != libc::SIG_ERR }
}

/// Maps fresh memory and never gives it back; the address.
pub(crate) fn map(bytes: usize, protection: i32, flags: i32) -> Result<u64, Errno> {
    map_at(0, bytes, protection as u64, flags, -1)
}

/// `mmap` with every argument, `protection` in full width.
pub(crate) fn map_at(
    address: u64,
    bytes: usize,
    protection: u64,
    flags: i32,
    fd: RawFd,
) -> Result<u64, Errno> {
    // In full width: the last argument goes by the stack, where the upper half is anything.
    let offset = 0u64;
    // SAFETY: the address is 0, the kernel's choice, or page 0, where nothing of ours can be.
    let status =
        unsafe { libc::syscall(libc::SYS_mmap, address, bytes, protection, flags, fd, offset) };
    if status == -1 { Err(last_errno()) } else { Ok(status.cast_unsigned()) }
}

/// Changes the protection of memory that [`map`] made.
pub(crate) fn protect(
    number: libc::c_long,
    address: u64,
    bytes: usize,
    protection: i32,
) -> Result<u64, Errno> {
    // SAFETY: the range is a mapping of the caller's that no reference points into.
    let status = unsafe { libc::syscall(number, address, bytes, protection, -1) };
    if status == -1 { Err(last_errno()) } else { Ok(status.cast_unsigned()) }
}

/// Writes to every page of memory that [`map`] made.
pub(crate) fn touch(address: u64, bytes: usize) {
    for offset in (0..bytes).step_by(4096) {
        let page = (address as usize + offset) as *mut u8;
        // SAFETY: the page is inside a private, writable mapping no reference points into.
        unsafe { page.write_volatile(1) };
    }
}

/// Grows the heap by `brk`; the new end, or how it was refused.
pub(crate) fn grow_break(bytes: usize) -> Result<u64, Errno> {
    // SAFETY: asking for address 0 changes nothing and returns the current end.
    let now = unsafe { libc::syscall(libc::SYS_brk, 0) }.cast_unsigned();
    // SAFETY: the heap only grows, so nothing that is in use goes away.
    let then = unsafe { libc::syscall(libc::SYS_brk, now + bytes as u64) }.cast_unsigned();
    if then < now + bytes as u64 { Err(libc::ENOMEM) } else { Ok(now) }
}

/// A system call of the 32-bit interface, by its gate: `getpid`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn getpid_by_int_0x80() -> i64 {
    let mut number: i64 = 20;
    // SAFETY: getpid takes no argument and touches no memory; the kernel restores the rest.
    unsafe { std::arch::asm!("int 0x80", inlateout("rax") number, options(nostack)) };
    number
}

/// A descriptor by its number.
pub(crate) fn descriptor(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: probes hold numbers that they have just seen open, and never close them.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// An entry of the auxiliary vector.
pub(crate) fn auxiliary(kind: u64) -> u64 {
    // SAFETY: the call reads a table that lives as long as the process.
    unsafe { libc::getauxval(kind) }
}

/// Puts a filter in force, with `seccomp(2)` flags; the listener, if one was asked for.
pub(crate) fn load_filter(filter: &mut [libc::sock_filter], flags: u64) -> Result<u64, Errno> {
    let length = u16::try_from(filter.len()).map_err(|_| libc::EINVAL)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    let (operation, program) = (libc::SECCOMP_SET_MODE_FILTER, &raw const program);
    // SAFETY: the program points at `length` instructions that outlive the call; the kernel
    // copies and verifies them.
    let status = unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, program) };
    if status == -1 { Err(last_errno()) } else { Ok(status.cast_unsigned()) }
}

/// Reads from every page of memory that [`map`] made.
pub(crate) fn read_pages(address: u64, bytes: usize) {
    for offset in (0..bytes).step_by(4096) {
        let page = (address as usize + offset) as *const u8;
        // SAFETY: the page is inside a readable mapping no reference points into.
        let _ = unsafe { page.read_volatile() };
    }
}
