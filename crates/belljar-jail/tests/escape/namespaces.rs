//! Attempts to make, enter or look into namespaces.

use std::{fs, os::fd::AsRawFd};

use crate::harness::{
    attempt::{
        Attempt,
        Setting::{Namespaces, User},
    },
    outcome::{Outcome, opened, own, reached},
    raw::{self, call},
};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    // A nested user namespace gives every capability over what is made in it, and with them most
    // of the kernel's attack surface.
    Attempt::new("unshare_user", User, |_| reached(call!(SYS_unshare, libc::CLONE_NEWUSER))),
    Attempt::new("unshare_mount", Namespaces, |_| reached(call!(SYS_unshare, libc::CLONE_NEWNS))),
    Attempt::new("unshare_pid", Namespaces, |_| reached(call!(SYS_unshare, libc::CLONE_NEWPID))),
    Attempt::new("unshare_net", Namespaces, |_| reached(call!(SYS_unshare, libc::CLONE_NEWNET))),
    Attempt::new("unshare_ipc", Namespaces, |_| reached(call!(SYS_unshare, libc::CLONE_NEWIPC))),
    Attempt::new("unshare_uts", Namespaces, |_| reached(call!(SYS_unshare, libc::CLONE_NEWUTS))),
    Attempt::new("unshare_cgroup", Namespaces, |_| {
        reached(call!(SYS_unshare, libc::CLONE_NEWCGROUP))
    }),
    // A number with bits set above the 32 the kernel reads.
    Attempt::new("unshare_user_high_bits", User, |_| {
        reached(call!(SYS_unshare, 0xdead_beef_0000_0000 | libc::CLONE_NEWUSER as u64))
    }),
    Attempt::new("clone_user", User, |_| reached(raw::clone_and_end(libc::CLONE_NEWUSER))),
    Attempt::new("clone_user_and_net", User, |_| {
        reached(raw::clone_and_end(libc::CLONE_NEWUSER | libc::CLONE_NEWNET))
    }),
    // A filter that looks at the flags of `clone` does not see those of `clone3`.
    Attempt::new("clone3_user", User, |_| reached(raw::clone3_and_end(libc::CLONE_NEWUSER))),
    Attempt::new("setns_of_pid_1", Namespaces, |_| enter("/proc/1/ns/mnt")),
    Attempt::new("setns_of_self", Namespaces, |_| enter(&own("ns/ipc"))),
    Attempt::new("setns_by_pidfd", Namespaces, |_| {
        let pidfd = match call!(SYS_pidfd_open, 1, 0) {
            Ok(pidfd) => pidfd,
            Err(errno) => return reached::<()>(Err(errno)),
        };
        reached(call!(SYS_setns, pidfd, libc::CLONE_NEWIPC))
    }),
    Attempt::new("owner_of_namespace", Namespaces, |_| {
        const NS_GET_USERNS: u32 = 0xb701;
        match fs::File::open(own("ns/mnt")) {
            Ok(namespace) => reached(call!(SYS_ioctl, namespace.as_raw_fd(), NS_GET_USERNS)),
            Err(error) => opened::<()>(Err(error)),
        }
    }),
    Attempt::new("see_host_name", User, |bait| {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Outcome::succeeded_if(name == bait.host_name, name)
    }),
    Attempt::new("see_host_cgroup", User, |bait| match fs::read_to_string(own("cgroup")) {
        Err(error) => opened::<()>(Err(error)),
        // Each line ends in a path; a process at the root of every hierarchy shows nothing.
        Ok(seen) if bait.cgroup.lines().all(|line| line.ends_with(":/")) => {
            Outcome { errno: Some(libc::ENOSYS), ..Outcome::blocked(seen) }
        }
        Ok(seen) => Outcome::succeeded_if(seen == bait.cgroup, seen),
    }),
    Attempt::new("map_more_users", Namespaces, |_| {
        // In a namespace that has its map the write is refused, but only after the open.
        opened(fs::OpenOptions::new().write(true).open(own("uid_map")))
    }),
];

fn enter(namespace: &str) -> Outcome {
    match fs::File::open(namespace) {
        Ok(namespace) => reached(call!(SYS_setns, namespace.as_raw_fd(), 0)),
        Err(error) => opened::<()>(Err(error)),
    }
}
