//! Attempts to make processes, to get at others, and to gain privilege.

use std::fs::{self, OpenOptions};

use crate::harness::{
    attempt::{
        Attempt, Ending,
        Setting::{Namespaces, Root, User},
    },
    bait::Bait,
    outcome::{Outcome, opened, own, permitted, reached},
    raw::{self, call, words},
};
use belljar_contract::ErrorCode;

/// For a fork bomb in a session.
pub(crate) const ROOM: &str = "there is room for 64 branches, and still a limit";
const OWN_TREE: &str = "own process tree only, counted by RLIMIT_NPROC";

pub(crate) const ATTEMPTS: &[Attempt] = &[
    #[cfg(target_arch = "x86_64")]
    Attempt::new("fork", User, |_| reached(raw::fork_and_end())).harmless_for_programs(OWN_TREE),
    Attempt::new("clone", User, |_| reached(raw::clone_and_end(0))).harmless_for_programs(OWN_TREE),
    Attempt::new("clone3", User, |_| reached(raw::clone3_and_end(0))),
    // A child of the keeper would outlive the guest unnoticed.
    Attempt::new("clone_parent", User, |_| reached(raw::clone_and_end(libc::CLONE_PARENT)))
        .harmless_in_sessions(
            "as branching does; it is counted, and its host ends what is no branch",
        ),
    Attempt::new("thread", User, |_| permitted(std::thread::Builder::new().spawn(|| ())))
        .harmless_for_programs(OWN_TREE),
    Attempt::new("fork_bomb", User, |_| bomb(64))
        .limits(|limits| limits.processes = 8)
        .harmless_in_sessions(ROOM),
    Attempt::new("larger_fork_bomb", User, |_| bomb(128)).limits(|limits| limits.processes = 8),
    Attempt::new("daemonise", User, |_| match raw::fork() {
        Ok(None) => {
            let done = call!(SYS_setsid).is_ok() && raw::clone_and_end(0).is_ok();
            raw::end_now(i32::from(!done))
        }
        Ok(Some(child)) => {
            let mut status = [0; 4];
            let _ = call!(SYS_wait4, child, &mut status[..], 0, 0);
            Outcome::succeeded_if(status == [0; 4], format!("status {status:?}"))
        }
        Err(errno) => reached::<()>(Err(errno)),
    })
    .harmless_for_programs(OWN_TREE),
    Attempt::new("run_program", User, |_| reached(call!(SYS_execve, c"/no/such/program", 0, 0)))
        .harmless_for_programs("Landlock says which programs; a filter is inherited by them"),
    Attempt::new("run_descriptor", User, |_| {
        reached(call!(SYS_execveat, -1, c"no-such-program", 0, 0, 0))
    }),
    Attempt::new("trace_victim", User, |bait| {
        reached(call!(SYS_ptrace, libc::PTRACE_SEIZE, bait.victim, 0, 0))
    }),
    Attempt::new("be_traced", User, |_| reached(call!(SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0))),
    Attempt::new("read_memory_of_victim", User, |bait| {
        let (mut room, here) = ([0; 64], 0x1000u64);
        let local = words(&[room.as_mut_ptr() as u64, 64]);
        let remote = words(&[here, 64]);
        reached(call!(SYS_process_vm_readv, bait.victim, &local, 1, &remote, 1, 0))
    }),
    Attempt::new("write_memory_of_victim", User, |bait| {
        let (data, here) = ([0u8; 64], 0x1000u64);
        let (local, remote) = (words(&[data.as_ptr() as u64, 64]), words(&[here, 64]));
        reached(call!(SYS_process_vm_writev, bait.victim, &local, 1, &remote, 1, 0))
    }),
    Attempt::new("handle_of_victim", User, |bait| reached(call!(SYS_pidfd_open, bait.victim, 0)))
        .harmless_for_programs(
            "the keeper can be waited for, but neither signalled nor looked into",
        ),
    Attempt::new("descriptor_of_victim", User, |bait| {
        match call!(SYS_pidfd_open, bait.victim, 0) {
            Ok(pidfd) => reached(call!(SYS_pidfd_getfd, pidfd, 0, 0)),
            Err(errno) => reached::<()>(Err(errno)),
        }
    }),
    Attempt::new("compare_with_victim", User, |bait| {
        let own = std::process::id();
        reached(call!(SYS_kcmp, own, bait.victim, 1, 0, 0))
    }),
    Attempt::new("signal_victim", User, |bait| reached(call!(SYS_kill, bait.victim, 0))),
    Attempt::new("signal_everybody", User, |_| reached(call!(SYS_kill, -1, 0)))
        .harmless_for_programs("the cell has processes of its own and reaches no others"),
    Attempt::new("signal_group", User, |_| reached(call!(SYS_kill, 0, 0)))
        .harmless_for_programs("the cell has processes of its own and reaches no others"),
    Attempt::new("signal_thread_of_victim", User, |bait| {
        reached(call!(SYS_tgkill, bait.victim, bait.victim, 0))
    }),
    Attempt::new("queue_signal_to_victim", User, |bait| {
        // A siginfo whose si_code is SI_QUEUE.
        let info = [words(&[0, (-1i32).cast_unsigned().into()]), vec![0; 112]].concat();
        reached(call!(SYS_rt_sigqueueinfo, bait.victim, 0, &info))
    }),
    Attempt::new("limits_of_victim", User, |bait| {
        let mut limits = [0; 16];
        let of = (1 << 32) | i64::from(bait.victim);
        reached(call!(SYS_prlimit64, of, libc::RLIMIT_NOFILE, 0, &mut limits[..]))
    }),
    Attempt::new("affinity_of_victim", User, |bait| {
        let mask = words(&[u64::MAX]);
        reached(call!(SYS_sched_setaffinity, bait.victim, mask.len(), &mask))
    }),
    Attempt::new("memory_file_of_victim", User, |bait| of_victim(bait, "mem")),
    Attempt::new("maps_of_victim", User, |bait| of_victim(bait, "maps")),
    Attempt::new("environment_of_victim", User, |bait| of_victim(bait, "environ")),
    Attempt::new("descriptors_of_victim", User, |bait| {
        opened(fs::read_dir(format!("/proc/{}/fd", bait.victim)))
    }),
    Attempt::new("descriptor_link_of_victim", User, |bait| {
        opened(fs::read_link(format!("/proc/{}/fd/0", bait.victim)))
    }),
    // Writing to it goes round the filter's rule against executable memory.
    Attempt::new("write_own_memory_file", User, |_| {
        opened(OpenOptions::new().write(true).open(own("mem")))
    }),
    Attempt::new("read_own_memory_file", User, |_| opened(fs::File::open(own("mem")))),
    Attempt::new("see_other_processes", User, |_| {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids: Vec<u32> =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        // The keeper and this one.
        Outcome::succeeded_if(pids.len() > 2, format!("{pids:?}"))
    }),
    Attempt::new("become_root", Namespaces, |_| reached(call!(SYS_setresuid, 0, 0, 0))),
    Attempt::new("become_root_group", Namespaces, |_| reached(call!(SYS_setresgid, 0, 0, 0))),
    Attempt::new("drop_groups", Root, |_| reached(call!(SYS_setgroups, 0, 0))),
    Attempt::new("file_system_user", User, |_| reached(call!(SYS_setfsuid, 0))),
    Attempt::new("take_capabilities", Namespaces, |_| {
        let header = [0x2008_0522u32.to_ne_bytes(), [0; 4]].concat();
        reached(call!(SYS_capset, &header, &vec![255; 24]))
    }),
    Attempt::new("have_capabilities", Namespaces, |_| {
        let (header, mut sets) = ([0x2008_0522u32.to_ne_bytes(), [0; 4]].concat(), [0; 24]);
        match call!(SYS_capget, &header, &mut sets[..]) {
            Ok(_) => Outcome::succeeded_if(sets != [0; 24], format!("{sets:?}")),
            Err(errno) => reached::<()>(Err(errno)),
        }
    })
    .harmless_in_sessions("CAP_SYS_CHROOT, which leads nowhere from a tree without a parent"),
    Attempt::new("gain_by_exec", User, |_| is_off(libc::PR_GET_NO_NEW_PRIVS)),
    Attempt::new("run_without_filter", User, |_| is_off(libc::PR_GET_SECCOMP)),
    Attempt::new("become_dumpable", User, |_| {
        reached(call!(SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0))
    }),
    Attempt::new("adopt_orphans", User, |_| {
        reached(call!(SYS_prctl, libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    }),
    Attempt::new("allow_core_dumps", User, |_| {
        let limit = words(&[1 << 20, 1 << 20]);
        reached(call!(SYS_prlimit64, 0, libc::RLIMIT_CORE, &limit, 0))
    }),
    Attempt::new("real_time_scheduling", Root, |_| {
        let priority = 1i32.to_ne_bytes();
        reached(call!(SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &priority[..]))
    }),
    Attempt::new("raise_priority", Root, |_| reached(call!(SYS_setpriority, 0, 0, -5))),
    Attempt::new("raise_io_priority", Root, |_| {
        const REAL_TIME: u32 = 1 << 13;
        reached(call!(SYS_ioprio_set, 1, 0, REAL_TIME))
    }),
    Attempt::new("spin_without_end", User, |bait| spin(bait, &[]))
        .ends(&[Ending::Error(ErrorCode::LimitTimeout)])
        .limits(|limits| limits.timeout = std::time::Duration::from_millis(150)),
    Attempt::new("spin_deaf_to_signals", User, |bait| {
        spin(bait, &[libc::SIGTERM, libc::SIGXCPU, libc::SIGALRM, libc::SIGINT, libc::SIGHUP])
    })
    .ends(&[Ending::Error(ErrorCode::LimitCpu)])
    .limits(|limits| limits.cpu = std::time::Duration::from_millis(150)),
];

fn of_victim(bait: &Bait, file: &str) -> Outcome {
    opened(fs::read(format!("/proc/{}/{file}", bait.victim)).or_else(|error| {
        // Address 0 of a memory file cannot be read, but the file was opened.
        if error.raw_os_error() == Some(libc::EIO) { Ok(Vec::new()) } else { Err(error) }
    }))
}

/// A state of the process that a cell must have turned on.
fn is_off(question: i32) -> Outcome {
    match call!(SYS_prctl, question, 0, 0, 0, 0) {
        Ok(state) => Outcome::succeeded_if(state == 0, format!("state {state}")),
        Err(errno) => reached::<()>(Err(errno)),
    }
}

/// Processes that stay, until one is refused.
pub(crate) fn bomb(processes: usize) -> Outcome {
    let mut children = Vec::new();
    let refused = loop {
        match raw::fork() {
            Ok(Some(child)) => children.push(child),
            Ok(None) => loop {
                std::thread::sleep(std::time::Duration::from_secs(60));
            },
            Err(errno) => break Some(errno),
        }
        if children.len() >= processes {
            break None;
        }
    };
    for child in &children {
        let _ = call!(SYS_kill, *child, libc::SIGKILL);
        let _ = call!(SYS_wait4, *child, 0, 0, 0);
    }
    let made = format!("{} processes", children.len());
    match refused {
        None => Outcome::succeeded(made),
        Some(errno) => Outcome { errno: Some(errno), ..Outcome::blocked(made) },
    }
}

/// Outside, half a second of it is enough to show that nothing stops it.
fn spin(bait: &Bait, deaf_to: &[i32]) -> Outcome {
    deaf_to.iter().for_each(|signal| _ = raw::ignore_signal(*signal));
    let started = std::time::Instant::now();
    while bait.is_inside() || started.elapsed().as_millis() < 500 {
        std::hint::spin_loop();
    }
    Outcome::succeeded("nobody stopped it")
}
