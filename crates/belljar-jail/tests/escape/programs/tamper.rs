//! Ways to change a file one can see. Each restores nothing: whoever calls looks from outside.

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::{
        fd::AsRawFd,
        unix::{
            fs::{OpenOptionsExt, PermissionsExt, symlink},
            io::RawFd,
        },
    },
    path::Path,
};

use crate::harness::{
    outcome::{Outcome, refused_by},
    raw::{self, Errno, call},
};

const HERE: i32 = libc::AT_FDCWD;
/// Not there, not allowed, not writable, not on this mount, in use as a mount, not supported.
pub(super) const REFUSALS: &[Errno] = &[
    libc::ENOENT,
    libc::ELOOP,
    libc::EACCES,
    libc::EPERM,
    libc::EROFS,
    libc::EXDEV,
    libc::EBUSY,
    libc::EOPNOTSUPP,
    libc::ENOSYS,
];

pub(super) fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default()
}

pub(super) fn settled<T>(result: io::Result<T>) -> Outcome {
    settle(result.map_err(|error| error.raw_os_error().unwrap_or_default()))
}

pub(super) fn settle<T>(result: Result<T, Errno>) -> Outcome {
    refused_by(result, REFUSALS)
}

/// A name beside the file that nothing has.
fn beside(path: &Path) -> std::path::PathBuf {
    path.with_file_name(format!("new-{}", std::process::id()))
}

pub(super) fn write(path: &Path) -> Outcome {
    settled(OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(b"x")))
}

pub(super) fn append(path: &Path) -> Outcome {
    settled(OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(b"x")))
}

pub(super) fn truncate(path: &Path) -> Outcome {
    settle(call!(SYS_truncate, &*text(path), 1))
}

pub(super) fn truncate_by_opening(path: &Path) -> Outcome {
    settle(call!(SYS_openat, HERE, &*text(path), libc::O_RDONLY | libc::O_TRUNC, 0))
}

pub(super) fn chmod(path: &Path) -> Outcome {
    settled(fs::set_permissions(path, Permissions::from_mode(0o600)))
}

/// Reads that need only a descriptor.
fn by_descriptor(path: &Path, act: impl Fn(RawFd) -> Result<u64, Errno>) -> Outcome {
    match File::open(path) {
        Ok(file) => settle(act(file.as_raw_fd())),
        Err(error) => Outcome::inconclusive(format!("cannot even be read: {error}")),
    }
}

pub(super) fn chmod_by_descriptor(path: &Path) -> Outcome {
    by_descriptor(path, |fd| call!(SYS_fchmod, fd, 0o600))
}

pub(super) fn chmod_by_link(path: &Path) -> Outcome {
    by_descriptor(path, |fd| {
        let link = text(Path::new(&format!("/proc/self/fd/{fd}")));
        call!(SYS_fchmodat, HERE, &*link, 0o600)
    })
}

pub(super) fn touch(path: &Path) -> Outcome {
    settle(call!(SYS_utimensat, HERE, &*text(path), 0, 0))
}

pub(super) fn touch_by_descriptor(path: &Path) -> Outcome {
    by_descriptor(path, |fd| call!(SYS_utimensat, fd, 0, 0, 0))
}

pub(super) fn set_attribute(path: &Path) -> Outcome {
    settle(call!(SYS_setxattr, &*text(path), c"user.belljar", c"x", 1, 0))
}

pub(super) fn set_attribute_by_descriptor(path: &Path) -> Outcome {
    by_descriptor(path, |fd| call!(SYS_fsetxattr, fd, c"user.belljar", c"x", 1, 0))
}

pub(super) fn rename(path: &Path) -> Outcome {
    settled(fs::rename(path, beside(path)))
}

pub(super) fn unlink(path: &Path) -> Outcome {
    settled(fs::remove_file(path))
}

pub(super) fn make_beside(path: &Path) -> Outcome {
    settled(fs::write(beside(path), "x"))
}

pub(super) fn make_directory_beside(path: &Path) -> Outcome {
    settled(fs::create_dir(beside(path)))
}

pub(super) fn make_link_beside(path: &Path) -> Outcome {
    settled(symlink("x", beside(path)))
}

pub(super) fn make_fifo_beside(path: &Path) -> Outcome {
    settle(call!(SYS_mknodat, HERE, &*text(&beside(path)), libc::S_IFIFO | 0o600, 0))
}

pub(super) fn second_name(path: &Path) -> Outcome {
    settled(fs::hard_link(path, beside(path)))
}

/// A file without a name gets one.
pub(super) fn name_the_nameless(path: &Path) -> Outcome {
    let directory = path.parent().unwrap_or(path);
    let flags = libc::O_TMPFILE;
    let made = OpenOptions::new().write(true).mode(0o600).custom_flags(flags).open(directory);
    settled(made.and_then(|file| {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let (from, to) = (text(Path::new(&link)), text(&beside(path)));
        call!(SYS_linkat, HERE, &*from, HERE, &*to, libc::AT_SYMLINK_FOLLOW)
            .map_err(io::Error::from_raw_os_error)
    }))
}

pub(super) fn allocate(path: &Path) -> Outcome {
    let file = OpenOptions::new().write(true).open(path);
    settled(file.and_then(|file| {
        call!(SYS_fallocate, file.as_raw_fd(), 0, 0, 1 << 16).map_err(io::Error::from_raw_os_error)
    }))
}

pub(super) fn write_by_mapping(path: &Path) -> Outcome {
    let file = OpenOptions::new().read(true).write(true).open(path);
    settled(file.and_then(|file| map_and_write(&file).map_err(io::Error::from_raw_os_error)))
}

/// A mapping to write to of a file that was opened to be read.
pub(super) fn write_by_mapping_to_read(path: &Path) -> Outcome {
    let opened = File::open(path).and_then(|file| {
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        // Outside this is how it is done; inside, neither the one nor the other.
        let writable = OpenOptions::new().read(true).write(true).open(again);
        let file = writable.unwrap_or(file);
        map_and_write(&file).map_err(io::Error::from_raw_os_error)
    });
    settled(opened)
}

fn map_and_write(file: &File) -> Result<u64, Errno> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let page = raw::map_at(0, 4096, protection, libc::MAP_SHARED, file.as_raw_fd())?;
    raw::touch(page, 4096);
    call!(SYS_munmap, page, 4096)
}

pub(super) fn reopen_to_write(path: &Path) -> Outcome {
    by_descriptor(path, |fd| {
        let link = text(Path::new(&format!("/proc/self/fd/{fd}")));
        let again = call!(SYS_openat, HERE, &*link, libc::O_WRONLY, 0)?;
        call!(SYS_write, again, c"x", 1)
    })
}

/// A handle that is good for nothing but being opened again.
pub(super) fn reopen_handle_to_write(path: &Path) -> Outcome {
    let handle = match call!(SYS_openat, HERE, &*text(path), libc::O_PATH, 0) {
        Ok(handle) => handle,
        Err(errno) => return settle::<()>(Err(errno)),
    };
    let link = text(Path::new(&format!("/dev/fd/{handle}")));
    let again = call!(SYS_openat, HERE, &*link, libc::O_WRONLY, 0);
    settle(again.and_then(|again| call!(SYS_write, again, c"x", 1)))
}
