//! The jail as a shared library, for a zygote that is a program of another language.
//!
//! The program is started by [`serve_by`](crate::zygote::serve_by), warms up, and hands itself over
//! with [`belljar_resume`]. Its cells are cloned and confined by the same code as those of any
//! other engine, and then run in the program's own language. The jail does not know frames: those
//! that have to be sent while the process is being cloned are handed to it as bytes,
//! [`BranchFrames`].
#![expect(unsafe_code, reason = "the functions of a C library")]

use std::{
    ffi::{CStr, CString, c_char, c_int},
    io,
    os::{
        fd::{BorrowedFd, IntoRawFd},
        unix::net::UnixStream,
    },
    slice,
    sync::{LazyLock, Mutex, PoisonError},
};

use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use crate::{
    BranchSide, BranchStep, Brancher, ConfineError, ConfinedCell, Guest, OwnLimits, zygote,
};

/// Hooks of the program around the cloning of cells. Plain functions without a context.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Hooks {
    /// In the zygote, before each clone.
    pub before_clone: extern "C" fn(),
    /// In the zygote, after each clone.
    pub after_clone: extern "C" fn(),
    /// In a clone, before it does anything else in the program's language.
    pub in_clone: extern "C" fn(),
    /// In a cell with every layer in force: its socket, and whether it is a session's. The process
    /// ends on return.
    pub confined: extern "C" fn(c_int, c_int),
    /// A layer could not be put in force: the cell's socket, the layer, what the system said. The
    /// process ends on return.
    pub refused: extern "C" fn(c_int, *const c_char, *const c_char),
    /// In the zygote, once, after its first cell: see [`Guest::warm_further`].
    pub warm_further: extern "C" fn(),
}

impl Guest for Hooks {
    fn confined(&mut self, cell: ConfinedCell) {
        let ConfinedCell { socket, limits, brancher } = cell;
        *OWN_LIMITS.lock().unwrap_or_else(PoisonError::into_inner) = Some(limits);
        (self.in_clone)();
        let is_session = c_int::from(brancher.is_some());
        *BRANCHER.lock().unwrap_or_else(PoisonError::into_inner) =
            brancher.map(|brancher| (brancher, *self));
        (self.confined)(socket.into_raw_fd(), is_session);
    }

    fn refused(&mut self, socket: UnixStream, error: &ConfineError) {
        let mechanism = CString::new(error.mechanism.as_str()).unwrap_or_default();
        let message = CString::new(error.source.to_string()).unwrap_or_default();
        (self.in_clone)();
        (self.refused)(socket.into_raw_fd(), mechanism.as_ptr(), message.as_ptr());
    }

    fn warm_further(&mut self) {
        (self.warm_further)();
    }

    fn before_clone(&mut self) {
        (self.before_clone)();
    }

    fn after_clone(&mut self) {
        (self.after_clone)();
    }
}

/// The limits of the cell this process is in.
static OWN_LIMITS: Mutex<Option<OwnLimits>> = Mutex::new(None);

/// Set if this process is in a session's cell.
static BRANCHER: Mutex<Option<(Brancher, Hooks)>> = Mutex::new(None);

/// Continues as the zygote; never returns.
///
/// # Safety
/// `handover` is the last argument the program was started with, as a C string; `hooks` points at
/// [`Hooks`] that stay as they are. The calling thread is the only one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn belljar_resume(handover: *const c_char, hooks: *const Hooks) {
    // SAFETY: the caller vouches for a C string that outlives the call.
    let handover = unsafe { CStr::from_ptr(handover) };
    // SAFETY: the caller vouches for the pointer.
    let hooks = unsafe { *hooks };
    zygote::resume(handover.to_str().unwrap_or_default(), || Ok(hooks))
}

/// Lowers the limits of the cell the calling process is in; 0, or an error number.
#[unsafe(no_mangle)]
pub extern "C" fn belljar_lower_limits(
    memory_bytes: u64,
    cpu_seconds: u64,
    processes: u64,
    open_files: u64,
) -> c_int {
    let own = OWN_LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
    let lowered =
        own.as_ref().map(|own| own.lower(memory_bytes, cpu_seconds, processes, open_files));
    match lowered {
        Some(Ok(())) => 0,
        Some(Err(error)) => error.raw_os_error().unwrap_or(libc::EIO),
        None => libc::EINVAL,
    }
}

/// The frames that a guest and its host exchange right after the guest has branched. They come
/// before anything else: every page the guest touches from then on is copied first, and the host
/// does not wait for that.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BranchFrames {
    /// Sent by the parent: `Branched`.
    in_parent: FrameBytes,
    /// Sent by the copy on its own socket: `Ready`.
    in_child: FrameBytes,
    /// Received by the parent: `Reroot`, which the host sends when it has both of the above.
    reroot: FrameBytes,
    /// Sent by the parent in its new tree: `Rerooted`.
    rerooted: FrameBytes,
}

/// One encoded frame, in memory of the caller.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct FrameBytes {
    start: *const u8,
    bytes: usize,
}

impl FrameBytes {
    /// # Safety
    /// `start` points to `bytes` bytes that can be read and do not change for `'a`.
    unsafe fn read<'a>(self) -> &'a [u8] {
        // SAFETY: the caller vouches for it.
        unsafe { slice::from_raw_parts(self.start, self.bytes) }
    }
}

/// Takes the byte that follows the frame `Branch` off the cell's socket, and clones the process.
/// Returns 0 in the parent and 1 in the copy, whose socket has the same number. Both have sent
/// their frames then, and the parent has moved to the tree that the host sent. A negative result is
/// an error number, which [`belljar_why`] explains: there is no copy, or no tree to move to.
///
/// # Safety
/// `socket` is the descriptor that the cell was given, and open. `frames` and what it points to can
/// be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn belljar_branch(socket: c_int, frames: *const BranchFrames) -> c_int {
    // SAFETY: the caller vouches for the descriptor.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    // SAFETY: the caller vouches for the pointer.
    let frames = unsafe { *frames };
    // SAFETY: the caller vouches for the memory it points to.
    let [in_parent, in_child, reroot, rerooted] = unsafe {
        [
            frames.in_parent.read(),
            frames.in_child.read(),
            frames.reroot.read(),
            frames.rerooted.read(),
        ]
    };
    to_status(own_brancher().and_then(|(brancher, hooks)| {
        let mut moved = Ok(());
        let branched = brancher.branch(socket, |moment| match moment {
            BranchStep::Before => (hooks.before_clone)(),
            BranchStep::InParent => {
                send_all(socket, in_parent);
                moved = receive_exactly(socket, reroot).and_then(|()| brancher.reroot(socket));
                if moved.is_ok() {
                    send_all(socket, rerooted);
                }
                (hooks.after_clone)();
            }
            BranchStep::Failed => (hooks.after_clone)(),
            BranchStep::InChild => {
                send_all(socket, in_child);
                (hooks.in_clone)();
            }
        })?;
        moved.map(|()| c_int::from(branched == BranchSide::Child))
    }))
}

/// Reads these bytes off the socket, and nothing after them. Anything else is an error.
fn receive_exactly(socket: BorrowedFd<'_>, frames: &[u8]) -> io::Result<()> {
    let mut room = [0; 64];
    let received = room.get_mut(..frames.len()).ok_or(io::ErrorKind::InvalidInput)?;
    let mut bytes = 0;
    while let Some(rest) = received.get_mut(bytes..).filter(|rest| !rest.is_empty()) {
        match recv(socket, rest, RecvFlags::empty()) {
            Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((_, more)) => bytes += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if received == frames { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Sends all of the bytes. If the host is gone, nothing is left to do.
fn send_all(socket: BorrowedFd<'_>, mut frames: &[u8]) {
    while !frames.is_empty() {
        match send(socket, frames, SendFlags::NOSIGNAL) {
            Ok(sent) => frames = frames.get(sent..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Takes the byte that follows the frame `Reroot` off the cell's socket, and moves to the tree that
/// comes with it: 0, or a negative error number.
///
/// # Safety
/// `socket` is the descriptor that the cell was given, and open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn belljar_reroot(socket: c_int) -> c_int {
    // SAFETY: the caller vouches for the descriptor.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    to_status(own_brancher().and_then(|(brancher, _)| brancher.reroot(socket).map(|()| 0)))
}

/// The message of the last call that failed: a C string that stays until the next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn belljar_why() -> *const c_char {
    WHY.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}

static WHY: LazyLock<Mutex<CString>> = LazyLock::new(Mutex::default);

fn own_brancher() -> io::Result<(Brancher, Hooks)> {
    let own = *BRANCHER.lock().unwrap_or_else(PoisonError::into_inner);
    own.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

fn to_status(result: io::Result<c_int>) -> c_int {
    result.unwrap_or_else(|error| {
        let why = CString::new(error.to_string()).unwrap_or_default();
        *WHY.lock().unwrap_or_else(PoisonError::into_inner) = why;
        -error.raw_os_error().unwrap_or(libc::EIO)
    })
}
