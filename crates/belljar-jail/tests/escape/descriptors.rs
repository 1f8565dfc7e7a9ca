//! Attempts with descriptors: what was inherited, how many there can be, where they can be sent.

use std::{
    fs::File,
    os::{fd::RawFd, unix::net::UnixStream},
};

use belljar_contract::Limits;
use rustix::fs::FileType;

use crate::harness::{
    attempt::{Attempt, Setting::User},
    bait::Bait,
    outcome::{Outcome, opened, own, reached, refused_by},
    raw::{self, call, words},
};
use std::os::fd::AsRawFd;

/// More than any attempt of this suite opens.
const LAST: RawFd = 4096;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("inherited_descriptors", User, inherited),
    Attempt::new("leaked_directory", User, |_| through_directory("secret")),
    Attempt::new("leaked_directory_and_up", User, |bait| {
        through_directory(&format!("../../..{}", bait.secret_path.display()))
    }),
    Attempt::new("reopen_stream", User, |_| match File::open(own("fd/2")) {
        Ok(file) => {
            let device = kind(file.as_raw_fd()) == Some(FileType::CharacterDevice);
            Outcome::succeeded_if(device, "opened what is behind it")
        }
        Err(error) => opened::<()>(Err(error)),
    }),
    Attempt::new("details_of_own_socket", User, |_| {
        let (fd, _pair) = socket();
        // The kernel opens no socket by a path; a descriptor's flags are read all the same.
        let information = std::fs::read(own(&format!("fdinfo/{fd}")));
        opened(information)
    })
    .harmless_in_sessions("it says how the cell's own descriptors were opened, and no more"),
    // Kernel memory that no limit counts.
    Attempt::new("lock_a_file", User, |_| reached(call!(SYS_flock, -1, libc::LOCK_SH))),
    Attempt::new("lock_a_range", User, |_| reached(call!(SYS_fcntl, -1, libc::F_SETLK, 0))),
    // Out-of-band bytes on local sockets have led out of sandboxes before.
    Attempt::new("send_out_of_band", User, |_| {
        reached(call!(SYS_sendto, -1, 0, 0, libc::MSG_OOB, 0, 0))
    }),
    Attempt::new("too_many_files", User, too_many_files).limits(few_files),
    Attempt::new("too_many_copies", User, |_| too_many(|| call!(SYS_dup, 2))).limits(few_files),
    Attempt::new("raise_number_of_files", User, |_| {
        // Outside, the hard limit is above the soft one; in a cell both are the run's.
        let more = words(&[200, 200]);
        match call!(SYS_prlimit64, 0, libc::RLIMIT_NOFILE, &more, 0) {
            Ok(_) => too_many(|| call!(SYS_dup, 2)),
            Err(errno) => reached::<()>(Err(errno)),
        }
    })
    .limits(few_files),
    Attempt::new("send_descriptor", User, send_descriptor),
    Attempt::new("send_many_messages", User, |_| {
        let (fd, _pair) = socket();
        reached(call!(SYS_sendmmsg, fd, 0, 0, 0))
    }),
    // SIGIO, aimed at anybody.
    Attempt::new("own_signals_of_stream", User, |bait| {
        reached(call!(SYS_fcntl, 2, libc::F_SETOWN, bait.victim))
    }),
    Attempt::new("own_signals_of_stream_high_bits", User, |bait| {
        reached(call!(SYS_fcntl, 2, 1 << 32 | libc::F_SETOWN as u64, bait.victim))
    }),
    Attempt::new("lease", User, |bait| {
        let Ok(file) = File::create(bait.scratch("lease")) else {
            return Outcome::inconclusive("no file to lease");
        };
        reached(call!(SYS_fcntl, file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK))
    }),
    Attempt::new("notify", User, |_| {
        const CREATED: i32 = 4;
        let Ok(tmp) = File::open("/tmp") else { return Outcome::inconclusive("no /tmp") };
        reached(call!(SYS_fcntl, tmp.as_raw_fd(), libc::F_NOTIFY, CREATED))
    }),
    Attempt::new("event_queue", User, |_| reached(call!(SYS_epoll_create1, 0)))
        .harmless_for_programs("counted by RLIMIT_NOFILE"),
    Attempt::new("copy_between_files", User, |_| {
        reached(call!(SYS_copy_file_range, -1, 0, -1, 0, 1, 0))
    })
    .harmless_for_programs("between files the cell has opened anyway"),
];

fn few_files(limits: &mut Limits) {
    limits.open_files = 64;
}

/// The kind of file behind a descriptor, if it is open.
fn kind(fd: RawFd) -> Option<FileType> {
    call!(SYS_fcntl, fd, libc::F_GETFD).ok()?;
    let stat = rustix::fs::fstat(raw::descriptor(fd)).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// A cell has one socket, its way to the host.
pub(crate) fn cell_socket() -> Option<RawFd> {
    (3..LAST).find(|fd| kind(*fd) == Some(FileType::Socket))
}

fn inherited(_: &Bait) -> Outcome {
    let open: Vec<_> = (3..LAST).filter_map(|fd| Some((fd, kind(fd)?))).collect();
    // The run's link to the host is the same socket twice.
    let inode = |fd: RawFd| rustix::fs::fstat(raw::descriptor(fd)).map(|stat| stat.st_ino).ok();
    let links: std::collections::BTreeSet<_> = open.iter().map(|(fd, _)| inode(*fd)).collect();
    let only_link = links.len() == 1 && open.iter().all(|(_, kind)| *kind == FileType::Socket);
    Outcome::succeeded_if(!only_link, format!("{open:?}"))
}

/// A directory from outside opens files outside, wherever the root is.
fn through_directory(path: &str) -> Outcome {
    let mut directories = (3..LAST).filter(|fd| kind(*fd) == Some(FileType::Directory));
    let Some(directory) = directories.next() else { return Outcome::blocked("no directory") };
    let flags = rustix::fs::OFlags::RDONLY;
    let file =
        rustix::fs::openat(raw::descriptor(directory), path, flags, rustix::fs::Mode::empty());
    opened(file.map_err(Into::into))
}

fn too_many_files(_: &Bait) -> Outcome {
    too_many(|| File::open("/tmp").map(std::mem::forget).map_err(|_| raw::last_errno()).map(|()| 0))
}

/// More than [`few_files`] allows.
fn too_many(open: impl Fn() -> Result<u64, i32>) -> Outcome {
    refused_by((0..100).try_for_each(|_| open().map(drop)), &[libc::EMFILE, libc::EPERM])
}

/// The cell's socket, or outside one end of a pair.
fn socket() -> (RawFd, Option<(UnixStream, UnixStream)>) {
    let pair = cell_socket().is_none().then(|| UnixStream::pair().ok()).flatten();
    let fd = pair.as_ref().map(|(one, _)| one.as_raw_fd()).or_else(cell_socket);
    (fd.unwrap_or(-1), pair)
}

/// Attaches a descriptor to a byte for whoever reads it.
fn send_descriptor(_: &Bait) -> Outcome {
    let (fd, _pair) = socket();
    let (text, passed) = (b"x", 2u64);
    let part = words(&[text.as_ptr() as u64, 1]);
    let rights = words(&[20, 1 | 1 << 32, passed]);
    let message =
        words(&[0, 0, part.as_ptr() as u64, 1, rights.as_ptr() as u64, rights.len() as u64, 0]);
    reached(call!(SYS_sendmsg, fd, &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT))
}
