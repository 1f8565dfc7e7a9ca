//! Attempts to reach the host through System V and POSIX inter-process communication.

use std::fs;

use crate::harness::{
    attempt::{Attempt, Setting::User},
    outcome::{Outcome, opened, reached, refused_by},
    raw::{Errno, call},
};

/// Not allowed, or nothing there: a namespace of its own is empty.
const REFUSALS: &[Errno] = &[libc::EPERM, libc::EACCES, libc::ENOENT, libc::ENOSYS];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("find_segment", User, |bait| {
        refused_by(call!(SYS_shmget, bait.key, 0, 0), REFUSALS)
    }),
    Attempt::new("find_message_queue", User, |bait| {
        refused_by(call!(SYS_msgget, bait.key, 0), REFUSALS)
    }),
    Attempt::new("find_semaphore", User, |bait| {
        refused_by(call!(SYS_semget, bait.key, 0, 0), REFUSALS)
    }),
    Attempt::new("open_message_queue", User, |bait| {
        refused_by(call!(SYS_mq_open, &*bait.queue, libc::O_RDONLY, 0, 0), REFUSALS)
    }),
    Attempt::new("make_segment", User, |_| {
        let made = call!(SYS_shmget, libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o600);
        if let Ok(id) = made {
            let _ = call!(SYS_shmctl, id, libc::IPC_RMID, 0);
        }
        reached(made)
    }),
    Attempt::new("make_message_queue", User, |_| {
        let made = call!(SYS_msgget, libc::IPC_PRIVATE, libc::IPC_CREAT | 0o600);
        if let Ok(id) = made {
            let _ = call!(SYS_msgctl, id, libc::IPC_RMID, 0);
        }
        reached(made)
    }),
    Attempt::new("count_segments", User, |_| {
        const SHM_INFO: i32 = 14;
        reached(call!(SYS_shmctl, 0, SHM_INFO, &mut [0; 64][..]))
    }),
    Attempt::new("list_segments", User, |bait| match fs::read_to_string("/proc/sysvipc/shm") {
        Ok(list) => Outcome::succeeded_if(list.contains(&bait.key.to_string()), list),
        Err(error) => opened::<()>(Err(error)),
    }),
    Attempt::new("read_shared_file", User, |bait| opened(fs::read(&bait.shared_path))),
    Attempt::new("event_counter", User, |_| reached(call!(SYS_eventfd2, 0, 0)))
        .harmless_for_programs("counted by RLIMIT_NOFILE"),
    Attempt::new("robust_list_of_victim", User, |bait| {
        reached(call!(SYS_get_robust_list, bait.victim, &mut [0; 8][..], &mut [0; 8][..]))
    }),
];
