//! Attempts of one cell to find, reach or signal to another cell of the same zygote.
//!
//! The second cell plants something, the first looks for it; the look counts only after the
//! plant. Whatever two cells share, however small, lets two runs talk past the host.

use std::{
    fs::{self, File},
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
};

use crate::harness::{
    attempt::{Attempt, Setting::User},
    bait::Bait,
    outcome::{Outcome, opened, permitted, reached, refused_by},
    raw::{Errno, call},
};

/// Not there, or not allowed.
const REFUSALS: &[Errno] = &[libc::EPERM, libc::EACCES, libc::ENOENT, libc::ENOSYS];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("find_neighbour_process", User, |_| {
        let own = std::process::id();
        let others = fs::read_dir("/proc").into_iter().flatten().flatten();
        let others = others.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let others: Vec<u32> = others.filter(|pid| *pid != own && *pid != 1).collect();
        Outcome::succeeded_if(!others.is_empty(), format!("{others:?}"))
    })
    .beside(|_| Outcome::succeeded("is there")),
    Attempt::new("find_neighbour_file", User, |bait| opened(fs::read(meeting_file(bait))))
        .beside(|bait| opened(fs::write(meeting_file(bait), "x"))),
    Attempt::new("connect_to_neighbour", User, |bait| {
        match meeting_address(bait).and_then(|address| UnixStream::connect_addr(&address)) {
            Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => {
                Outcome::blocked_by(libc::ECONNREFUSED)
            }
            other => permitted(other),
        }
    })
    .beside(|bait| {
        let socket = meeting_address(bait).and_then(|address| UnixListener::bind_addr(&address));
        permitted(socket.map(std::mem::forget))
    }),
    Attempt::new("find_segment_of_neighbour", User, |bait| {
        refused_by(call!(SYS_shmget, bait.key + 1, 0, 0), REFUSALS)
    })
    .beside(|bait| {
        let made = call!(SYS_shmget, bait.key + 1, 4096, libc::IPC_CREAT | 0o666);
        reached(made)
    }),
    Attempt::new("find_queue_of_neighbour", User, |bait| {
        refused_by(call!(SYS_msgget, bait.key + 1, 0), REFUSALS)
    })
    .beside(|bait| reached(call!(SYS_msgget, bait.key + 1, libc::IPC_CREAT | 0o666))),
    Attempt::new("lock_of_neighbour_on_root", User, |_| see_lock("/")).beside(|_| lock("/")),
    Attempt::new("lock_of_neighbour_on_work", User, |bait| see_lock(shared_directory(bait)))
        .beside(|bait| lock(shared_directory(bait))),
    Attempt::new("lock_of_neighbour_on_tmp", User, |_| see_lock("/tmp")).beside(|_| lock("/tmp")),
    Attempt::new("lock_of_neighbour_on_proc", User, |_| see_lock("/proc"))
        .beside(|_| lock("/proc")),
    Attempt::new("record_lock_of_neighbour_on_root", User, |_| match File::open("/") {
        Ok(root) => see_record_lock(root.as_raw_fd()),
        Err(error) => opened::<()>(Err(error)),
    })
    .beside(|_| match File::open("/") {
        Ok(root) => {
            let locked = record_lock(root.as_raw_fd(), libc::F_SETLK, libc::F_RDLCK);
            std::mem::forget(root);
            refused_by(locked, REFUSALS)
        }
        Err(error) => opened::<()>(Err(error)),
    }),
    Attempt::new("record_lock_of_neighbour_on_stream", User, |_| see_record_lock(2))
        .beside(|_| refused_by(record_lock(2, libc::F_SETLK, libc::F_RDLCK), REFUSALS)),
    // One open file behind the streams of all cells has one set of flags.
    Attempt::new("stream_flags_of_neighbour", User, |_| match call!(SYS_fcntl, 2, libc::F_GETFL) {
        Ok(flags) => {
            let set = flags & libc::O_APPEND as u64 != 0;
            Outcome::succeeded_if(set, format!("flags {flags:#o}"))
        }
        Err(errno) => refused_by::<()>(Err(errno), REFUSALS),
    })
    .beside(|_| {
        let flags = libc::O_RDWR | libc::O_APPEND;
        refused_by(call!(SYS_fcntl, 2, libc::F_SETFL, flags), REFUSALS)
    }),
];

fn meeting_file(bait: &Bait) -> String {
    if bait.is_inside() {
        "/tmp/belljar-neighbour".to_owned()
    } else {
        bait.directory.join("neighbour").display().to_string()
    }
}

fn meeting_address(bait: &Bait) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{}-neighbour", bait.marker))
}

/// `/work` of a cell; outside any directory both can open.
fn shared_directory(bait: &Bait) -> &str {
    if bait.is_inside() { "/work" } else { "/usr" }
}

fn lock(path: &str) -> Outcome {
    match File::open(path) {
        Ok(file) => {
            let locked = call!(SYS_flock, file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB);
            std::mem::forget(file);
            refused_by(locked, REFUSALS)
        }
        Err(error) => opened::<()>(Err(error)),
    }
}

/// A lock that cannot be had is one somebody else has.
fn see_lock(path: &str) -> Outcome {
    match File::open(path) {
        Ok(file) => match call!(SYS_flock, file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) {
            Err(libc::EWOULDBLOCK) => Outcome::succeeded("a neighbour holds it"),
            Err(errno) => refused_by::<()>(Err(errno), REFUSALS),
            Ok(_) => Outcome::blocked("nobody holds it"),
        },
        Err(error) => opened::<()>(Err(error)),
    }
}

/// `struct flock` of one byte at offset 0: type and whence, start, length, owner.
fn record_lock(fd: i32, command: i32, kind: i32) -> Result<i16, Errno> {
    let mut lock = crate::harness::raw::words(&[kind as u64, 0, 1, 0]);
    call!(SYS_fcntl, fd, command, &mut lock[..])?;
    Ok(i16::from_ne_bytes([lock[0], lock[1]]))
}

fn see_record_lock(fd: i32) -> Outcome {
    match record_lock(fd, libc::F_GETLK, libc::F_WRLCK) {
        Ok(kind) if i32::from(kind) == libc::F_UNLCK => Outcome::blocked("nobody holds it"),
        Ok(_) => Outcome::succeeded("a neighbour holds it"),
        Err(errno) => refused_by::<()>(Err(errno), REFUSALS),
    }
}
