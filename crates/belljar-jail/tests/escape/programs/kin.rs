//! Attempts on processes: children of one's own, which are nobody's to look into either, the
//! keeper, and whoever else might share a process group.

use std::{
    fs::{self, File, OpenOptions},
    path::Path,
    time::Duration,
};

use super::tamper::{settle, text};
use crate::harness::{
    attempt::{
        Attempt,
        Setting::{Namespaces, User},
    },
    bait::Bait,
    outcome::{Outcome, opened, own, reached, refused_by},
    raw::{self, Errno, call, words},
};

const HERE: i32 = libc::AT_FDCWD;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("trace_child", User, |_| {
        with_child(|child| reached(call!(SYS_ptrace, libc::PTRACE_SEIZE, child, 0, 0)))
    }),
    Attempt::new("read_memory_of_child", User, |_| {
        with_child(|child| {
            let mut room = [0; 64];
            let (local, remote) = (words(&[room.as_mut_ptr() as u64, 64]), words(&[0x1000, 64]));
            reached(call!(SYS_process_vm_readv, child, &local, 1, &remote, 1, 0))
        })
    }),
    Attempt::new("memory_file_of_child", User, |_| {
        with_child(|child| opened(File::open(format!("/proc/{child}/mem"))))
    }),
    Attempt::new("write_memory_file_of_child", User, |_| {
        with_child(|child| {
            opened(OpenOptions::new().write(true).open(format!("/proc/{child}/mem")))
        })
    }),
    Attempt::new("descriptor_of_child", User, |_| {
        with_child(|child| match call!(SYS_pidfd_open, child, 0) {
            Ok(pidfd) => reached(call!(SYS_pidfd_getfd, pidfd, 0, 0)),
            Err(errno) => reached::<()>(Err(errno)),
        })
    }),
    Attempt::new("compare_with_child", User, |_| {
        with_child(|child| reached(call!(SYS_kcmp, std::process::id(), child, 1, 0, 0)))
    }),
    Attempt::new("limits_of_child", User, |_| {
        with_child(|child| reached(call!(SYS_prlimit64, child, libc::RLIMIT_NOFILE, 0, 0)))
    }),
    Attempt::new("enter_namespace_of_child", Namespaces, |_| {
        with_child(|child| match call!(SYS_pidfd_open, child, 0) {
            Ok(pidfd) => reached(call!(SYS_setns, pidfd, libc::CLONE_NEWIPC)),
            Err(errno) => reached::<()>(Err(errno)),
        })
    }),
    Attempt::new("clone_mount", Namespaces, |_| cloned(libc::CLONE_NEWNS)),
    Attempt::new("clone_pid", Namespaces, |_| cloned(libc::CLONE_NEWPID)),
    Attempt::new("clone_net", Namespaces, |_| cloned(libc::CLONE_NEWNET)),
    Attempt::new("clone_ipc", Namespaces, |_| cloned(libc::CLONE_NEWIPC)),
    Attempt::new("clone_uts", Namespaces, |_| cloned(libc::CLONE_NEWUTS)),
    Attempt::new("clone_cgroup", Namespaces, |_| cloned(libc::CLONE_NEWCGROUP)),
    Attempt::new("clone_traced", User, |_| cloned(libc::CLONE_PTRACE)),
    Attempt::new("clone_input_output", User, |_| cloned(libc::CLONE_IO)),
    Attempt::new("clone3_mount", Namespaces, |_| reached(raw::clone3_and_end(libc::CLONE_NEWNS))),
    Attempt::new("end_keeper", User, |bait| signal(bait, libc::SIGKILL)),
    Attempt::new("stop_keeper", User, |bait| signal(bait, libc::SIGSTOP)),
    // Handlers of pid 1 run whoever sends the signal.
    Attempt::new("fault_keeper", User, |bait| signal(bait, libc::SIGSEGV)),
    Attempt::new("interrupt_keeper", User, |bait| signal(bait, libc::SIGINT)),
    Attempt::new("end_keeper_by_handle", User, |bait| {
        match call!(SYS_pidfd_open, bait.victim, 0) {
            Ok(pidfd) => {
                refused_by(call!(SYS_pidfd_send_signal, pidfd, libc::SIGCONT, 0, 0), REFUSED)
            }
            Err(errno) => refused_by::<()>(Err(errno), REFUSED),
        }
    }),
    Attempt::new("directory_of_keeper", User, |bait| {
        opened(fs::read_dir(format!("/proc/{}/cwd", bait.victim)))
    }),
    Attempt::new("root_of_keeper", User, |bait| {
        opened(fs::read_dir(format!("/proc/{}/root", bait.victim)))
    }),
    Attempt::new("program_of_keeper", User, |bait| {
        opened(File::open(format!("/proc/{}/exe", bait.victim)))
    }),
    Attempt::new("mode_of_program_of_keeper", User, |bait| {
        let path = text(Path::new(&format!("/proc/{}/exe", bait.victim)));
        settle(call!(SYS_fchmodat, HERE, &*path, 0o755))
    }),
    Attempt::new("namespace_of_keeper", User, |bait| {
        opened(File::open(format!("/proc/{}/ns/user", bait.victim)))
    }),
    Attempt::new("command_line_of_keeper", User, |bait| {
        opened(fs::read(format!("/proc/{}/cmdline", bait.victim)))
    }),
    Attempt::new("mounts_of_keeper", User, |bait| {
        opened(fs::read(format!("/proc/{}/mountinfo", bait.victim)))
    }),
    Attempt::new("thread_of_keeper", User, |bait| {
        opened(fs::read(format!("/proc/{0}/task/{0}/maps", bait.victim)))
    }),
    // A program that runs cannot be cut, but it is asked whether its mount is read-only before.
    Attempt::new("cut_own_program", User, |_| {
        match call!(SYS_truncate, c"/proc/self/exe", 1u64 << 40) {
            Err(libc::ETXTBSY) => Outcome::succeeded("allowed, but busy"),
            other => settle(other),
        }
    }),
    Attempt::new("climb_from_own_root", User, |bait| {
        opened(fs::read(format!("/proc/self/root/../..{}", bait.secret_path.display())))
    }),
    Attempt::new("change_own_oom_score", User, |_| opened(fs::write(own("oom_score_adj"), "1000"))),
    Attempt::new("choose_what_is_dumped", User, |_| opened(fs::write(own("coredump_filter"), "0"))),
    Attempt::new("end_neighbour_by_group", User, end_group).beside(|bait| {
        if bait.is_inside() { Outcome::succeeded("is there") } else { Outcome::succeeded("") }
    }),
];

const REFUSED: &[Errno] = &[libc::EPERM, libc::EACCES];

/// Outside, the victim is somebody's own process.
fn signal(bait: &Bait, signal: i32) -> Outcome {
    // A victim that is needed again is not really to be ended there.
    let signal = if bait.is_inside() { signal } else { 0 };
    refused_by(call!(SYS_kill, bait.victim, signal), REFUSED)
}

fn cloned(flags: i32) -> Outcome {
    reached(raw::clone_and_end(flags))
}

/// A child that sleeps meanwhile.
fn with_child(act: impl Fn(i32) -> Outcome) -> Outcome {
    match raw::fork() {
        Ok(None) => loop {
            std::thread::sleep(Duration::from_secs(60));
        },
        Ok(Some(child)) => {
            let outcome = act(child);
            let _ = call!(SYS_kill, child, libc::SIGKILL);
            let _ = call!(SYS_wait4, child, 0, 0, 0);
            outcome
        }
        Err(errno) => Outcome { errno: Some(errno), ..Outcome::inconclusive("no child") },
    }
}

/// Ends everybody else in the process group of whoever calls this; the host sees whom it hit. The
/// zygote's is the group its cells are born into. Outside, a group is made for that.
fn end_group(bait: &Bait) -> Outcome {
    if bait.is_inside() {
        raw::ignore_signal(libc::SIGUSR1);
        return match call!(SYS_kill, 0, libc::SIGUSR1) {
            Ok(_) => Outcome::blocked("only this process is in the group, unless a neighbour ends"),
            Err(errno) => refused_by::<()>(Err(errno), REFUSED),
        };
    }
    with_child_of_group(|neighbour| {
        raw::ignore_signal(libc::SIGUSR1);
        let _ = call!(SYS_kill, 0, libc::SIGUSR1);
        let mut status = [0; 4];
        let _ = call!(SYS_wait4, neighbour, &mut status[..], 0, 0);
        i32::from_ne_bytes(status) & 0x7f == libc::SIGUSR1
    })
}

fn with_child_of_group(ends: impl Fn(i32) -> bool) -> Outcome {
    match raw::fork() {
        Ok(Some(leader)) => {
            let mut status = [0; 4];
            let _ = call!(SYS_wait4, leader, &mut status[..], 0, 0);
            Outcome::succeeded_if(status == [0; 4], "a neighbour was to end")
        }
        Ok(None) => {
            let _ = call!(SYS_setsid);
            match raw::fork() {
                Ok(Some(neighbour)) => raw::end_now(i32::from(!ends(neighbour))),
                _ => loop {
                    std::thread::sleep(Duration::from_secs(60));
                },
            }
        }
        Err(errno) => Outcome { errno: Some(errno), ..Outcome::inconclusive("no child") },
    }
}
