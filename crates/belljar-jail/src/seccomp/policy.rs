//! The tables. Each list says why its members are needed; what is in none of them is refused.

use std::collections::BTreeMap;

/// What happens to one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// It goes through.
    Allow,
    /// It fails with this errno.
    Refuse(u16),
    /// It goes through if every one of these arguments, counted from 0, passes its test on its
    /// low 32 bits (all of them are ints or small flags), and fails with EPERM otherwise.
    AllowIf(&'static [(u8, Test)]),
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
    SYS_brk SYS_munmap SYS_mremap SYS_futex SYS_sched_yield SYS_sched_getaffinity
    SYS_rseq SYS_set_robust_list SYS_restart_syscall
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday
    SYS_getrandom SYS_exit SYS_exit_group SYS_getpid SYS_getppid SYS_gettid SYS_getuid SYS_geteuid
    SYS_getgid SYS_getegid SYS_uname SYS_getrusage SYS_times SYS_getcpu
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack
};

/// The cell's socket.
const TALK: &[u32] = numbers! {
    SYS_read SYS_write SYS_readv SYS_writev SYS_close SYS_ppoll
};

/// Files, which mounts and Landlock bound: nothing but the cell's own tree is reachable. No links,
/// modes or times: Landlock knows no rule for them, and `/proc` has links that lead out of the tree.
/// No locks: they are kernel memory that nothing counts.
const FILES: &[u32] = numbers! {
    SYS_openat SYS_pread64 SYS_pwrite64 SYS_lseek SYS_fstat SYS_newfstatat SYS_statx SYS_getdents64
    SYS_ftruncate SYS_fsync SYS_fdatasync SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_faccessat2
    SYS_faccessat SYS_getcwd SYS_chdir SYS_fchdir SYS_umask SYS_fallocate SYS_fadvise64
};

/// The same by their older names, which the C library still uses on this architecture.
#[cfg(target_arch = "x86_64")]
const OLDER_NAMES: &[u32] = numbers! {
    SYS_open SYS_stat SYS_lstat SYS_access SYS_mkdir SYS_rmdir SYS_unlink SYS_rename
    SYS_poll SYS_time SYS_getdents
};
#[cfg(not(target_arch = "x86_64"))]
const OLDER_NAMES: &[u32] = &[];

/// Putting a descriptor in another's place, by the name this architecture has for it.
#[cfg(target_arch = "x86_64")]
const REPLACE: &[u32] = numbers! { SYS_dup2 };
#[cfg(not(target_arch = "x86_64"))]
const REPLACE: &[u32] = numbers! { SYS_dup3 };

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
    SYS_landlock_restrict_self SYS_prlimit64 SYS_fcntl SYS_mmap SYS_mprotect SYS_madvise
    SYS_sendto SYS_recvfrom SYS_pipe2
};

const OWN_PROCESS: &[u32] = &[0];
/// `fcntl` commands that only concern the caller's own descriptors.
const FCNTL_COMMANDS: &[u32] = &[
    libc::F_DUPFD_CLOEXEC as u32,
    libc::F_GETFD as u32,
    libc::F_SETFD as u32,
    libc::F_GETFL as u32,
];
/// What allocators give back or ask for; nothing that merges, poisons or populates.
const MADVISE_ADVICE: &[u32] = &[
    libc::MADV_DONTNEED as u32,
    libc::MADV_FREE as u32,
    libc::MADV_HUGEPAGE as u32,
    libc::MADV_NOHUGEPAGE as u32,
];
/// No out-of-band bytes, no ancillary tricks.
const SEND_FLAGS: &[u32] = &[0, libc::MSG_NOSIGNAL as u32];
const RECEIVE_FLAGS: &[u32] = &[0];

const NO_EXEC: (u8, Test) = (2, Test::NoneOf(libc::PROT_EXEC as u32));
/// A shared mapping keeps its pages when it is all but unmapped, and then no limit counts them; huge
/// pages are counted elsewhere.
const PRIVATE: (u8, Test) = (3, Test::NoneOf((libc::MAP_SHARED | libc::MAP_HUGETLB) as u32));

/// Calls a guest may make with some arguments only.
const GUARDED: &[(libc::c_long, Rule)] = &[
    (libc::SYS_mmap, Rule::AllowIf(&[NO_EXEC, PRIVATE])),
    (libc::SYS_mprotect, Rule::AllowIf(&[NO_EXEC])),
    (libc::SYS_madvise, Rule::AllowIf(&[(2, Test::OneOf(MADVISE_ADVICE))])),
    (libc::SYS_fcntl, Rule::AllowIf(&[(1, Test::OneOf(FCNTL_COMMANDS))])),
    (libc::SYS_sendto, Rule::AllowIf(&[(3, Test::OneOf(SEND_FLAGS))])),
    (libc::SYS_recvfrom, Rule::AllowIf(&[(3, Test::OneOf(RECEIVE_FLAGS))])),
    // Hard limits can only go down.
    (libc::SYS_prlimit64, Rule::AllowIf(&[(0, Test::OneOf(OWN_PROCESS))])),
    // ENOSYS makes the C library fall back to `clone`, whose flags a filter can see.
    (libc::SYS_clone3, Rule::Refuse(libc::ENOSYS as u16)),
];

impl Policy {
    /// For a guest that is one process of one thread: no new process, no exec, no socket, no
    /// executable or shared memory.
    pub fn script() -> Self {
        let mut policy = Self::of(&[COMPUTE, TALK, FILES, OLDER_NAMES]);
        policy.rules.extend(GUARDED.iter().map(|(number, rule)| (*number as u32, *rule)));
        policy
    }

    /// For the keeper of a cell, once its guest is running.
    pub fn keeper() -> Self {
        Self::of(&[KEEP])
    }

    /// For a zygote: what its cells and keepers need, and cloning them. No exec, no ptrace, no
    /// `unshare`, no `setns`, no network socket.
    pub fn zygote() -> Self {
        Self::of(&[COMPUTE, TALK, FILES, OLDER_NAMES, KEEP, REPLACE, CLONE_CELLS])
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
}
