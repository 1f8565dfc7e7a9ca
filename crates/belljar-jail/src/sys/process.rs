//! Making, marking and ending processes.
#![expect(unsafe_code, reason = "clone, close_range and _exit have no safe wrapper")]

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
};

use crate::BranchSide;

/// Which side of a [`clone`] this is.
#[derive(Debug)]
pub(crate) enum CloneSide {
    /// This is the new process.
    Child,
    /// This is the caller, with a handle on the new process.
    Parent {
        /// The child's number in the caller's pid namespace.
        pid: Pid,
        /// The child, as a descriptor that can be waited on, signalled and passed.
        pidfd: OwnedFd,
    },
}

/// Copies the calling process, into new namespaces given by `CLONE_NEW*` flags.
///
/// The caller must be single-threaded: the copy has one thread, and a lock another thread held
/// would stay locked in it for ever. [`assert_single_threaded`] checks that once per zygote.
pub(crate) fn clone(namespaces: libc::c_int) -> io::Result<CloneSide> {
    let mut pidfd: RawFd = -1;
    let arguments = libc::clone_args {
        flags: u64::from((namespaces | libc::CLONE_PIDFD).cast_unsigned()),
        pidfd: std::ptr::from_mut(&mut pidfd) as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    let size = size_of::<libc::clone_args>();
    // SAFETY: without CLONE_VM the child has its own copy of this memory and continues on the
    // same stack addresses, like after fork; the kernel reads `size` bytes of `arguments` and
    // writes one descriptor to `pidfd`, and both outlive the call.
    let status = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) };
    if status == 0 {
        return Ok(CloneSide::Child);
    }
    let Some(pid) = i32::try_from(status).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)
    else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the call succeeded with CLONE_PIDFD in this, the parent, so `pidfd` is a new
    // descriptor nothing else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(CloneSide::Parent { pid, pidfd })
}

/// Copies the calling process as its sibling: the copy is a child of the caller's parent.
///
/// The caller must be single-threaded: see [`clone`].
pub(crate) fn clone_beside() -> io::Result<BranchSide> {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: without CLONE_VM the child has its own copy of this memory and continues on the same
    // stack addresses, like after fork; no flag makes the kernel look at the other arguments.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) } {
        0 => Ok(BranchSide::Child),
        pid if pid > 0 => Ok(BranchSide::Parent),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Duplicates a descriptor to a number; a file that had that number is closed.
pub(crate) fn put_in_place(descriptor: impl AsFd, number: RawFd) -> io::Result<()> {
    let descriptor = descriptor.as_fd().as_raw_fd();
    if descriptor == number {
        return Ok(());
    }
    // SAFETY: the call takes integers and follows no pointer. The owner of `number` still owns it
    // afterwards: that it means another file is what the callers want.
    let status = unsafe { libc::dup3(descriptor, number, libc::O_CLOEXEC) };
    if status >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether there is a descriptor of this number.
pub(crate) fn is_open(number: RawFd) -> bool {
    // SAFETY: the call takes integers and follows no pointer.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

/// Whether the calling process has children that have not ended.
pub(crate) fn has_children() -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::All, options) {
        Err(Errno::CHILD) => return Ok(false),
        other => other?,
    };
    // Some or all of them may have ended without being waited for.
    let own = rustix::process::getpid().as_raw_pid();
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"))?;
    let pids = children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
    let mut all = pids.map(|pid| waitid(WaitId::Pid(pid), options));
    Ok(all.any(|ended| !matches!(ended, Ok(Some(_)) | Err(Errno::CHILD))))
}

/// The wait status of the process behind a pidfd; `None` while it lives, or if the kernel cannot
/// report it.
pub(crate) fn exit_status(pidfd: impl AsFd) -> io::Result<Option<libc::c_int>> {
    const GET_INFO: libc::Ioctl = 0xc0_40_ff_0b_u32 as libc::Ioctl;
    const EXIT: u64 = 1 << 3;
    /// The first sixty-four bytes of the kernel's `struct pidfd_info`.
    #[repr(C)]
    struct Info {
        mask: u64,
        cgroup: u64,
        numbers: [u32; 11],
        exit_code: i32,
    }
    let mut info = Info { mask: EXIT, cgroup: 0, numbers: [0; 11], exit_code: 0 };
    let pidfd = pidfd.as_fd().as_raw_fd();
    // SAFETY: the size in the request's number is that of `info`, which outlives the call, and the
    // kernel writes no more than that.
    let status = unsafe { libc::ioctl(pidfd, GET_INFO, &raw mut info) };
    if status != 0 {
        return match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
            error => Err(error),
        };
    }
    Ok((info.mask & EXIT != 0).then_some(info.exit_code))
}

/// Refuses a process with a second thread; see [`clone`].
pub(crate) fn assert_single_threaded() -> io::Result<()> {
    let mut tasks = std::fs::read_dir("/proc/self/task")?;
    let threads = tasks.try_fold(0, |count, task| task.map(|_| count + 1))?;
    if threads == 1 { Ok(()) } else { Err(io::Error::other(format!("{threads} threads"))) }
}

/// Moves the calling, single-threaded process into a new user namespace.
pub(crate) fn unshare_user() -> io::Result<()> {
    // SAFETY: the flag concerns credentials only; no descriptor table is unshared.
    let status = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Moves the calling, single-threaded process into a new mount namespace.
pub(crate) fn unshare_mounts() -> io::Result<()> {
    // SAFETY: the flag concerns mounts only; no descriptor table is unshared.
    let status = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes over a descriptor this program was started with. `None` if there is none of that number.
pub(crate) fn inherited_descriptor(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the call takes integers and follows no pointer.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return None;
    }
    // SAFETY: it is open, as the call above has shown, and callers take over what they were started
    // with, once, before anything else could own it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    close_between(first, RawFd::MAX)
}

/// Closes every descriptor from `first` to `last`, both included.
pub(crate) fn close_between(first: RawFd, last: RawFd) -> io::Result<()> {
    let (first, last) = (first.cast_unsigned(), last.cast_unsigned());
    // SAFETY: the call follows no pointer. Callers own every descriptor in the range or have
    // given it up: it is called on the way into a cell, whose process keeps none but its own.
    let status = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the process at once, without running anything registered for its exit.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: the call takes an integer and does not return.
    unsafe { libc::_exit(status) }
}

/// Kills a process by its descriptor; one that is already gone is fine.
///
/// Killing a cell's keeper this way ends every process of the cell.
pub fn kill_by_pidfd(pidfd: &impl AsFd) -> io::Result<()> {
    match pidfd_send_signal(pidfd, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// CPU time a process has used, all its threads together.
pub(crate) fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut clock = MaybeUninit::<libc::clockid_t>::uninit();
    // SAFETY: the call writes one clock id to `clock`, which outlives it.
    let status = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), clock.as_mut_ptr()) };
    if status != 0 {
        return Err(io::Error::from_raw_os_error(status));
    }
    // SAFETY: the call above succeeded, so it has written the clock id.
    let clock = unsafe { clock.assume_init() };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec to `time`, which outlives it.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Ok(Duration::new(seconds, nanoseconds))
}

/// A child that has ended, and the resources it used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReapedChild {
    pub(crate) pid: Pid,
    /// As `wait4` gives it.
    pub(crate) status: libc::c_int,
    pub(crate) cpu: Duration,
    pub(crate) peak_memory_bytes: u64,
}

/// Reaps one ended child, if there is one.
pub(crate) fn reap_ended_child() -> Option<ReapedChild> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes one int and one rusage to places that outlive it.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    let pid = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
    // SAFETY: the rusage was zeroed, which is a valid value of it, before the kernel filled it.
    let usage = unsafe { usage.assume_init() };
    let time = |value: libc::timeval| {
        let seconds = u64::try_from(value.tv_sec).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    let peak_memory_bytes = usage.ru_maxrss.unsigned_abs() * 1024;
    Some(ReapedChild {
        pid,
        status,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_memory_bytes,
    })
}
