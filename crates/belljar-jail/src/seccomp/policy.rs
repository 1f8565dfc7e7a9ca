//! The tables. Each list says why its members are needed; calls in no list are refused.

mod network;

use std::collections::BTreeMap;

use crate::Guests;

/// The verdict on one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeccompRule {
    /// The call is made.
    Allow,
    /// The call fails with this errno.
    Refuse(u16),
    /// The call is made if each of these arguments, counted from 0, passes its test on its low 32
    /// bits (all of them are ints or small flags), and fails with EPERM otherwise.
    AllowIf(&'static [(u8, ArgumentTest)]),
}

/// A test on an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentTest {
    /// None of these bits is set.
    NoneOf(u32),
    /// At least one of these bits is not set.
    NotAllOf(u32),
    /// It is one of these values.
    OneOf(&'static [u32]),
}

/// A whole filter, as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeccompPolicy {
    rules: BTreeMap<u32, SeccompRule>,
}

macro_rules! numbers {
    ($($name:ident)*) => { &[$(libc::$name as u32,)*] };
}

/// Memory, a thread's own state, clocks, randomness: the calls that any engine needs to compute.
const COMPUTE: &[u32] = numbers! {
    SYS_brk SYS_munmap SYS_mremap SYS_futex SYS_sched_yield SYS_sched_getaffinity
    SYS_rseq SYS_set_robust_list SYS_restart_syscall
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday
    SYS_getrandom SYS_exit SYS_exit_group SYS_getpid SYS_getppid SYS_gettid SYS_getuid SYS_geteuid
    SYS_getgid SYS_getegid SYS_uname SYS_getrusage SYS_times SYS_getcpu
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack
};

/// Reading and writing the cell's socket.
const TALK: &[u32] = numbers! {
    SYS_read SYS_write SYS_readv SYS_writev SYS_close SYS_ppoll
};

/// Files, which mounts and Landlock bound: nothing but the cell's own tree is reachable. No links,
/// modes or times: Landlock knows no rule for them, and `/proc` has links that lead out of the
/// tree. No locks: they are kernel memory that nothing counts.
const FILES: &[u32] = numbers! {
    SYS_openat SYS_pread64 SYS_pwrite64 SYS_lseek SYS_fstat SYS_newfstatat SYS_statx SYS_getdents64
    SYS_ftruncate SYS_fsync SYS_fdatasync SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_faccessat2
    SYS_faccessat SYS_getcwd SYS_chdir SYS_fchdir SYS_umask SYS_fallocate
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

/// Links, modes and times of files, and other ways of copying them. Programs were started from
/// read-only mounts, so their `/proc` leads to nothing that could be changed. No `readahead`: what
/// is in the page cache is seen by all cells that read the same software, and must not carry bits.
const MORE_FILES: &[u32] = numbers! {
    SYS_symlinkat SYS_readlinkat SYS_linkat SYS_utimensat SYS_renameat SYS_truncate SYS_statfs
    SYS_fstatfs SYS_copy_file_range SYS_sendfile SYS_preadv SYS_pwritev SYS_sync_file_range
};

/// Starting, ending and waiting for processes and threads. All of them stay in the cell, and the
/// number of them is limited.
const PROCESSES: &[u32] = numbers! {
    SYS_execve SYS_wait4 SYS_waitid SYS_kill SYS_tkill SYS_tgkill SYS_set_tid_address
    SYS_setpgid SYS_getpgid SYS_getsid SYS_setsid SYS_getgroups SYS_getresuid SYS_getresgid
    SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_rt_sigpending SYS_rt_sigqueueinfo
    SYS_setitimer SYS_getitimer SYS_get_robust_list SYS_getpriority SYS_sched_getparam
    SYS_sched_getscheduler SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sysinfo
    SYS_setrlimit SYS_getrlimit SYS_capget SYS_pidfd_open SYS_pidfd_send_signal
};

/// Pipes, and waiting for several of them at once.
const PIPES: &[u32] = numbers! {
    SYS_pipe2 SYS_dup SYS_dup3 SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait
    SYS_eventfd2 SYS_shutdown
};

/// All of these by their older names.
#[cfg(target_arch = "x86_64")]
const OLDER_NAMES_OF_PROGRAMS: &[u32] = numbers! {
    SYS_fork SYS_vfork SYS_pipe SYS_dup2 SYS_select SYS_epoll_create SYS_epoll_wait SYS_eventfd
    SYS_symlink SYS_readlink SYS_link SYS_utime SYS_utimes SYS_futimesat SYS_getpgrp SYS_alarm
    SYS_pause
};
#[cfg(not(target_arch = "x86_64"))]
const OLDER_NAMES_OF_PROGRAMS: &[u32] = &[];

/// The calls of a keeper: mounting for its cell, making and reaping the guest.
const KEEP: &[u32] = numbers! {
    SYS_sendmsg SYS_wait4 SYS_waitid SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_move_mount SYS_ppoll
    SYS_sendto SYS_recvfrom SYS_read SYS_write SYS_close SYS_openat SYS_exit_group SYS_munmap
    SYS_rt_sigprocmask SYS_rt_sigreturn SYS_brk SYS_futex SYS_madvise
};

/// The calls of a zygote in addition, to clone and confine a cell.
const CLONE_CELLS: &[u32] = numbers! {
    SYS_clone3 SYS_socketpair SYS_sendmsg SYS_recvmsg SYS_capset SYS_capget SYS_prctl SYS_seccomp
    SYS_close_range SYS_signalfd4 SYS_landlock_create_ruleset SYS_landlock_add_rule
    SYS_landlock_restrict_self SYS_prlimit64 SYS_fcntl SYS_mmap SYS_mprotect SYS_madvise
    SYS_sendto SYS_recvfrom SYS_pipe2 SYS_setsid SYS_fadvise64
    SYS_open_tree SYS_mount_setattr SYS_pivot_root SYS_umount2 SYS_symlinkat SYS_readlinkat
    SYS_mknodat
};

/// The calls of a session's keeper in addition: trees and layers for branches, and removing them.
const KEEP_BRANCHES: &[u32] = numbers! {
    SYS_open_tree SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_fchmodat SYS_fstat
    SYS_newfstatat SYS_statx SYS_getdents64 SYS_lseek
};

/// The calls of a session's guest in addition: to take descriptors from the host, and to continue
/// in another tree of files. A tree has no parent, and `chroot` leads nowhere else.
const BRANCH: &[u32] = numbers! {
    SYS_chroot SYS_fchdir SYS_chdir SYS_getcwd SYS_close_range SYS_dup3 SYS_setsid
};

const OWN_PROCESS: &[u32] = &[0];
/// `fcntl` commands that only concern the caller's own descriptors.
const FCNTL_COMMANDS: &[u32] = &[
    libc::F_DUPFD_CLOEXEC as u32,
    libc::F_GETFD as u32,
    libc::F_SETFD as u32,
    libc::F_GETFL as u32,
];
/// The advice of allocators; nothing that merges, poisons or populates.
const MADVISE_ADVICE: &[u32] = &[
    libc::MADV_DONTNEED as u32,
    libc::MADV_FREE as u32,
    libc::MADV_HUGEPAGE as u32,
    libc::MADV_NOHUGEPAGE as u32,
];
/// Advice about how a file will be read; nothing that takes pages out of the cache all cells share.
const FADVISE_ADVICE: &[u32] = &[
    libc::POSIX_FADV_NORMAL as u32,
    libc::POSIX_FADV_RANDOM as u32,
    libc::POSIX_FADV_SEQUENTIAL as u32,
    libc::POSIX_FADV_WILLNEED as u32,
];
/// Among the flags is one that says whether a page is in that cache.
const NO_FLAGS: (u8, ArgumentTest) = (5, ArgumentTest::OneOf(&[0]));
/// No out-of-band bytes, no ancillary tricks.
const SEND_FLAGS: &[u32] = &[0, libc::MSG_NOSIGNAL as u32];
const RECEIVE_FLAGS: &[u32] = &[0];

const NO_EXEC: (u8, ArgumentTest) = (2, ArgumentTest::NoneOf(libc::PROT_EXEC as u32));
/// A shared mapping keeps its pages when it is all but unmapped, and then no limit counts them;
/// huge pages are counted elsewhere.
const PRIVATE: (u8, ArgumentTest) =
    (3, ArgumentTest::NoneOf((libc::MAP_SHARED | libc::MAP_HUGETLB) as u32));

/// No file of a guest's is ever setuid or setgid, not even on a granted tree of the host's.
const PLAIN_MODE: ArgumentTest = ArgumentTest::NoneOf(libc::S_ISUID | libc::S_ISGID);

/// Calls a guest may make with some arguments only.
const GUARDED: &[(libc::c_long, SeccompRule)] = &[
    (libc::SYS_mmap, SeccompRule::AllowIf(&[NO_EXEC, PRIVATE])),
    (libc::SYS_mprotect, SeccompRule::AllowIf(&[NO_EXEC])),
    (libc::SYS_madvise, SeccompRule::AllowIf(&[(2, ArgumentTest::OneOf(MADVISE_ADVICE))])),
    (libc::SYS_fadvise64, SeccompRule::AllowIf(&[(3, ArgumentTest::OneOf(FADVISE_ADVICE))])),
    (libc::SYS_fcntl, SeccompRule::AllowIf(&[(1, ArgumentTest::OneOf(FCNTL_COMMANDS))])),
    (libc::SYS_sendto, SeccompRule::AllowIf(&[(3, ArgumentTest::OneOf(SEND_FLAGS))])),
    (libc::SYS_recvfrom, SeccompRule::AllowIf(&[(3, ArgumentTest::OneOf(RECEIVE_FLAGS))])),
    (libc::SYS_openat, SeccompRule::AllowIf(&[(3, PLAIN_MODE)])),
    (libc::SYS_mkdirat, SeccompRule::AllowIf(&[(2, PLAIN_MODE)])),
    // Hard limits can only go down.
    (libc::SYS_prlimit64, SeccompRule::AllowIf(&[(0, ArgumentTest::OneOf(OWN_PROCESS))])),
    // ENOSYS makes the C library fall back to `clone`, whose flags a filter can see.
    (libc::SYS_clone3, SeccompRule::Refuse(libc::ENOSYS as u16)),
];

/// The same for the older names of these calls.
#[cfg(target_arch = "x86_64")]
const GUARDED_BY_OLDER_NAMES: &[(libc::c_long, SeccompRule)] = &[
    (libc::SYS_open, SeccompRule::AllowIf(&[(2, PLAIN_MODE)])),
    (libc::SYS_mkdir, SeccompRule::AllowIf(&[(1, PLAIN_MODE)])),
];
#[cfg(not(target_arch = "x86_64"))]
const GUARDED_BY_OLDER_NAMES: &[(libc::c_long, SeccompRule)] = &[];

/// No new namespace, and no ptrace of the child.
const CLONE_FLAGS_OF_SESSIONS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_PTRACE
    | libc::CLONE_IO) as u32;
/// Own process tree only, besides.
const CLONE_FLAGS: u32 = CLONE_FLAGS_OF_SESSIONS | libc::CLONE_PARENT as u32;

/// A copy of the caller that is its keeper's child: another branch.
const BRANCH_FLAGS: &[u32] = &[(libc::CLONE_PARENT | libc::SIGCHLD) as u32];
const DESCRIPTOR_FLAGS: &[u32] = &[libc::MSG_CMSG_CLOEXEC as u32];

/// Calls the guest of a session may make with some arguments only.
const GUARDED_FOR_SESSIONS: &[(libc::c_long, SeccompRule)] =
    &[(libc::SYS_recvmsg, SeccompRule::AllowIf(&[(2, ArgumentTest::OneOf(DESCRIPTOR_FLAGS))]))];
const CLONE_BRANCHES: (libc::c_long, SeccompRule) =
    (libc::SYS_clone, SeccompRule::AllowIf(&[(0, ArgumentTest::OneOf(BRANCH_FLAGS))]));
const CLONE_AND_BRANCH: (libc::c_long, SeccompRule) =
    (libc::SYS_clone, SeccompRule::AllowIf(&[(0, ArgumentTest::NoneOf(CLONE_FLAGS_OF_SESSIONS))]));
/// Memory that is shared and belongs to no file is kept when it is all but unmapped, and then no
/// limit counts it; huge pages are counted elsewhere.
const COUNTED: (u8, ArgumentTest) =
    (3, ArgumentTest::NotAllOf((libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u32));
/// A mapping that grows down counts as a stack, whose limit only says how far it grows by itself.
const SMALL_PAGES: (u8, ArgumentTest) =
    (3, ArgumentTest::NoneOf((libc::MAP_HUGETLB | libc::MAP_GROWSDOWN) as u32));
/// Common operations on descriptors. No locks and no leases: they use kernel memory that no limit
/// counts.
const PROGRAM_FCNTL_COMMANDS: &[u32] = &[
    libc::F_DUPFD as u32,
    libc::F_DUPFD_CLOEXEC as u32,
    libc::F_GETFD as u32,
    libc::F_SETFD as u32,
    libc::F_GETFL as u32,
    libc::F_SETFL as u32,
    libc::F_GETPIPE_SZ as u32,
];
/// Questions about terminals, which nothing in a cell is, and what a descriptor's flags can too.
const IOCTLS: &[u32] = &[
    libc::TCGETS as u32,
    libc::TIOCGWINSZ as u32,
    libc::TIOCGPGRP as u32,
    libc::FIONREAD as u32,
    libc::FIONBIO as u32,
    libc::FIOCLEX as u32,
    libc::FIONCLEX as u32,
];
const PRCTLS: &[u32] = &[
    libc::PR_SET_NAME as u32,
    libc::PR_GET_NAME as u32,
    libc::PR_SET_PDEATHSIG as u32,
    libc::PR_GET_PDEATHSIG as u32,
    libc::PR_GET_DUMPABLE as u32,
    libc::PR_CAPBSET_READ as u32,
    libc::PR_GET_NO_NEW_PRIVS as u32,
];
/// Barriers among the caller's own threads; the others interrupt every processor.
const MEMBARRIERS: &[u32] = &[
    libc::MEMBARRIER_CMD_QUERY as u32,
    libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED as u32,
    libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED as u32,
    libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE as u32,
    libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE as u32,
];
const NOT_SUPPORTED: SeccompRule = SeccompRule::Refuse(libc::EOPNOTSUPP as u16);
const FIFO: u32 = !(libc::S_IFIFO | 0o777);

/// Calls a program may make with some arguments only.
const GUARDED_FOR_PROGRAMS: &[(libc::c_long, SeccompRule)] = &[
    (libc::SYS_mmap, SeccompRule::AllowIf(&[COUNTED, SMALL_PAGES])),
    (libc::SYS_mprotect, SeccompRule::Allow),
    (libc::SYS_preadv2, SeccompRule::AllowIf(&[NO_FLAGS])),
    (libc::SYS_pwritev2, SeccompRule::AllowIf(&[NO_FLAGS])),
    (libc::SYS_madvise, SeccompRule::AllowIf(&[(2, ArgumentTest::OneOf(MADVISE_ADVICE))])),
    (libc::SYS_fcntl, SeccompRule::AllowIf(&[(1, ArgumentTest::OneOf(PROGRAM_FCNTL_COMMANDS))])),
    (libc::SYS_ioctl, SeccompRule::AllowIf(&[(1, ArgumentTest::OneOf(IOCTLS))])),
    (libc::SYS_prctl, SeccompRule::AllowIf(&[(0, ArgumentTest::OneOf(PRCTLS))])),
    (libc::SYS_clone, SeccompRule::AllowIf(&[(0, ArgumentTest::NoneOf(CLONE_FLAGS))])),
    (libc::SYS_membarrier, SeccompRule::AllowIf(&[(0, ArgumentTest::OneOf(MEMBARRIERS))])),
    (libc::SYS_fchmod, SeccompRule::AllowIf(&[(1, PLAIN_MODE)])),
    (libc::SYS_fchmodat, SeccompRule::AllowIf(&[(2, PLAIN_MODE)])),
    (libc::SYS_mknodat, SeccompRule::AllowIf(&[(2, ArgumentTest::NoneOf(FIFO))])),
    // `tar` and `cp -p` do without.
    (libc::SYS_getxattr, NOT_SUPPORTED),
    (libc::SYS_lgetxattr, NOT_SUPPORTED),
    (libc::SYS_fgetxattr, NOT_SUPPORTED),
    (libc::SYS_listxattr, NOT_SUPPORTED),
    (libc::SYS_llistxattr, NOT_SUPPORTED),
    (libc::SYS_flistxattr, NOT_SUPPORTED),
    (libc::SYS_setxattr, NOT_SUPPORTED),
    (libc::SYS_lsetxattr, NOT_SUPPORTED),
    (libc::SYS_fsetxattr, NOT_SUPPORTED),
    // Their arguments are in memory, where a filter cannot see them.
    (libc::SYS_openat2, SeccompRule::Refuse(libc::ENOSYS as u16)),
];
/// Where the caller's own thread has its variables: `ARCH_SET_FS` and `ARCH_GET_FS`.
#[cfg(target_arch = "x86_64")]
const SEGMENTS: &[u32] = &[0x1002, 0x1003];
#[cfg(target_arch = "x86_64")]
const GUARDED_FOR_PROGRAMS_BY_OLDER_NAMES: &[(libc::c_long, SeccompRule)] = &[
    (libc::SYS_creat, SeccompRule::AllowIf(&[(1, PLAIN_MODE)])),
    (libc::SYS_arch_prctl, SeccompRule::AllowIf(&[(0, ArgumentTest::OneOf(SEGMENTS))])),
    (libc::SYS_chmod, SeccompRule::AllowIf(&[(1, PLAIN_MODE)])),
    (libc::SYS_mknod, SeccompRule::AllowIf(&[(1, ArgumentTest::NoneOf(FIFO))])),
];
#[cfg(not(target_arch = "x86_64"))]
const GUARDED_FOR_PROGRAMS_BY_OLDER_NAMES: &[(libc::c_long, SeccompRule)] = &[];

impl SeccompPolicy {
    /// For a guest of this kind.
    pub fn guest(guests: Guests) -> Self {
        match guests {
            Guests::Script => Self::script(),
            Guests::Programs => Self::programs(),
        }
    }

    /// For guests that are programs of the host: processes, threads, libraries and pipes, but no
    /// socket, no namespace, no lock, no setuid file, no shared memory without a file.
    pub fn programs() -> Self {
        let lists = [COMPUTE, TALK, FILES, OLDER_NAMES, MORE_FILES, PROCESSES, PIPES];
        let mut policy = Self::of(&lists);
        policy.add(OLDER_NAMES_OF_PROGRAMS);
        let guarded = [
            GUARDED,
            GUARDED_BY_OLDER_NAMES,
            GUARDED_FOR_PROGRAMS,
            GUARDED_FOR_PROGRAMS_BY_OLDER_NAMES,
        ];
        guarded.into_iter().for_each(|rules| policy.guard(rules));
        policy
    }

    /// For a guest that is one process of one thread: no new process, no exec, no socket, no
    /// executable or shared memory, no setuid file.
    pub fn script() -> Self {
        let mut policy = Self::of(&[COMPUTE, TALK, FILES, OLDER_NAMES]);
        policy.guard(GUARDED);
        policy.guard(GUARDED_BY_OLDER_NAMES);
        policy
    }

    /// For the guest of a session: the same, and branching.
    pub fn session_guest(guests: Guests) -> Self {
        let mut policy = Self::guest(guests);
        policy.add(BRANCH);
        policy.guard(GUARDED_FOR_SESSIONS);
        policy.guard(&[match guests {
            Guests::Script => CLONE_BRANCHES,
            Guests::Programs => CLONE_AND_BRANCH,
        }]);
        policy
    }

    /// For the keeper of a cell, once its guest is running.
    pub fn keeper() -> Self {
        Self::of(&[KEEP])
    }

    /// For the keeper of a session.
    pub fn session_keeper() -> Self {
        let mut policy = Self::of(&[KEEP, KEEP_BRANCHES]);
        policy.guard(&[(libc::SYS_mmap, SeccompRule::AllowIf(&[NO_EXEC, PRIVATE]))]);
        policy
    }

    /// For a zygote: what its cells and keepers need, and cloning them. No ptrace, no `unshare`, no
    /// `setns`, no network socket; no exec, unless its guests are programs.
    pub fn zygote(guests: Guests) -> Self {
        let mut policy = match guests {
            Guests::Script => Self::of(&[COMPUTE, TALK, FILES, OLDER_NAMES]),
            Guests::Programs => Self::programs(),
        };
        policy.guard(&[match guests {
            Guests::Script => CLONE_BRANCHES,
            Guests::Programs => CLONE_AND_BRANCH,
        }]);
        let lists = [KEEP, KEEP_BRANCHES, BRANCH, REPLACE, CLONE_CELLS];
        lists.into_iter().for_each(|list| policy.add(list));
        policy
    }

    /// For the process that only watches over a zygote.
    pub fn warden() -> Self {
        Self::of(&[numbers! {
            SYS_write SYS_ppoll SYS_waitid SYS_pidfd_send_signal SYS_exit_group SYS_rt_sigreturn SYS_close
            SYS_munmap SYS_brk SYS_restart_syscall
        }])
    }

    /// The rule for a system-call number.
    pub fn rule(&self, number: u32) -> SeccompRule {
        self.rules.get(&number).copied().unwrap_or(SeccompRule::Refuse(libc::EPERM as u16))
    }

    /// Every number that has a rule of its own, in order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (u32, SeccompRule)> + '_ {
        self.rules.iter().map(|(number, rule)| (*number, *rule))
    }

    fn of(lists: &[&[u32]]) -> Self {
        let mut policy = Self { rules: BTreeMap::new() };
        lists.iter().for_each(|list| policy.add(list));
        policy
    }

    fn guard(&mut self, rules: &[(libc::c_long, SeccompRule)]) {
        self.rules.extend(rules.iter().map(|(number, rule)| (*number as u32, *rule)));
    }

    fn add(&mut self, list: &[u32]) {
        self.rules.extend(list.iter().map(|number| (*number, SeccompRule::Allow)));
    }
}
