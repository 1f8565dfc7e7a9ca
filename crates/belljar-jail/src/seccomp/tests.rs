//! The compiled filter says, for every number and argument, what the table says (K2).

use crate::{Guests, NetworkAccess};

use super::{
    ArgumentTest, Instruction, SeccompPolicy, SeccompProgram, SeccompRule,
    program::{FIRST_FOREIGN_NUMBER, NATIVE_ARCHITECTURE},
};

/// The data that the kernel would give a filter to judge.
#[derive(Clone, Copy)]
struct Call {
    architecture: u32,
    number: u32,
    arguments: [u64; 6],
}

/// A reading of classic BPF that shares nothing with the compiler.
fn judge(program: &SeccompProgram, call: Call) -> u32 {
    let mut data = Vec::new();
    data.extend_from_slice(&call.number.to_le_bytes());
    data.extend_from_slice(&call.architecture.to_le_bytes());
    data.extend_from_slice(&0u64.to_le_bytes());
    call.arguments.iter().for_each(|argument| data.extend_from_slice(&argument.to_le_bytes()));
    let (mut at, mut accumulator) = (0usize, 0u32);
    loop {
        let Instruction { code, jt, jf, k } = program.instructions()[at];
        at += 1;
        let holds = match code {
            0x06 => return k,
            0x20 => {
                let word = &data[k as usize..k as usize + 4];
                accumulator = u32::from_le_bytes(word.try_into().unwrap());
                continue;
            }
            0x05 => {
                at += k as usize;
                continue;
            }
            0x54 => {
                accumulator &= k;
                continue;
            }
            0x15 => accumulator == k,
            0x35 => accumulator >= k,
            0x45 => accumulator & k != 0,
            other => panic!("instruction {other:#x} is not one the compiler makes"),
        };
        at += usize::from(if holds { jt } else { jf });
    }
}

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const EPERM: u32 = 0x0005_0001;

fn policies() -> [(&'static str, SeccompPolicy); 12] {
    let proxy = NetworkAccess::Proxy;
    [
        ("script", SeccompPolicy::script()),
        ("programs", SeccompPolicy::programs()),
        ("zygote of programs", SeccompPolicy::zygote(Guests::Programs)),
        ("keeper", SeccompPolicy::keeper()),
        ("script of a session", SeccompPolicy::session_guest(Guests::Script)),
        ("programs of a session", SeccompPolicy::session_guest(Guests::Programs)),
        ("keeper of a session", SeccompPolicy::session_keeper()),
        ("zygote", SeccompPolicy::zygote(Guests::Script)),
        ("warden", SeccompPolicy::warden()),
        ("programs with a proxy", SeccompPolicy::programs().connecting(proxy)),
        (
            "programs of a session with a proxy",
            SeccompPolicy::session_guest(Guests::Programs).connecting(proxy),
        ),
        ("zygote with a proxy", SeccompPolicy::zygote(Guests::Programs).listening(proxy)),
    ]
}

fn passes(test: ArgumentTest, low: u32) -> bool {
    match test {
        ArgumentTest::NoneOf(bits) => low & bits == 0,
        ArgumentTest::NotAllOf(bits) => low & bits != bits,
        ArgumentTest::OneOf(values) => values.contains(&low),
    }
}

fn native(number: u32, arguments: [u64; 6]) -> Call {
    Call { architecture: NATIVE_ARCHITECTURE, number, arguments }
}

#[test]
fn every_number_is_judged_as_the_table_says() {
    for (name, policy) in policies() {
        let program = SeccompProgram::compile(&policy);
        for number in (0..2048).chain([FIRST_FOREIGN_NUMBER - 1]) {
            for value in [0, 1, 2, 3, 4, 7, 9, 1031, 0xffff_ffff, 0x1_0000_0000, 0x1_0000_0004] {
                let judged = judge(&program, native(number, [value; 6]));
                let low = value as u32;
                let expected = match policy.rule(number) {
                    SeccompRule::Allow => ALLOW,
                    SeccompRule::Refuse(errno) => 0x0005_0000 | u32::from(errno),
                    SeccompRule::AllowIf(tests)
                        if tests.iter().all(|(_, test)| passes(*test, low)) =>
                    {
                        ALLOW
                    }
                    SeccompRule::AllowIf(_) => EPERM,
                };
                assert_eq!(judged, expected, "{name}: call {number} with {value:#x}");
            }
        }
    }
}

#[test]
fn foreign_architectures_and_x32_numbers_end_the_process() {
    for (name, policy) in policies() {
        let program = SeccompProgram::compile(&policy);
        for number in [0, 1, 59, FIRST_FOREIGN_NUMBER, FIRST_FOREIGN_NUMBER + 1, u32::MAX] {
            let foreign = Call { architecture: 0x4000_0003, ..native(number, [0; 6]) };
            assert_eq!(judge(&program, foreign), KILL, "{name}: i386 call {number}");
            if number >= FIRST_FOREIGN_NUMBER {
                assert_eq!(judge(&program, native(number, [0; 6])), KILL, "{name}: x32 {number}");
            }
        }
    }
}

#[test]
fn filters_stay_small() {
    let sizes = policies().map(|(name, policy)| {
        let length = SeccompProgram::compile(&policy).instructions().len();
        let most = match name {
            name if name.contains("proxy") => 500,
            name if name.contains("programs") => 400,
            _ => 300,
        };
        assert!(length < most, "{name} has {length} instructions");
        length
    });
    assert!(sizes.iter().all(|length| *length > 6));
}

/// The golden list (`number name` lines): a change to what a guest may call, with all arguments
/// zero, has to be made there too, on purpose.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_a_guest_may_call() {
    let program = SeccompProgram::compile(&SeccompPolicy::script());
    let judged = |number| judge(&program, native(number, [0; 6]));
    let allowed: Vec<u32> = (0..2048).filter(|number| judged(*number) == ALLOW).collect();
    let golden = include_str!("script.x86_64.golden").lines();
    let golden = golden.filter_map(|line| line.split(' ').next()?.parse::<u32>().ok());
    assert_eq!(allowed, golden.collect::<Vec<_>>());
}

/// Numbers whose rule differs between two policies, with a rule that lets something through.
fn added(more: &SeccompPolicy, less: &SeccompPolicy) -> Vec<u32> {
    let is_more = |number: &u32| {
        let rule = more.rule(*number);
        rule != less.rule(*number) && !matches!(rule, SeccompRule::Refuse(_))
    };
    (0..2048).filter(is_more).collect()
}

fn numbers(names: &[libc::c_long]) -> Vec<u32> {
    let mut numbers: Vec<u32> = names.iter().map(|number| *number as u32).collect();
    numbers.sort_unstable();
    numbers
}

/// The golden lists of sessions: what their filters have that others have not, and no other change
/// (B4). Cells for one run have neither `chroot` nor `CLONE_PARENT`.
#[test]
#[cfg(target_arch = "x86_64")]
fn b4_what_sessions_may_call_besides() {
    let [script, programs] = [Guests::Script, Guests::Programs]
        .map(|guests| (SeccompPolicy::guest(guests), SeccompPolicy::session_guest(guests)));
    let branch = [libc::SYS_chroot, libc::SYS_clone, libc::SYS_recvmsg, libc::SYS_close_range];
    let of_script = [&branch[..], &[libc::SYS_dup3, libc::SYS_setsid]].concat();
    assert_eq!(added(&script.1, &script.0), numbers(&of_script));
    assert_eq!(added(&programs.1, &programs.0), numbers(&branch));
    let keeps = [
        libc::SYS_open_tree,
        libc::SYS_mkdirat,
        libc::SYS_unlinkat,
        libc::SYS_renameat2,
        libc::SYS_fchmodat,
        libc::SYS_fstat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_getdents64,
        libc::SYS_lseek,
        libc::SYS_mmap,
    ];
    assert_eq!(added(&SeccompPolicy::session_keeper(), &SeccompPolicy::keeper()), numbers(&keeps));
    for (more, less) in [
        (&script.0, &script.1),
        (&programs.0, &programs.1),
        (&SeccompPolicy::keeper(), &SeccompPolicy::session_keeper()),
    ] {
        let less = (0..2048).filter(|number| {
            matches!(less.rule(*number), SeccompRule::Refuse(_))
                && more.rule(*number) != less.rule(*number)
        });
        assert_eq!(less.collect::<Vec<_>>(), Vec::<u32>::new());
    }
    for policy in [&script.0, &programs.0] {
        assert_eq!(policy.rule(libc::SYS_chroot as u32), SeccompRule::Refuse(libc::EPERM as u16));
    }
}

/// A session's guest clones itself beside itself; nothing else that is new comes with it (B4).
#[test]
fn b4_how_sessions_clone() {
    let beside = (libc::CLONE_PARENT | libc::SIGCHLD) as u64;
    let clone = |policy: &SeccompPolicy, flags: u64| {
        judge(
            &SeccompProgram::compile(policy),
            native(libc::SYS_clone as u32, [flags, 0, 0, 0, 0, 0]),
        )
    };
    for guests in [Guests::Script, Guests::Programs] {
        assert_eq!(clone(&SeccompPolicy::session_guest(guests), beside), ALLOW);
        assert_eq!(clone(&SeccompPolicy::guest(guests), beside), EPERM);
        let namespaces = [
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
            libc::CLONE_PTRACE,
        ];
        for flag in namespaces {
            let flags = beside | u64::from(flag.cast_unsigned());
            assert_eq!(clone(&SeccompPolicy::session_guest(guests), flags), EPERM, "{flag:#x}");
        }
    }
    let script = SeccompPolicy::session_guest(Guests::Script);
    for flags in [0, libc::SIGCHLD, libc::CLONE_VM | libc::CLONE_PARENT, libc::CLONE_THREAD] {
        assert_eq!(clone(&script, u64::from(flags.cast_unsigned())), EPERM, "{flags:#x}");
    }
}

/// One argument at a time: each test looks at its own argument and no other.
#[test]
fn arguments_are_tested_each_by_itself() {
    let program = SeccompProgram::compile(&SeccompPolicy::script());
    let judged =
        |number: libc::c_long, arguments| judge(&program, native(number as u32, arguments));
    let (private, shared) = (libc::MAP_PRIVATE as u64, libc::MAP_SHARED as u64);
    let (read, execute) = (libc::PROT_READ as u64, libc::PROT_EXEC as u64);
    let mmap = |protection, flags| judged(libc::SYS_mmap, [0, 1, protection, flags, 0, 0]);
    assert_eq!(mmap(read, private), ALLOW);
    assert_eq!(mmap(read | execute, private), EPERM);
    assert_eq!(mmap(read, shared), EPERM);
    assert_eq!(mmap(read, shared | private), EPERM);
    assert_eq!(mmap(read, private | libc::MAP_HUGETLB as u64), EPERM);
    let send = |flags| judged(libc::SYS_sendto, [3, 0, 1, flags, 0, 0]);
    assert_eq!(send(libc::MSG_NOSIGNAL as u64), ALLOW);
    assert_eq!(send(libc::MSG_OOB as u64), EPERM);
    let advise = |advice| judged(libc::SYS_madvise, [0, 1, advice, 0, 0, 0]);
    assert_eq!(advise(libc::MADV_DONTNEED as u64), ALLOW);
    assert_eq!(advise(libc::MADV_MERGEABLE as u64), EPERM);
    assert_eq!(judged(libc::SYS_prlimit64, [1, 0, 0, 0, 0, 0]), EPERM);
}

/// Calls that have led out of sandboxes before, by name.
#[test]
fn calls_a_guest_never_makes() {
    let program = SeccompProgram::compile(&SeccompPolicy::script());
    let never = [
        ("ptrace", libc::SYS_ptrace),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("process_vm_writev", libc::SYS_process_vm_writev),
        ("unshare", libc::SYS_unshare),
        ("setns", libc::SYS_setns),
        ("clone", libc::SYS_clone),
        ("execve", libc::SYS_execve),
        ("execveat", libc::SYS_execveat),
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("move_mount", libc::SYS_move_mount),
        ("open_tree", libc::SYS_open_tree),
        ("fsopen", libc::SYS_fsopen),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("pivot_root", libc::SYS_pivot_root),
        ("chroot", libc::SYS_chroot),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("keyctl", libc::SYS_keyctl),
        ("add_key", libc::SYS_add_key),
        ("memfd_create", libc::SYS_memfd_create),
        ("socket", libc::SYS_socket),
        ("socketpair", libc::SYS_socketpair),
        ("connect", libc::SYS_connect),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("name_to_handle_at", libc::SYS_name_to_handle_at),
        ("init_module", libc::SYS_init_module),
        ("kexec_load", libc::SYS_kexec_load),
        ("personality", libc::SYS_personality),
        ("seccomp", libc::SYS_seccomp),
        ("prctl", libc::SYS_prctl),
        ("ioctl", libc::SYS_ioctl),
        ("kill", libc::SYS_kill),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("shmget", libc::SYS_shmget),
        ("mknodat", libc::SYS_mknodat),
        ("setuid", libc::SYS_setuid),
        ("capset", libc::SYS_capset),
        ("fchmod", libc::SYS_fchmod),
        ("fchmodat", libc::SYS_fchmodat),
        ("utimensat", libc::SYS_utimensat),
        ("flock", libc::SYS_flock),
    ];
    for (name, number) in never {
        assert_eq!(judge(&program, native(number as u32, [0; 6])), EPERM, "{name}");
    }
}

#[test]
fn what_a_proxy_adds() {
    let plain = SeccompPolicy::programs();
    assert_eq!(plain.clone().connecting(NetworkAccess::None), plain);
    let guest = plain.clone().connecting(NetworkAccess::Proxy);
    let of_clients = [
        libc::SYS_socket,
        libc::SYS_connect,
        libc::SYS_getsockname,
        libc::SYS_getpeername,
        libc::SYS_setsockopt,
        libc::SYS_getsockopt,
    ];
    let flags = [libc::SYS_sendto, libc::SYS_recvfrom];
    assert_eq!(added(&guest, &plain), numbers(&[&of_clients[..], &flags].concat()));
    let zygote = SeccompPolicy::zygote(Guests::Programs);
    assert_eq!(zygote.clone().listening(NetworkAccess::None), zygote);
    let listening = zygote.clone().listening(NetworkAccess::Proxy);
    let of_listeners = [libc::SYS_bind, libc::SYS_listen, libc::SYS_ioctl];
    let expected = numbers(&[&of_clients[..], &of_listeners].concat());
    assert_eq!(added(&listening, &zygote), expected);
}

#[test]
fn sockets_with_a_proxy_are_tcp_clients() {
    let program =
        SeccompProgram::compile(&SeccompPolicy::programs().connecting(NetworkAccess::Proxy));
    let verdict = |number: libc::c_long, arguments: [i32; 4]| {
        let [a, b, c, d] = arguments.map(|argument| argument as u32 as u64);
        judge(&program, native(number as u32, [a, b, c, d, 0, 0]))
    };
    let stream = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    assert_eq!(verdict(libc::SYS_socket, [libc::AF_INET, stream, 6, 0]), ALLOW);
    for arguments in [
        [libc::AF_INET6, stream, 0, 0],
        [libc::AF_UNIX, stream, 0, 0],
        [libc::AF_INET, libc::SOCK_DGRAM, 0, 0],
        [libc::AF_INET, stream, libc::IPPROTO_MPTCP, 0],
    ] {
        assert_eq!(verdict(libc::SYS_socket, arguments), EPERM, "{arguments:?}");
    }
    assert_eq!(
        verdict(libc::SYS_sendto, [3, 0, 0, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT]),
        ALLOW
    );
    for flags in [libc::MSG_FASTOPEN, libc::MSG_OOB, libc::MSG_ZEROCOPY] {
        assert_eq!(verdict(libc::SYS_sendto, [3, 0, 0, flags]), EPERM, "{flags}");
    }
    assert_eq!(verdict(libc::SYS_setsockopt, [3, libc::IPPROTO_TCP, libc::TCP_NODELAY, 0]), ALLOW);
    for (level, option) in [
        (libc::SOL_SOCKET, libc::SO_RCVBUF),
        (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER),
        (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
        (libc::IPPROTO_TCP, libc::TCP_ULP),
        (libc::IPPROTO_IP, 1),
    ] {
        assert_eq!(verdict(libc::SYS_setsockopt, [3, level, option, 0]), EPERM, "{level} {option}");
    }
    for call in
        [libc::SYS_bind, libc::SYS_listen, libc::SYS_accept4, libc::SYS_sendmsg, libc::SYS_recvmsg]
    {
        assert_eq!(verdict(call, [3, 0, 0, 0]), EPERM, "{call}");
    }
}
