//! Attempts to use more memory than granted, to make it executable, or to find what others left.

use std::{
    fs::{File, OpenOptions},
    os::fd::AsRawFd,
};

use crate::harness::{
    attempt::{
        Attempt, Ending,
        Setting::{Root, User},
    },
    bait::{Bait, DISGUISE},
    outcome::{Outcome, reached, refused_by},
    raw::{self, Errno, call, words},
};
use belljar_contract::{ErrorCode, Limits};

/// Far over what a run of [`small_memory`] may have, slack of every kind included.
const TOO_MUCH: usize = 384 << 20;

/// Out of memory, told by the kernel to the probe or by the host to the caller.
const OUT_OF_MEMORY: &[Ending] = &[Ending::Blocked, Ending::Error(ErrorCode::LimitMemory)];

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
const SHARED: i32 = libc::MAP_SHARED | libc::MAP_ANONYMOUS;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("private_memory", User, |_| use_up(|bytes| raw::map(bytes, READ_WRITE, PRIVATE)))
        .ends(OUT_OF_MEMORY)
        .limits(small_memory),
    Attempt::new("shared_memory", User, |_| use_up(|bytes| raw::map(bytes, READ_WRITE, SHARED)))
        .ends(OUT_OF_MEMORY)
        .limits(small_memory),
    // The pages of a shared mapping outlive it as long as one page of it is left.
    Attempt::new("shared_memory_let_go", User, |_| {
        use_up_and(
            |bytes| raw::map(bytes, READ_WRITE, SHARED),
            |address, bytes| {
                let _ = call!(SYS_munmap, address + 4096, bytes - 4096);
            },
        )
    })
    .ends(OUT_OF_MEMORY)
    .limits(small_memory),
    Attempt::new("heap", User, |_| use_up(raw::grow_break))
        .ends(OUT_OF_MEMORY)
        .limits(small_memory),
    Attempt::new("stack", User, |_| {
        let much = words(&[256 << 20, 256 << 20]);
        let _ = call!(SYS_prlimit64, 0, libc::RLIMIT_STACK, &much, 0);
        Outcome::succeeded(format!("{} frames", descend(96 << 4)))
    })
    // A program that was started as such has a handler that says so first.
    .ends(&[Ending::Killed(libc::SIGSEGV), Ending::Killed(libc::SIGABRT)]),
    Attempt::new("reserve_addresses", User, |_| {
        refused_by(raw::map(4 << 30, READ_WRITE, PRIVATE | libc::MAP_NORESERVE), &[libc::ENOMEM])
    })
    .limits(small_memory),
    // Counted by no limit of a process.
    Attempt::new("memory_file", User, |_| reached(call!(SYS_memfd_create, c"x", 0))),
    Attempt::new("secret_memory_file", User, |_| reached(call!(SYS_memfd_secret, 0))),
    Attempt::new("pipe", User, |_| reached(call!(SYS_pipe2, &mut [0; 8][..], 0)))
        .harmless_for_programs(
            "as many as RLIMIT_NOFILE allows, of 64 KiB, which cannot be raised",
        ),
    Attempt::new("splice", User, |_| reached(call!(SYS_vmsplice, -1, 0, 0, 0))),
    Attempt::new("lock_memory", User, |_| {
        let page = vec![0u8; 4096];
        reached(call!(SYS_mlock, &page, page.len()))
    }),
    Attempt::new("lock_all_memory", Root, |_| reached(call!(SYS_mlockall, libc::MCL_CURRENT))),
    Attempt::new("map_executable", User, |_| {
        reached(raw::map(4096, READ_WRITE | libc::PROT_EXEC, PRIVATE))
    })
    .harmless_for_programs("programs load libraries; whatever they execute, the filter is theirs"),
    Attempt::new("map_executable_high_bits", User, |_| {
        let protection = (READ_WRITE | libc::PROT_EXEC) as u64 | 1 << 40;
        reached(raw::map_at(0, 4096, protection, PRIVATE, -1))
    })
    .harmless_for_programs("programs load libraries; whatever they execute, the filter is theirs"),
    Attempt::new("make_executable", User, |_| protect(libc::SYS_mprotect)).harmless_for_programs(
        "programs load libraries; whatever they execute, the filter is theirs",
    ),
    Attempt::new("make_executable_by_key", User, |_| protect(libc::SYS_pkey_mprotect)),
    Attempt::new("read_implies_execute", User, |_| {
        const READ_IMPLIES_EXEC: u64 = 0x0040_0000;
        reached(call!(SYS_personality, READ_IMPLIES_EXEC))
    }),
    Attempt::new("map_page_zero", Root, |_| {
        let flags = PRIVATE | libc::MAP_FIXED;
        reached(raw::map_at(0, 4096, READ_WRITE as u64, flags, -1))
    }),
    // Merged pages tell by their timing what others have in memory.
    Attempt::new("merge_pages", User, |_| advise(libc::MADV_MERGEABLE)),
    Attempt::new("page_out", User, |_| advise(libc::MADV_PAGEOUT)),
    Attempt::new("interrupt_all_processors", User, |_| reached(call!(SYS_membarrier, 2, 0, 0))),
    Attempt::new("see_memory_of_host", User, |_| reached(call!(SYS_sysinfo, &mut [0; 128][..])))
        .harmless_for_programs("a number every program asks for; nothing of anybody's"),
    Attempt::new("move_pages_of_victim", User, |bait| {
        reached(call!(SYS_migrate_pages, bait.victim, 8, &vec![0; 8], &vec![0; 8]))
    }),
    // A cell is a copy of its zygote, which must not have kept anything of an earlier run.
    Attempt::new("memory_of_earlier_run", User, find_in_memory).beside(|bait| {
        std::mem::forget(bait.undisguised());
        Outcome::succeeded("kept in memory")
    }),
];

fn small_memory(limits: &mut Limits) {
    limits.memory = 64 << 20;
}

/// Takes memory piece by piece and writes to all of it.
fn use_up(more: impl Fn(usize) -> Result<u64, Errno>) -> Outcome {
    use_up_and(more, |_, _| {})
}

fn use_up_and(more: impl Fn(usize) -> Result<u64, Errno>, then: impl Fn(u64, usize)) -> Outcome {
    const PIECE: usize = 4 << 20;
    let mut used = 0;
    while used < TOO_MUCH {
        match more(PIECE) {
            Ok(address) => {
                raw::touch(address, PIECE);
                then(address, PIECE);
            }
            Err(errno) => {
                let refused = refused_by::<()>(Err(errno), &[libc::ENOMEM, libc::EPERM]);
                return Outcome { detail: format!("after {} MiB", used >> 20), ..refused };
            }
        }
        used += PIECE;
    }
    Outcome::succeeded(format!("{} MiB", used >> 20))
}

/// Frames of 64 KiB each.
fn descend(frames: usize) -> usize {
    let frame = std::hint::black_box([1u8; 64 << 10]);
    if frames == 0 { 0 } else { descend(frames - 1) + usize::from(frame[frames & 0xffff]) }
}

fn protect(number: libc::c_long) -> Outcome {
    match raw::map(4096, READ_WRITE, PRIVATE) {
        Ok(page) => reached(raw::protect(number, page, 4096, libc::PROT_READ | libc::PROT_EXEC)),
        Err(errno) => Outcome { errno: Some(errno), ..Outcome::inconclusive("no page") },
    }
}

fn advise(advice: i32) -> Outcome {
    match raw::map(4096, READ_WRITE, PRIVATE) {
        Ok(page) => reached(call!(SYS_madvise, page, 4096, advice)),
        Err(errno) => Outcome { errno: Some(errno), ..Outcome::inconclusive("no page") },
    }
}

/// Reads this process's own memory through the kernel, which says where there is none.
struct Memory {
    file: File,
}

impl Memory {
    fn new(bait: &Bait) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        Ok(Self { file: options.open(bait.scratch("memory"))? })
    }

    fn read(&self, address: u64, room: &mut [u8]) -> bool {
        let fd = self.file.as_raw_fd();
        let wrote = call!(SYS_pwrite64, fd, address, room.len(), 0);
        let length = room.len() as u64;
        wrote == Ok(length) && call!(SYS_pread64, fd, room, length, 0) == Ok(length)
    }
}

/// The text at an address, up to the end of its page.
pub(crate) fn text_at(bait: &Bait, address: u64) -> String {
    let mut room = vec![0; 4096 - usize::try_from(address % 4096).unwrap_or_default()];
    let read = Memory::new(bait).is_ok_and(|memory| memory.read(address, &mut room));
    let text = room.split(|byte| *byte == 0).next().filter(|_| read).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Looks at heap, stack and mappings for a text that is kept disguised here.
fn find_in_memory(bait: &Bait) -> Outcome {
    let Ok(memory) = Memory::new(bait) else { return Outcome::inconclusive("no scratch file") };
    let big = vec![0u8; 1 << 20];
    let heap = raw::call_number(libc::SYS_brk, [0.into()]).unwrap_or_default();
    let places = [
        (heap.saturating_sub(16 << 20), 16 << 20),
        (std::ptr::from_ref(&heap) as u64 & !0xfff, 1 << 20),
        (big.as_ptr() as u64 & !0xfff, 8 << 20),
        (bait as *const Bait as u64 & !0xfff, 4096),
    ];
    let (mut pages, mut found) = (0, false);
    let mut page = [0; 4096];
    for (start, bytes) in places {
        for address in (start & !0xfff..start + bytes).step_by(4096) {
            if memory.read(address, &mut page) {
                pages += 1;
                found |= holds(&page, &bait.disguised);
            }
        }
    }
    Outcome::succeeded_if(found, format!("{pages} pages"))
}

fn holds(page: &[u8], disguised: &[u8]) -> bool {
    let Some(first) = disguised.first().map(|byte| byte ^ DISGUISE) else { return false };
    let starts = page.iter().enumerate().filter(|(_, byte)| **byte == first);
    let same =
        |at: &[u8]| at.iter().zip(disguised).all(|(byte, hidden)| byte ^ DISGUISE == *hidden);
    let texts = starts.filter_map(|(start, _)| page.get(start..start + disguised.len()));
    texts.into_iter().any(same)
}
