//! Attempts to get from what was granted to what was not.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::Write,
    os::{
        fd::AsRawFd,
        unix::fs::{OpenOptionsExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use super::tamper::{self, REFUSALS, settle, settled, text};
use crate::harness::{
    attempt::{
        Attempt, Judge,
        Setting::{Namespaces, Root, User},
    },
    bait::Bait,
    home::{FIFO, KEPT, LINKS, MINE, ONE, READ, SECRET, WRITE},
    outcome::{NO_FILE, Outcome, opened, reached, refused_by},
    raw::{self, call, words},
    software::LIBRARY,
};

const HERE: i32 = libc::AT_FDCWD;

macro_rules! with_grants {
    ($($name:literal, $setting:expr, $run:expr;)*) => {
        &[$(Attempt::new($name, $setting, $run).granted(Judge::ReportAndFiles),)*]
    };
}

/// Apart from the others, as it may succeed in sessions.
pub(crate) const FIFO_ATTEMPTS: &[Attempt] =
    &[Attempt::new("write_fifo_in_read_grant", User, |bait| {
        let flags = libc::O_NONBLOCK;
        let fifo = bait.home.join(READ).join(FIFO);
        let both = OpenOptions::new().read(true).write(true).custom_flags(flags).open(fifo);
        settled(both.and_then(|mut fifo| fifo.write_all(b"x")))
    })
    .granted(Judge::ReportAndFiles)
    .harmless_in_sessions("beneath a layer it is a fifo of the cell's own, not the host's")];

pub(crate) const ATTEMPTS: &[Attempt] = with_grants! {
    "absolute_link_in_read_grant", User, |bait| linked(bait, READ, 0);
    "relative_link_in_read_grant", User, |bait| linked(bait, READ, 1);
    "magic_link_in_read_grant", User, |bait| linked(bait, READ, 2);
    "absolute_link_in_write_grant", User, |bait| linked(bait, WRITE, 0);
    "relative_link_in_write_grant", User, |bait| linked(bait, WRITE, 1);
    "absolute_link_in_workspace", User, |bait| opened(fs::read(bait.work().join(LINKS[0])));
    "relative_link_in_workspace", User, |bait| opened(fs::read(bait.work().join(LINKS[1])));
    "write_through_link", User, |bait| tamper::write(&bait.home.join(WRITE).join(LINKS[0]));
    "write_through_link_in_workspace", User, |bait| tamper::write(&bait.work().join(LINKS[0]));
    "own_link_in_write_grant", User, |bait| {
        let link = bait.home.join(WRITE).join("planted");
        let _ = symlink(secret(bait), &link);
        opened(fs::read(link))
    };
    "climb_from_read_grant", User, |bait| opened(fs::read(bait.home.join(READ).join("../secret")));
    "climb_from_workspace", User, |bait| opened(fs::read(bait.work().join("../secret")));
    "climb_from_descriptor", User, |bait| {
        let Ok(directory) = File::open(bait.home.join(READ)) else {
            return Outcome::inconclusive("no directory");
        };
        let flags = libc::O_RDONLY;
        refused_by(call!(SYS_openat, directory.as_raw_fd(), c"../secret", flags, 0), NO_FILE)
    };
    "climb_from_within", User, |bait| {
        let _ = std::env::set_current_dir(bait.home.join(READ).join("sub"));
        opened(fs::read("../../secret"))
    };
    "climb_from_directory_that_moves", User, |bait| {
        // A working directory that is moved up while one stands in it.
        let (from, to) = (bait.home.join(WRITE).join("a/b"), bait.home.join(WRITE).join("c"));
        let _ = fs::create_dir_all(&from);
        let _ = std::env::set_current_dir(&from);
        let _ = fs::rename(&from, to);
        opened(fs::read("../../secret"))
    };
    "list_beside_grants", User, |bait| match fs::read_dir(&bait.home) {
        Ok(list) => {
            let names: Vec<_> = list.flatten().map(|entry| entry.file_name()).collect();
            let seen = format!("{names:?}");
            Outcome::succeeded_if(names.iter().any(|name| name == SECRET), seen)
        }
        Err(error) => opened::<()>(Err(error)),
    };
    "read_beside_grants", User, |bait| opened(fs::read(secret(bait)));
    "read_beside_granted_file", User, |bait| opened(fs::read(bait.home.join("one-beside")));
    "write_beside_grants", User, |bait| settled(fs::write(bait.home.join("new"), "x"));
    "replace_granted_file", User, |bait| {
        let new = bait.home.join(WRITE).join("replacement");
        let _ = fs::write(&new, "x");
        settled(fs::rename(new, bait.home.join(MINE)))
    };
    "remove_granted_file", User, |bait| settled(fs::remove_file(bait.home.join(MINE)));
    "replace_granted_directory", User, |bait| {
        settled(fs::rename(bait.home.join(WRITE), bait.home.join("elsewhere")))
    };
    "move_nested_grant", User, |bait| {
        let write = bait.home.join(WRITE);
        settled(fs::rename(write.join("sub"), write.join("moved")))
    };
    "remove_nested_grant", User, |bait| settled(fs::remove_dir_all(bait.home.join(WRITE).join("sub")));
    "second_name_for_secret", User, |bait| {
        settled(fs::hard_link(secret(bait), bait.home.join(WRITE).join("name")))
    };
    "second_name_for_what_can_be_read", User, |bait| {
        let name = bait.home.join(WRITE).join("name");
        settled(fs::hard_link(bait.home.join(READ).join(KEPT), name))
    };
    "second_name_by_descriptor", User, |bait| {
        let Ok(file) = File::open(bait.home.join(READ).join(KEPT)) else {
            return Outcome::inconclusive("no file");
        };
        let from = text(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())));
        let to = text(&bait.home.join(WRITE).join("name"));
        settle(call!(SYS_linkat, HERE, &*from, HERE, &*to, libc::AT_SYMLINK_FOLLOW))
    };
    "second_name_for_software", User, |bait| {
        let software = bait.home.join("software").join(LIBRARY);
        settled(fs::hard_link(software, bait.home.join(WRITE).join("name")))
    };
    "move_from_read_to_write", User, |bait| {
        settled(fs::rename(bait.home.join(READ).join(KEPT), bait.home.join(WRITE).join("moved")))
    };
    "move_from_write_to_read", User, |bait| {
        let new = bait.home.join(WRITE).join("new");
        let _ = fs::write(&new, "x");
        settled(fs::rename(new, bait.home.join(READ).join("moved")))
    };
    "exchange_between_grants", User, |bait| {
        let (a, b) = (bait.home.join(READ).join(KEPT), bait.home.join(WRITE).join(KEPT));
        let exchange = libc::RENAME_EXCHANGE;
        settle(call!(SYS_renameat2, HERE, &*text(&a), HERE, &*text(&b), exchange))
    };
    "copy_into_read_grant", User, |bait| copy_into(&bait.home.join(READ).join(KEPT));
    "copy_into_granted_file", User, |bait| copy_into(&bait.home.join(ONE));
    // Mounts do not make a fifo read-only: only Landlock does.
    "execute_from_write_grant", User, |bait| executed(bait, &bait.home.join(WRITE).join("program"));
    "execute_from_workspace", User, |bait| executed(bait, &bait.work().join("program"));
    "map_executable_from_write_grant", User, |bait| {
        let path = bait.home.join(WRITE).join(KEPT);
        mapped_executable(&path)
    };
    "map_executable_from_workspace", User, |bait| mapped_executable(&bait.work().join(KEPT));
    "larger_file_than_allowed", User, |bait| {
        raw::ignore_signal(libc::SIGXFSZ);
        let file = File::create(bait.home.join(WRITE).join("large"));
        let sparse = file.and_then(|file| file.set_len(1 << 36));
        let errno = sparse.map_err(|error| error.raw_os_error().unwrap_or_default());
        refused_by(errno, &[libc::EFBIG])
    };
    "remount_read_grant", Namespaces, |bait| {
        let path = text(&bait.home.join(READ));
        if !bait.is_inside() {
            let _ = call!(SYS_mount, &*path, &*path, 0, libc::MS_BIND, 0);
        }
        let flags = libc::MS_REMOUNT | libc::MS_BIND;
        reached(call!(SYS_mount, c"none", &*path, 0, flags, 0))
    };
    "unlock_read_grant", Namespaces, |bait| {
        let path = text(&bait.home.join(READ));
        if !bait.is_inside() {
            let _ = call!(SYS_mount, &*path, &*path, 0, libc::MS_BIND, 0);
        }
        let attributes = words(&[0, 1, 0, 0]);
        reached(call!(SYS_mount_setattr, HERE, &*path, 0, &attributes, attributes.len()))
    };
    "uncover_workspace", Namespaces, |bait| {
        let path = text(&bait.work());
        if !bait.is_inside() {
            let _ = call!(SYS_mount, &*path, &*path, 0, libc::MS_BIND, 0);
        }
        reached(call!(SYS_umount2, &*path, libc::MNT_DETACH))
    };
    "handle_of_granted_directory", User, |bait| {
        let (path, mut mount) = (text(&bait.home.join(READ)), [0; 4]);
        let mut handle = [0u8; 136];
        handle[..4].copy_from_slice(&128u32.to_ne_bytes());
        reached(call!(SYS_name_to_handle_at, HERE, &*path, &mut handle[..], &mut mount[..], 0))
    };
    "open_by_handle_in_grant", Root, |bait| {
        let Ok(directory) = File::open(bait.home.join(READ)) else {
            return Outcome::inconclusive("no directory");
        };
        // The handle of inode 2, the root of many a file system.
        let handle = [&8u32.to_ne_bytes()[..], &1u32.to_ne_bytes(), &2u64.to_ne_bytes()].concat();
        reached(call!(SYS_open_by_handle_at, directory.as_raw_fd(), &handle, 0))
    };
    // Where the jail itself keeps what a workspace's cell has changed.
    "changes_of_workspace", User, |bait| beside_work(bait, "changes");
    "overlay_of_workspace", User, |bait| beside_work(bait, "overlay");
    "write_owner_of_granted_file", Root, |bait| {
        settle(call!(SYS_fchownat, HERE, &*text(&bait.home.join(WRITE).join(KEPT)), 0, 0, 0))
    };
};

/// Two cells with one workspace.
pub(crate) const BESIDE: &[Attempt] = &[
    Attempt::new("find_neighbour_in_workspace", User, |bait| {
        opened(fs::read(bait.work().join("planted")))
    })
    .granted(Judge::ReportAndFiles)
    .beside(|bait| settled(fs::write(bait.work().join("planted"), "x"))),
    Attempt::new("find_change_of_neighbour_in_workspace", User, |bait| {
        let read = fs::read(bait.work().join(KEPT)).unwrap_or_default();
        Outcome::succeeded_if(read == b"changed", String::from_utf8_lossy(&read))
    })
    .granted(Judge::ReportAndFiles)
    .beside(|bait| settled(fs::write(bait.work().join(KEPT), "changed"))),
    Attempt::new("find_loss_of_neighbour_in_workspace", User, |bait| {
        Outcome::succeeded_if(!bait.work().join(KEPT).exists(), "looked")
    })
    .granted(Judge::ReportAndFiles)
    .beside(|bait| settled(fs::remove_file(bait.work().join(KEPT)))),
];

fn secret(bait: &Bait) -> PathBuf {
    bait.home.join(SECRET)
}

fn linked(bait: &Bait, tree: &str, which: usize) -> Outcome {
    opened(fs::read(bait.home.join(tree).join(LINKS[which])))
}

fn copy_into(path: &Path) -> Outcome {
    let from = File::open(path);
    let to = OpenOptions::new().write(true).open(path);
    match (from, to) {
        (Ok(from), Ok(to)) => {
            let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
            settle(call!(SYS_copy_file_range, from, 0, to, &words(&[4096]), 16, 0))
        }
        (_, Err(error)) | (Err(error), _) => settled::<()>(Err(error)),
    }
}

fn executed(bait: &Bait, path: &Path) -> Outcome {
    let program = bait.home.join("software").join(crate::harness::software::PROGRAM);
    let copied = match fs::read(program) {
        Ok(program) => fs::write(path, program)
            .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o755))),
        // Cells of scripts have no programs to copy: that nothing is started does not depend on it.
        Err(_) => fs::write(path, "#!/bin/sh\n"),
    };
    if let Err(error) = copied {
        return Outcome::inconclusive(error.to_string());
    }
    settled(crate::harness::spawn::program(path, &[], &[]))
}

fn mapped_executable(path: &Path) -> Outcome {
    let Ok(file) = File::open(path) else { return Outcome::inconclusive("no file") };
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    refused_by(
        raw::map_at(0, 4096, protection, libc::MAP_PRIVATE, file.as_raw_fd()),
        &[libc::EPERM, libc::EACCES],
    )
}

/// Outside, a directory of that name lies where the jail's would.
fn beside_work(bait: &Bait, name: &str) -> Outcome {
    if !bait.is_inside() {
        let at = bait.directory.join(name);
        let _ = fs::create_dir(&at);
        return opened(fs::read_dir(at));
    }
    let places = ["/tmp", "/tmp/..", "/work/..", "/tmp/../tmp/..", "/proc/self/root/tmp"];
    let found = places.iter().map(|place| Path::new(place).join(name)).find(|at| at.exists());
    Outcome::succeeded_if(found.is_some(), format!("{found:?} {REFUSALS:?}"))
}
