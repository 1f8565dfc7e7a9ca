//! The tables. Each list says why its members are needed; what is in none of them is refused.

use std::collections::BTreeMap;

/// What happens to one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// It goes through.
    Allow,
    /// It fails with this errno.
    Refuse(u16),
    /// It goes through if an argument passes a test, and fails with EPERM otherwise.
    AllowIf {
        /// Which argument, from 0.
        argument: u8,
        /// The test on its low 32 bits; all tested arguments are ints or small flags.
        test: Test,
    },
}

/// A test on an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// None of these bits is set.
    NoneOf(u32),
    /// It is one of these values.
    OneOf(&'static [u32]),
}

/// A whole filter, as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    rules: BTreeMap<u32, Rule>,
}

macro_rules! numbers {
    ($($name:ident)*) => { &[$(libc::$name as u32,)*] };
}

/// Memory, threads' own state, clocks, randomness: what any engine does between two thoughts.
const COMPUTE: &[u32] = numbers! {
    SYS_brk SYS_munmap SYS_mremap SYS_madvise SYS_futex SYS_sched_yield SYS_sched_getaffinity
    SYS_rseq SYS_set_robust_list SYS_membarrier SYS_restart_syscall
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday
    SYS_getrandom SYS_exit SYS_exit_group SYS_getpid SYS_getppid SYS_gettid SYS_getuid SYS_geteuid
    SYS_getgid SYS_getegid SYS_uname SYS_sysinfo SYS_getrusage SYS_times SYS_getcpu
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack
};

/// The cell's socket.
const TALK: &[u32] = numbers! {
    SYS_read SYS_write SYS_readv SYS_writev SYS_recvfrom SYS_sendto SYS_close
    SYS_ppoll SYS_shutdown
};

/// Files, which mounts and Landlock bound: nothing but the cell's own tree is reachable. No links:
/// Landlock does not stop `readlink`, and `/proc/self/exe` would tell a host path.
const FILES: &[u32] = numbers! {
    SYS_openat SYS_pread64 SYS_pwrite64 SYS_lseek SYS_fstat SYS_newfstatat SYS_statx SYS_getdents64
    SYS_ftruncate SYS_fsync SYS_fdatasync SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_faccessat2 SYS_faccessat SYS_fchmod SYS_fchmodat SYS_utimensat
    SYS_getcwd SYS_chdir SYS_fchdir SYS_dup SYS_dup3 SYS_umask SYS_fallocate SYS_statfs SYS_fstatfs
    SYS_flock SYS_fadvise64
};

/// The same by their older names, which the C library still uses on this architecture.
#[cfg(target_arch = "x86_64")]
const OLDER_NAMES: &[u32] = numbers! {
    SYS_open SYS_stat SYS_lstat SYS_access SYS_mkdir SYS_rmdir SYS_unlink SYS_rename
    SYS_poll SYS_time SYS_dup2 SYS_getdents SYS_chmod
};
#[cfg(not(target_arch = "x86_64"))]
const OLDER_NAMES: &[u32] = &[];

/// What a keeper needs: mounting for its cell, making and reaping the guest.
const KEEP: &[u32] = numbers! {
    SYS_wait4 SYS_waitid SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_move_mount SYS_ppoll
    SYS_sendto SYS_recvfrom SYS_read SYS_write SYS_close SYS_openat SYS_exit_group SYS_munmap
    SYS_rt_sigprocmask SYS_rt_sigreturn SYS_brk SYS_futex SYS_madvise
};

/// What a zygote needs on top, to clone and confine a cell.
const CLONE_CELLS: &[u32] = numbers! {
    SYS_clone3 SYS_socketpair SYS_sendmsg SYS_recvmsg SYS_capset SYS_capget SYS_prctl SYS_seccomp
    SYS_close_range SYS_signalfd4 SYS_landlock_create_ruleset SYS_landlock_add_rule
    SYS_landlock_restrict_self SYS_prlimit64 SYS_fcntl SYS_mmap SYS_mprotect SYS_pidfd_open
    SYS_pipe2
};

/// `fcntl` commands that only concern the caller's own descriptors.
const FCNTL_COMMANDS: &[u32] = &[
    libc::F_DUPFD as u32,
    libc::F_DUPFD_CLOEXEC as u32,
    libc::F_GETFD as u32,
    libc::F_SETFD as u32,
    libc::F_GETFL as u32,
    libc::F_SETFL as u32,
    libc::F_GETLK as u32,
    libc::F_SETLK as u32,
    libc::F_SETLKW as u32,
];

impl Policy {
    /// For a guest that is one process of one thread: no new process, no exec, no socket, no
    /// executable memory.
    pub fn script() -> Self {
        let no_exec = Rule::AllowIf { argument: 2, test: Test::NoneOf(libc::PROT_EXEC as u32) };
        let mut policy = Self::of(&[COMPUTE, TALK, FILES, OLDER_NAMES]);
        policy.set(libc::SYS_mmap, no_exec);
        policy.set(libc::SYS_mprotect, no_exec);
        policy
            .set(libc::SYS_fcntl, Rule::AllowIf { argument: 1, test: Test::OneOf(FCNTL_COMMANDS) });
        // Limits of the caller itself (pid 0) only; hard limits can only go down.
        policy.set(libc::SYS_prlimit64, Rule::AllowIf { argument: 0, test: Test::OneOf(&[0]) });
        // ENOSYS makes the C library fall back to `clone`, whose flags a filter can see.
        policy.set(libc::SYS_clone3, Rule::Refuse(libc::ENOSYS as u16));
        policy
    }

    /// For the keeper of a cell, once its guest is running.
    pub fn keeper() -> Self {
        Self::of(&[KEEP])
    }

    /// For a zygote: what its cells and keepers need, and cloning them. No exec, no ptrace, no
    /// `unshare`, no `setns`, no network socket.
    pub fn zygote() -> Self {
        Self::of(&[COMPUTE, TALK, FILES, OLDER_NAMES, KEEP, CLONE_CELLS])
    }

    /// For the process that only watches over a zygote.
    pub fn warden() -> Self {
        Self::of(&[numbers! {
            SYS_write SYS_ppoll SYS_waitid SYS_pidfd_send_signal SYS_exit_group SYS_rt_sigreturn SYS_close
            SYS_munmap SYS_brk SYS_restart_syscall
        }])
    }

    /// The rule for a system-call number.
    pub fn rule(&self, number: u32) -> Rule {
        self.rules.get(&number).copied().unwrap_or(Rule::Refuse(libc::EPERM as u16))
    }

    /// Every number that has a rule of its own, in order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (u32, Rule)> + '_ {
        self.rules.iter().map(|(number, rule)| (*number, *rule))
    }

    fn of(lists: &[&[u32]]) -> Self {
        let rules = lists.iter().flat_map(|list| list.iter());
        Self { rules: rules.map(|number| (*number, Rule::Allow)).collect() }
    }

    fn set(&mut self, number: libc::c_long, rule: Rule) {
        self.rules.insert(number as u32, rule);
    }
}
