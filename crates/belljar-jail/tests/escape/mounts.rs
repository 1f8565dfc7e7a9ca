//! Attempts to change what is mounted, or to walk out of it.

use std::{ffi::CStr, fs, os::fd::AsRawFd};

use crate::harness::{
    attempt::{
        Attempt,
        Setting::{Namespaces, User},
    },
    bait::Bait,
    outcome::{Outcome, opened, own, reached},
    raw::{Arg, Errno, call, words},
};

const HERE: i32 = libc::AT_FDCWD;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("mount_tmpfs", Namespaces, |_| reached(mount(c"none", c"/tmp", c"tmpfs", 0))),
    Attempt::new("mount_proc", Namespaces, |_| reached(mount(c"proc", c"/proc", c"proc", 0))),
    Attempt::new("bind_root", Namespaces, |_| {
        reached(mount(c"/", c"/tmp", c"", libc::MS_BIND | libc::MS_REC))
    }),
    Attempt::new("remount_root_writable", Namespaces, |_| {
        reached(mount(c"none", c"/", c"", libc::MS_REMOUNT | libc::MS_BIND))
    }),
    Attempt::new("share_root", Namespaces, |_| {
        reached(mount(c"none", c"/", c"", libc::MS_SHARED | libc::MS_REC))
    }),
    Attempt::new("mount_overlay_of_root", Namespaces, |_| {
        reached(call!(SYS_mount, c"none", c"/tmp", c"overlay", 0, c"lowerdir=/:/proc"))
    }),
    Attempt::new("unmount_tmp", Namespaces, |_| {
        reached(call!(SYS_umount2, c"/tmp", libc::MNT_DETACH))
    }),
    Attempt::new("unmount_proc", Namespaces, |_| {
        reached(call!(SYS_umount2, c"/proc", libc::MNT_DETACH))
    }),
    Attempt::new("unmount_root", Namespaces, |_| {
        reached(call!(SYS_umount2, c"/", libc::MNT_DETACH))
    }),
    Attempt::new("clone_tree", Namespaces, |_| {
        const OPEN_TREE_CLONE: u32 = 1;
        reached(call!(SYS_open_tree, HERE, c"/", OPEN_TREE_CLONE))
    }),
    Attempt::new("open_tree", User, |_| reached(call!(SYS_open_tree, HERE, c"/", 0))),
    Attempt::new("move_mount", Namespaces, |_| {
        reached(call!(SYS_move_mount, HERE, c"/proc", HERE, c"/tmp", 0))
    }),
    Attempt::new("fsopen", Namespaces, |_| reached(call!(SYS_fsopen, c"tmpfs", 0))),
    Attempt::new("fspick_tmp", Namespaces, |_| reached(call!(SYS_fspick, HERE, c"/tmp", 0))),
    Attempt::new("mount_setattr", Namespaces, |_| {
        // Clear MOUNT_ATTR_RDONLY, NOSUID, NODEV and NOEXEC.
        let attributes = words(&[0, 0xf, 0, 0]);
        reached(call!(SYS_mount_setattr, HERE, c"/", 0, &attributes, attributes.len()))
    }),
    Attempt::new("pivot_root", Namespaces, |_| reached(call!(SYS_pivot_root, c"/tmp", c"/tmp"))),
    // The classic way out of a chroot: keep a directory, put a root below it, climb.
    Attempt::new("chroot_and_climb", Namespaces, chroot_and_climb),
    Attempt::new("list_mounts", User, |_| {
        const SYS_LISTMOUNT: libc::c_long = 458;
        let (root, mut ids) = (words(&[24, u64::MAX, 0]), [0; 512]);
        let list = [Arg::from(&root), Arg::from(&mut ids[..]), Arg::from(64), Arg::from(0)];
        reached(crate::harness::raw::call_number(SYS_LISTMOUNT, list))
    }),
    Attempt::new("see_host_mounts", User, |bait| match fs::read_to_string(own("mountinfo")) {
        Ok(mounts) => Outcome::succeeded_if(mounts.contains(&bait.root_source), mounts),
        Err(error) => opened::<()>(Err(error)),
    }),
    Attempt::new("remount_by_legacy_umount", Namespaces, |_| {
        // The oldest trick: a flag in the upper half that old kernels dropped.
        let flags = 0xc0ed_0000 | libc::MS_REMOUNT | libc::MS_BIND;
        reached(mount(c"none", c"/", c"", flags))
    }),
];

fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: u64) -> Result<u64, Errno> {
    call!(SYS_mount, source, target, kind, flags, 0)
}

fn chroot_and_climb(bait: &Bait) -> Outcome {
    let start = fs::File::open("/");
    if let Err(errno) = call!(SYS_chroot, c"/tmp") {
        return reached::<()>(Err(errno));
    }
    let start = match start {
        Ok(start) => start,
        Err(error) => return opened::<()>(Err(error)),
    };
    if let Err(errno) = call!(SYS_fchdir, start.as_raw_fd()) {
        return Outcome { errno: Some(errno), ..Outcome::inconclusive("chroot, but no fchdir") };
    }
    let climb = format!("{}{}", "../".repeat(40), bait.secret_path.display());
    opened(fs::read(climb))
}
