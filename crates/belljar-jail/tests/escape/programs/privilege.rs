//! Attempts to leave something privileged behind: a setuid or setgid file, a device, a capability,
//! a file that is somebody else's. On a directory that a root host has granted for writing, any of
//! them would be root's to use outside.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

use super::tamper::{settle, text};
use crate::harness::{
    attempt::{
        Attempt, Judge,
        Setting::{Root, User},
    },
    bait::Bait,
    home::WRITE,
    outcome::Outcome,
    raw::{self, Errno, call, words},
};

const HERE: i32 = libc::AT_FDCWD;
const PRIVILEGED: u32 = libc::S_ISUID | libc::S_ISGID;
const SYS_FCHMODAT2: libc::c_long = 452;
const SYS_SETXATTRAT: libc::c_long = 463;

macro_rules! each_way {
    ($what:literal, $in:path, $as:path) => {
        &[
            $as(Attempt::new(concat!("setuid_", $what), User, |bait| {
                privileged(&$in(bait), |at| made(at).and_then(|()| chmod(at, 0o4755)))
            })),
            $as(Attempt::new(concat!("setgid_", $what), User, |bait| {
                privileged(&$in(bait), |at| made(at).and_then(|()| chmod(at, 0o2755)))
            })),
            $as(Attempt::new(concat!("setgid_directory_", $what), User, |bait| {
                privileged(&$in(bait), |at| {
                    call!(SYS_mkdirat, HERE, &*text(at), 0o755)?;
                    chmod(at, 0o2755)
                })
            })),
            $as(Attempt::new(concat!("setuid_high_bits_", $what), User, |bait| {
                privileged(&$in(bait), |at| {
                    made(at)?;
                    let mode = 0xffff_0000_0000u64 | 0o4755;
                    call!(SYS_fchmodat, HERE, &*text(at), mode).map(drop)
                })
            })),
            $as(Attempt::new(concat!("setuid_by_descriptor_", $what), User, |bait| {
                privileged(&$in(bait), |at| {
                    made(at)?;
                    let file = File::open(at).map_err(|_| raw::last_errno())?;
                    call!(SYS_fchmod, file.as_raw_fd(), 0o6755).map(drop)
                })
            })),
            $as(Attempt::new(concat!("setuid_by_fchmodat2_", $what), User, |bait| {
                privileged(&$in(bait), |at| {
                    made(at)?;
                    let path = text(at);
                    let arguments = [HERE.into(), (&*path).into(), 0o4755.into(), 0.into()];
                    raw::call_number(SYS_FCHMODAT2, arguments).map(drop)
                })
            })),
            $as(Attempt::new(concat!("setuid_by_openat_", $what), User, |bait| {
                privileged(&$in(bait), |at| open(at, libc::O_CREAT | libc::O_WRONLY).map(drop))
            })),
            $as(Attempt::new(concat!("setuid_by_openat2_", $what), User, |bait| {
                privileged(&$in(bait), |at| {
                    let flags = libc::O_CREAT | libc::O_WRONLY;
                    let how = words(&[u64::from(flags.cast_unsigned()), 0o4755, 0]);
                    call!(SYS_openat2, HERE, &*text(at), &how, how.len()).map(drop)
                })
            })),
            $as(Attempt::new(concat!("setuid_by_mknodat_", $what), User, |bait| {
                privileged(&$in(bait), |at| {
                    call!(SYS_mknodat, HERE, &*text(at), libc::S_IFREG | 0o4755, 0).map(drop)
                })
            })),
            $as(Attempt::new(concat!("setuid_nameless_", $what), User, |bait| {
                privileged(&$in(bait), nameless)
            })),
            $as(Attempt::new(concat!("block_device_", $what), Root, |bait| {
                privileged(&$in(bait), |at| device(at, libc::S_IFBLK, 7 << 8))
            })),
            $as(Attempt::new(concat!("character_device_", $what), Root, |bait| {
                privileged(&$in(bait), |at| device(at, libc::S_IFCHR, 1 << 8 | 3))
            })),
            // The device that an overlay takes for a deletion.
            $as(Attempt::new(concat!("whiteout_", $what), User, |bait| {
                privileged(&$in(bait), |at| device(at, libc::S_IFCHR, 0))
            })),
            $as(Attempt::new(concat!("give_away_", $what), Root, |bait| {
                privileged(&$in(bait), |at| {
                    made(at)?;
                    call!(SYS_fchownat, HERE, &*text(at), 0, 0, 0).map(drop)
                })
            })),
            $as(Attempt::new(concat!("capabilities_", $what), Root, |bait| {
                privileged(&$in(bait), |at| attribute(at, c"security.capability", &CAPABLE))
            })),
            $as(Attempt::new(concat!("attribute_by_newest_call_", $what), User, |bait| {
                privileged(&$in(bait), attribute_by_newest_call)
            })),
            $as(Attempt::new(concat!("overlay_mark_", $what), User, |bait| {
                privileged(&$in(bait), |at| attribute(at, c"user.overlay.opaque", b"y"))
            })),
            $as(Attempt::new(concat!("access_list_", $what), User, |bait| {
                privileged(&$in(bait), |at| attribute(at, c"system.posix_acl_access", &LIST))
            })),
        ]
    };
}

pub(crate) const IN_TMP: &[Attempt] = each_way!("in_tmp", scratch, plainly);
pub(crate) const ON_WRITE_GRANT: &[Attempt] = each_way!("on_write_grant", write, with_grants);

const fn plainly(attempt: Attempt) -> Attempt {
    attempt
}

const fn with_grants(attempt: Attempt) -> Attempt {
    attempt.granted(Judge::ReportAndFiles)
}

fn scratch(bait: &Bait) -> PathBuf {
    Path::new(&bait.scratch("x")).parent().map(Path::to_owned).unwrap_or_default()
}

fn write(bait: &Bait) -> PathBuf {
    bait.home.join(WRITE)
}

/// Version 2, every permitted capability, effective.
const CAPABLE: [u8; 20] =
    [1, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0];
/// Version 2; owner, user 1, group, mask, others, with all rights each.
const LIST: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 7, 0, 1, 0, 0, 0, 4, 0, 7, 0, 255, 255, 255,
    255, 16, 0, 7, 0, 255, 255, 255, 255, 32, 0, 7, 0, 255, 255, 255, 255,
];

/// Does something to a new file in a directory, and looks at what is there then.
fn privileged(directory: &Path, act: impl Fn(&Path) -> Result<(), Errno>) -> Outcome {
    let at = directory.join(format!("privileged-{}", std::process::id()));
    let result = act(&at);
    let mode = fs::symlink_metadata(&at).map(|found| found.mode()).unwrap_or_default();
    match result {
        Ok(()) => Outcome::succeeded(format!("mode {mode:o}")),
        Err(_) if mode & PRIVILEGED != 0 => Outcome::succeeded(format!("mode {mode:o}")),
        Err(errno) => settle::<()>(Err(errno)),
    }
}

fn made(at: &Path) -> Result<(), Errno> {
    File::create(at).map(drop).map_err(|_| raw::last_errno())
}

fn chmod(at: &Path, mode: u32) -> Result<(), Errno> {
    call!(SYS_fchmodat, HERE, &*text(at), mode).map(drop)
}

fn open(at: &Path, flags: i32) -> Result<u64, Errno> {
    call!(SYS_openat, HERE, &*text(at), flags, 0o4755)
}

fn nameless(at: &Path) -> Result<(), Errno> {
    let file = open(at.parent().unwrap_or(at), libc::O_TMPFILE | libc::O_WRONLY)?;
    let link = text(Path::new(&format!("/proc/self/fd/{file}")));
    let follow = libc::AT_SYMLINK_FOLLOW;
    call!(SYS_linkat, HERE, &*link, HERE, &*text(at), follow).map(drop)
}

fn device(at: &Path, kind: u32, number: u32) -> Result<(), Errno> {
    call!(SYS_mknodat, HERE, &*text(at), kind | 0o600, number).map(drop)
}

fn attribute(at: &Path, name: &std::ffi::CStr, value: &[u8]) -> Result<(), Errno> {
    made(at)?;
    let path = text(at);
    // File systems need not have every kind.
    match call!(SYS_setxattr, &*path, name, value, value.len(), 0) {
        Err(libc::EOPNOTSUPP) => Err(libc::ENOSYS),
        other => other.map(drop),
    }
}

fn attribute_by_newest_call(at: &Path) -> Result<(), Errno> {
    made(at)?;
    let (path, value) = (text(at), b"x");
    let how = words(&[value.as_ptr() as u64, 1]);
    let size = how.len();
    let arguments = [
        HERE.into(),
        (&*path).into(),
        0.into(),
        c"user.belljar".into(),
        (&how).into(),
        size.into(),
    ];
    raw::call_number(SYS_SETXATTRAT, arguments).map(drop)
}
