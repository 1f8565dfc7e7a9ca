//! Replacing a process's own code by a copy in huge pages.
#![expect(unsafe_code, reason = "mmap, madvise, mprotect, mremap and munmap have no safe wrapper")]

use std::{
    io,
    ops::Range,
    ptr::{self, NonNull},
};

use super::process::exit_now;
use crate::code_pages::OwnCode;

/// A copy of the program's own code, in memory that nothing else is in; given back when dropped.
#[derive(Debug)]
pub(crate) struct CodeCopy {
    code: OwnCode,
    /// The whole mapping: larger than the copy, so that the copy can start at a huge page.
    mapped: Range<usize>,
    start: NonNull<u8>,
}

impl CodeCopy {
    /// Copies the code. The kernel is asked for huge pages, and may give others.
    pub(crate) fn new(code: OwnCode) -> io::Result<Self> {
        let all = code.bytes() + OwnCode::HUGE_PAGE;
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping wherever there is room: no memory that is in use changes.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), all, access, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapped = mapped.cast::<u8>();
        let offset = mapped.addr().next_multiple_of(OwnCode::HUGE_PAGE) - mapped.addr();
        let start = NonNull::new(mapped.wrapping_add(offset)).ok_or(io::ErrorKind::OutOfMemory)?;
        let copy = Self { code, mapped: mapped.addr()..mapped.addr() + all, start };
        copy.fill()?;
        Ok(copy)
    }

    fn fill(&self) -> io::Result<()> {
        let (start, bytes) = (self.start.as_ptr(), self.code.bytes());
        // SAFETY: all of the range is in the mapping just made, and the advice changes no byte of
        // it.
        if unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let source = ptr::with_exposed_provenance::<u8>(self.code.start());
        // SAFETY: the source is code of this program, as the kernel reports: mapped, readable, and
        // nothing writes to it. The destination is as large, ours alone, and new, so they are
        // apart.
        unsafe { ptr::copy_nonoverlapping(source, start, bytes) };
        let access = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: all of the range is ours, and nothing writes to it any more.
        let status = unsafe { libc::mprotect(start.cast(), bytes, access) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Moves the copy to the address of the code.
    ///
    /// The kernel unmaps the code before it moves the copy. If moving fails then, this process has
    /// no code any more, and ends.
    pub(crate) fn take_the_place(mut self) {
        let (start, bytes) = (self.start.as_ptr().cast(), self.code.bytes());
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let target = ptr::with_exposed_provenance_mut::<libc::c_void>(self.code.start());
        // SAFETY: the target is exactly the code that was copied, and no other thread runs it
        // meanwhile; afterwards the same bytes are there, as readable and executable as before. If
        // they are not, nothing returns from here that could miss them.
        let moved = unsafe { libc::mremap(start, bytes, bytes, flags, target) };
        if moved == libc::MAP_FAILED {
            exit_now(1);
        }
        // The pages around the copy are left, and given back.
        let begin = self.start.addr().get();
        unmap(self.mapped.start..begin);
        self.mapped.start = begin + bytes;
    }
}

impl Drop for CodeCopy {
    fn drop(&mut self) {
        unmap(self.mapped.clone());
    }
}

/// Gives back a part of a mapping made here that nothing refers to any more.
fn unmap(part: Range<usize>) {
    if part.is_empty() {
        return;
    }
    let start = ptr::with_exposed_provenance_mut::<libc::c_void>(part.start);
    // SAFETY: only ranges of a mapping of `CodeCopy::new` come here, each once, and the copy that
    // refers to them is being dropped or has moved.
    let _ = unsafe { libc::munmap(start, part.len()) };
}
