//! Attempts on the machine itself and on the rarely used corners of its kernel.
//!
//! Where success would harm the machine, the arguments are such that the kernel refuses them
//! after its permission check; reaching that refusal counts as success.

use crate::harness::{
    attempt::{
        Attempt, Ending,
        Setting::{Root, User},
    },
    outcome::{Outcome, reached},
    raw::{self, call, words},
};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    // A map of no size, a program of no instruction.
    Attempt::new("bpf_map", Root, |_| reached(call!(SYS_bpf, 0, &vec![0; 72], 72))),
    Attempt::new("bpf_program", Root, |_| reached(call!(SYS_bpf, 5, &vec![0; 72], 72))),
    Attempt::new("io_uring", Root, |_| reached(call!(SYS_io_uring_setup, 1, &mut [0; 120][..]))),
    Attempt::new("io_uring_enter", User, |_| reached(call!(SYS_io_uring_enter, -1, 1, 0, 0, 0, 0))),
    Attempt::new("io_uring_register", User, |_| reached(call!(SYS_io_uring_register, -1, 0, 0, 0))),
    Attempt::new("asynchronous_io", User, |_| reached(call!(SYS_io_setup, 1, &mut [0; 8][..]))),
    Attempt::new("performance_events", Root, |_| {
        // Software clock of the calling process, user space only.
        let attributes =
            words(&[1 | 112 << 32, 0, 0, 0, 0, 1 << 5 | 1 << 6, 0, 0, 0, 0, 0, 0, 0, 0]);
        reached(call!(SYS_perf_event_open, &attributes, 0, -1, -1, 0))
    }),
    Attempt::new("user_fault_handling", User, |_| {
        const USER_MODE_ONLY: i32 = 1;
        reached(call!(SYS_userfaultfd, USER_MODE_ONLY))
    }),
    Attempt::new("session_keyring", User, |_| reached(call!(SYS_keyctl, 0, -3, 1))),
    Attempt::new("add_key", User, |_| {
        reached(call!(SYS_add_key, c"user", c"belljar", c"x", 1, -3))
    }),
    Attempt::new("request_key", User, |_| {
        reached(call!(SYS_request_key, c"user", c"belljar", 0, 0))
    }),
    Attempt::new("load_module", Root, |_| reached(call!(SYS_init_module, 0, 0, c""))),
    Attempt::new("load_module_file", Root, |_| reached(call!(SYS_finit_module, -1, c"", 0))),
    Attempt::new("unload_module", Root, |_| {
        reached(call!(SYS_delete_module, c"no_such_module", libc::O_NONBLOCK))
    }),
    Attempt::new("load_kernel", Root, |_| reached(call!(SYS_kexec_load, 0, 0, 0, 0xffff))),
    Attempt::new("load_kernel_file", Root, |_| {
        reached(call!(SYS_kexec_file_load, -1, -1, 0, 0, 0xffff))
    }),
    // Wrong magic numbers.
    Attempt::new("reboot", Root, |_| reached(call!(SYS_reboot, 0, 0, 0, 0))),
    Attempt::new("swap_on", Root, |_| reached(call!(SYS_swapon, c"/no/such/file", 0))),
    Attempt::new("swap_off", Root, |_| reached(call!(SYS_swapoff, c"/no/such/file"))),
    Attempt::new("process_accounting", Root, |_| reached(call!(SYS_acct, c"/no/such/file"))),
    Attempt::new("quota", Root, |_| {
        const SYNC_USERS: u32 = 0x8000_0100;
        reached(call!(SYS_quotactl, SYNC_USERS, c"/no/such/device", 0, 0))
    }),
    Attempt::new("sync_everything", User, |_| reached(call!(SYS_syncfs, -1))),
    Attempt::new("personality", User, |_| {
        const ADDR_NO_RANDOMIZE: u32 = 0x0004_0000;
        reached(call!(SYS_personality, ADDR_NO_RANDOMIZE))
    }),
    // More nanoseconds than a second has.
    Attempt::new("set_clock", User, |_| {
        reached(call!(SYS_clock_settime, libc::CLOCK_REALTIME, &words(&[0, u64::MAX])))
    }),
    Attempt::new("set_time_zone", Root, |_| {
        let beyond_any = [100_000i32.to_ne_bytes(), [0; 4]].concat();
        reached(call!(SYS_settimeofday, 0, &beyond_any))
    }),
    Attempt::new("adjust_clock", Root, |_| {
        // A tick of 0 microseconds.
        const ADJ_TICK: u64 = 0x4000;
        let mut adjustment = [0; 208];
        adjustment[..8].copy_from_slice(&ADJ_TICK.to_ne_bytes());
        reached(call!(SYS_adjtimex, &mut adjustment[..]))
    }),
    // Longer than any name may be.
    Attempt::new("set_host_name", Root, |_| reached(call!(SYS_sethostname, c"x", 65))),
    Attempt::new("set_domain_name", Root, |_| reached(call!(SYS_setdomainname, c"x", 65))),
    Attempt::new("kernel_log", Root, |_| reached(call!(SYS_syslog, 10, 0, 0))),
    Attempt::new("read_kernel_log", Root, |_| reached(call!(SYS_syslog, 3, 0, -1))),
    Attempt::new("watch_files", User, |_| reached(call!(SYS_inotify_init1, 0))),
    Attempt::new("watch_mounts", Root, |_| reached(call!(SYS_fanotify_init, 0, 0))),
    Attempt::new("memory_policy", User, |_| reached(call!(SYS_set_mempolicy, 0, 0, 0))),
    Attempt::new("filter_with_listener", Root, |_| {
        const NEW_LISTENER: u64 = 1 << 3;
        let allow = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
        reached(raw::load_filter(&mut [allow], NEW_LISTENER))
    }),
    Attempt::new("more_landlock_layers", User, |_| {
        reached(call!(SYS_landlock_create_ruleset, &words(&[1]), 8, 0))
    }),
    #[cfg(target_arch = "x86_64")]
    Attempt::new("segment_bases", User, |_| {
        const ARCH_GET_FS: i32 = 0x1003;
        reached(call!(SYS_arch_prctl, ARCH_GET_FS, &mut [0; 8][..]))
    })
    .harmless_for_programs("registers of the calling thread"),
    // S20: the only other uses are for debuggers, and for finding out about the machine.
    #[cfg(target_arch = "x86_64")]
    Attempt::new("s20_cpuid_faulting", User, |_| {
        const ARCH_SET_CPUID: i32 = 0x1012;
        reached(call!(SYS_arch_prctl, ARCH_SET_CPUID, 1))
    }),
    #[cfg(target_arch = "x86_64")]
    Attempt::new("local_descriptor_table", User, |_| {
        reached(call!(SYS_modify_ldt, 0, &mut [0; 16][..], 16))
    }),
    #[cfg(target_arch = "x86_64")]
    Attempt::new("port_privilege", Root, |_| reached(call!(SYS_iopl, 4))),
    #[cfg(target_arch = "x86_64")]
    Attempt::new("port_access", Root, |_| reached(call!(SYS_ioperm, 0, 0x2_0000, 1))),
    #[cfg(target_arch = "x86_64")]
    Attempt::new("x32_call", User, |_| {
        reached(raw::call_number(0x4000_0000 | libc::SYS_getpid, []))
    })
    .ends(&[Ending::Killed(libc::SIGSYS)]),
    #[cfg(target_arch = "x86_64")]
    Attempt::new("x32_only_call", User, |_| reached(raw::call_number(0x4000_0000 | 520, [])))
        .ends(&[Ending::Killed(libc::SIGSYS)]),
    #[cfg(target_arch = "x86_64")]
    Attempt::new("call_of_32_bit_interface", User, |_| {
        let pid = raw::getpid_by_int_0x80();
        let refused = Outcome { errno: i32::try_from(-pid).ok(), ..Outcome::blocked("") };
        if pid > 0 { Outcome::succeeded(format!("pid {pid}")) } else { refused }
    })
    .ends(&[Ending::Killed(libc::SIGSYS)]),
    Attempt::new("terminal_input", User, |_| terminal(u64::from(libc::TIOCSTI as u32))),
    // The kernel looks at 32 bits of the request only.
    Attempt::new("terminal_input_high_bits", User, |_| terminal(1 << 32 | libc::TIOCSTI)),
    Attempt::new("console_keyboard", User, |_| terminal(0x541c)),
];

/// On a null device every terminal request ends in ENOTTY, if it gets that far.
fn terminal(request: u64) -> Outcome {
    reached(call!(SYS_ioctl, 2, request, &[0u8; 8][..]))
}
