//! Attempts to use more than a run's share of the machine by means that only programs have: many
//! processes, threads, orphans, devices that are memory, pipes.

use std::{
    fs::OpenOptions,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use crate::{
    harness::{
        attempt::{Attempt, Ending, Setting::User},
        bait::Bait,
        outcome::{Outcome, reached, refused_by},
        raw::{self, Errno, call, words},
    },
    processes::ROOM,
};
use belljar_contract::{ErrorCode, Limits};

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

const OUT_OF_MEMORY: &[Ending] = &[Ending::Blocked, Ending::Error(ErrorCode::LimitMemory)];
const OUT_OF_CPU: &[Ending] = &[Ending::Error(ErrorCode::LimitCpu)];
const OUT_OF_TIME: &[Ending] = &[Ending::Error(ErrorCode::LimitTimeout)];

/// The memory of one process when several allocate: less than its own limit.
const SHARE: usize = 56 << 20;
const SHARERS: usize = 7;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("thread_bomb", User, |_| thread_bomb(64))
        .limits(few_processes)
        .harmless_in_sessions(ROOM),
    Attempt::new("larger_thread_bomb", User, |_| thread_bomb(160)).limits(few_processes),
    Attempt::new("bomb_of_orphans", User, |_| bomb_of_orphans(48))
        .limits(few_processes)
        .harmless_in_sessions(ROOM),
    Attempt::new("larger_bomb_of_orphans", User, |_| bomb_of_orphans(160)).limits(few_processes),
    Attempt::new("raise_number_of_processes", User, |_| {
        let more = words(&[4096, 4096]);
        match call!(SYS_prlimit64, 0, libc::RLIMIT_NPROC, &more, 0) {
            Ok(_) => crate::processes::bomb(64),
            Err(errno) => reached::<()>(Err(errno)),
        }
    })
    .limits(few_processes),
    Attempt::new("raise_memory", User, |_| {
        let more = words(&[u64::MAX, u64::MAX]);
        reached(call!(SYS_prlimit64, 0, libc::RLIMIT_DATA, &more, 0))
    }),
    Attempt::new("raise_size_of_files", User, |_| {
        let more = words(&[u64::MAX, u64::MAX]);
        reached(call!(SYS_setrlimit, libc::RLIMIT_FSIZE, &more))
    }),
    Attempt::new("burn_in_many_processes", User, |bait| burn(bait, Kin::Children))
        .ends(OUT_OF_CPU)
        .limits(little_cpu),
    Attempt::new("burn_in_orphans", User, |bait| burn(bait, Kin::Orphans))
        .ends(OUT_OF_CPU)
        .limits(little_cpu),
    Attempt::new("burn_in_short_lived_orphans", User, burn_by_turns)
        .ends(OUT_OF_CPU)
        .limits(little_cpu),
    // Nobody waits for them, so their time is added to nobody's (S7).
    Attempt::new("burn_in_unwaited_children", User, burn_unwaited)
        .ends(OUT_OF_CPU)
        .limits(little_cpu),
    Attempt::new("burn_in_threads", User, burn_in_threads).ends(OUT_OF_CPU).limits(little_cpu),
    Attempt::new("sleep_in_many_processes", User, |bait| {
        many(Kin::Orphans, 6, || std::thread::sleep(Duration::from_secs(60)));
        stay(bait)
    })
    .ends(OUT_OF_TIME)
    .limits(|limits| limits.timeout = Duration::from_millis(200)),
    Attempt::new("memory_of_many_processes", User, |bait| share_out(bait, Kin::Children))
        .ends(OUT_OF_MEMORY)
        .limits(little_memory),
    Attempt::new("memory_of_orphans", User, |bait| share_out(bait, Kin::Orphans))
        .ends(OUT_OF_MEMORY)
        .limits(little_memory),
    // They look like processes that have ended (S1).
    Attempt::new("memory_of_processes_without_first_thread", User, share_out_without_first_thread)
        .ends(OUT_OF_MEMORY)
        .limits(little_memory),
    // Of the kernel's own memory, which no number of a process tells (S8).
    Attempt::new("mappings_in_a_chain_of_forks", User, chain_of_mappings)
        .ends(OUT_OF_MEMORY)
        .limits(little_memory),
    Attempt::new("memory_of_zero_device", User, |_| zero_device(READ_WRITE))
        .ends(OUT_OF_MEMORY)
        .limits(little_memory),
    Attempt::new("memory_of_zero_device_by_reading", User, |_| zero_device(libc::PROT_READ))
        .ends(OUT_OF_MEMORY)
        .limits(little_memory),
    // Counted as a stack, which only bounds how far it grows.
    Attempt::new("memory_that_grows_down", User, |_| {
        let flags = PRIVATE | libc::MAP_GROWSDOWN;
        refused_by(raw::map(1 << 30, READ_WRITE, flags), &[libc::EPERM, libc::ENOMEM])
    })
    .limits(little_memory),
    Attempt::new("shared_memory_of_no_file", User, |_| {
        reached(raw::map(4096, READ_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS))
    }),
    Attempt::new("huge_pages", User, |_| {
        reached(raw::map(2 << 20, READ_WRITE, PRIVATE | libc::MAP_HUGETLB))
    }),
    Attempt::new("too_many_pipes", User, |_| {
        too_many(|| call!(SYS_pipe2, &mut [0; 8][..], 0).map(drop))
    })
    .limits(few_files),
    Attempt::new("too_many_event_queues", User, |_| {
        too_many(|| call!(SYS_epoll_create1, 0).map(drop))
    })
    .limits(few_files),
    Attempt::new("too_many_event_counters", User, |_| {
        too_many(|| call!(SYS_eventfd2, 0, 0).map(drop))
    })
    .limits(few_files),
    Attempt::new("larger_pipe", User, |_| {
        let mut ends = [0; 8];
        let _ = call!(SYS_pipe2, &mut ends[..], 0);
        let end = i32::from_ne_bytes([ends[0], ends[1], ends[2], ends[3]]);
        reached(call!(SYS_fcntl, end, libc::F_SETPIPE_SZ, 1 << 20))
    }),
    // Writing out the file systems of the machine, whoever's they are.
    Attempt::new("sync_host_file_system", User, |_| match std::fs::File::open("/usr/lib") {
        Ok(directory) => reached(call!(SYS_syncfs, directory.as_raw_fd())),
        Err(error) => Outcome::inconclusive(error.to_string()),
    }),
    Attempt::new("watch_clock", User, |_| reached(call!(SYS_timerfd_create, 1, 0))),
    Attempt::new("kernel_timer", User, |_| reached(call!(SYS_timer_create, 1, 0, &mut [0; 8][..]))),
    Attempt::new("catch_signals_by_descriptor", User, |_| {
        reached(call!(SYS_signalfd4, -1, &words(&[0]), 8, 0))
    }),
];

fn few_processes(limits: &mut Limits) {
    limits.processes = 8;
}

fn few_files(limits: &mut Limits) {
    limits.open_files = 64;
}

fn little_cpu(limits: &mut Limits) {
    limits.cpu = Duration::from_millis(300);
    limits.timeout = Duration::from_secs(20);
}

fn little_memory(limits: &mut Limits) {
    limits.memory = 64 << 20;
    limits.timeout = Duration::from_secs(20);
}

/// Whose children they are in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kin {
    Children,
    /// Of pid 1, because their parent has ended.
    Orphans,
}

/// Starts processes that do something and then end; how many there are.
fn many(kin: Kin, processes: usize, act: impl Fn()) -> usize {
    (0..processes).map_while(|_| start(kin, &act).ok()).count()
}

fn start(kin: Kin, act: impl Fn()) -> Result<(), Errno> {
    if let Some(child) = raw::fork()? {
        if kin == Kin::Orphans {
            let mut status = [0; 4];
            call!(SYS_wait4, child, &mut status[..], 0, 0)?;
            return if status == [0; 4] { Ok(()) } else { Err(libc::EAGAIN) };
        }
        return Ok(());
    }
    if kin == Kin::Orphans {
        match raw::fork() {
            Ok(None) => {
                let _ = call!(SYS_setsid);
            }
            Ok(Some(_)) => raw::end_now(0),
            Err(_) => raw::end_now(1),
        }
    }
    act();
    raw::end_now(0)
}

/// Processes in sessions of their own, deaf to whatever can be ignored.
pub(super) fn leave_daemons() {
    many(Kin::Orphans, 3, || {
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGCHLD] {
            raw::ignore_signal(signal);
        }
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    });
}

/// In a cell, until the host ends it; outside, long enough to show that nobody does.
fn stay(bait: &Bait) -> Outcome {
    let started = Instant::now();
    while bait.is_inside() || started.elapsed() < Duration::from_millis(300) {
        std::thread::sleep(Duration::from_millis(10));
    }
    Outcome::succeeded("nobody minded")
}

/// Half a second of it, or for as long as there is somebody to stop it.
fn spin(bait: &Bait) {
    let started = Instant::now();
    while bait.is_inside() || started.elapsed() < Duration::from_millis(300) {
        std::hint::spin_loop();
    }
}

fn burn(bait: &Bait, kin: Kin) -> Outcome {
    many(kin, 4, || spin(bait));
    stay(bait)
}

/// None of them lives long enough to be seen using much.
fn burn_by_turns(bait: &Bait) -> Outcome {
    let started = Instant::now();
    while bait.is_inside() || started.elapsed() < Duration::from_millis(300) {
        many(Kin::Orphans, 1, || {
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(4) {
                std::hint::spin_loop();
            }
        });
        std::thread::sleep(Duration::from_millis(5));
    }
    Outcome::succeeded("nobody minded")
}

/// Each lives long enough to be seen, and is cleared away unwaited for.
fn burn_unwaited(bait: &Bait) -> Outcome {
    raw::ignore_signal(libc::SIGCHLD);
    let started = Instant::now();
    while bait.is_inside() || started.elapsed() < Duration::from_millis(300) {
        many(Kin::Children, 1, || {
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(60) {
                std::hint::spin_loop();
            }
        });
        std::thread::sleep(Duration::from_millis(60));
    }
    Outcome::succeeded("nobody minded")
}

fn burn_in_threads(bait: &Bait) -> Outcome {
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| spin(bait));
        }
    });
    stay(bait)
}

/// Each takes what it may have, together they take far more.
fn share_out(bait: &Bait, kin: Kin) -> Outcome {
    sharers(bait, many(kin, SHARERS, || take_share(bait)))
}

/// The same in a second thread, while the first one has ended.
fn share_out_without_first_thread(bait: &Bait) -> Outcome {
    let hide = || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                take_share(bait);
                raw::end_now(0)
            });
            let _ = call!(SYS_exit, 0);
        });
    };
    sharers(bait, many(Kin::Children, SHARERS, hide))
}

fn take_share(bait: &Bait) {
    if let Ok(address) = raw::map(SHARE, READ_WRITE, PRIVATE) {
        raw::touch(address, SHARE);
    }
    let _ = stay(bait);
}

/// Every other page of a mapping is another mapping, and each process of a chain has them all.
fn chain_of_mappings(bait: &Bait) -> Outcome {
    const PAGES: usize = 12_000;
    const CHAIN: usize = 20;
    let Ok(first) = raw::map(PAGES * 4096, READ_WRITE, PRIVATE) else {
        return Outcome::inconclusive("no room");
    };
    raw::touch(first, PAGES * 4096);
    let _ = call!(SYS_madvise, first, PAGES * 4096, libc::MADV_DONTNEED);
    for page in (0..PAGES as u64).step_by(2) {
        let page = first + page * 4096;
        if let Err(errno) = raw::protect(libc::SYS_mprotect, page, 4096, libc::PROT_READ) {
            return refused_by::<()>(Err(errno), &[libc::ENOMEM]);
        }
    }
    for _ in 0..CHAIN {
        match raw::fork() {
            // The child goes on with the chain.
            Ok(None) => {}
            Ok(Some(_)) => return stay(bait),
            Err(errno) => return refused_by::<()>(Err(errno), &[libc::ENOMEM, libc::EAGAIN]),
        }
    }
    let _ = stay(bait);
    raw::end_now(0)
}

fn sharers(bait: &Bait, started: usize) -> Outcome {
    if started < SHARERS {
        return Outcome::inconclusive(format!("only {started} processes"));
    }
    stay(bait)
}

/// A shared mapping of it is memory that stays when all but a page is unmapped.
fn zero_device(protection: i32) -> Outcome {
    const PIECE: usize = 4 << 20;
    let Ok(device) = OpenOptions::new().read(true).write(true).open("/dev/zero") else {
        return Outcome::inconclusive("no such device");
    };
    for piece in 0..96 {
        let shared = libc::MAP_SHARED;
        match raw::map_at(0, PIECE, protection as u64, shared, device.as_raw_fd()) {
            Ok(address) => {
                raw::read_pages(address, PIECE);
                let _ = call!(SYS_munmap, address + 4096, PIECE - 4096);
            }
            Err(errno) => {
                let refused = refused_by::<()>(Err(errno), &[libc::ENODEV, libc::ENOMEM]);
                return Outcome { detail: format!("after {} MiB", piece * 4), ..refused };
            }
        }
    }
    Outcome::succeeded("384 MiB")
}

fn thread_bomb(threads: usize) -> Outcome {
    let made = (0..threads).map_while(|_| {
        let rest = || std::thread::sleep(Duration::from_secs(60));
        std::thread::Builder::new().stack_size(64 << 10).spawn(rest).ok()
    });
    let made = made.count();
    Outcome::succeeded_if(made == threads, format!("{made} threads"))
}

fn bomb_of_orphans(orphans: usize) -> Outcome {
    let made = many(Kin::Orphans, orphans, || std::thread::sleep(Duration::from_millis(500)));
    Outcome::succeeded_if(made == orphans, format!("{made} orphans"))
}

/// More than [`few_files`] allows.
fn too_many(open: impl Fn() -> Result<(), Errno>) -> Outcome {
    refused_by((0..100).try_for_each(|_| open()), &[libc::EMFILE])
}
