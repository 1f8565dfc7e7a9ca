//! Errors of the system, in Node's words.

use std::io;

use rquickjs::{Error, Function, Value};
use rustix::io::Errno;

/// Name and words of an error, as libuv has them.
const WORDS: &[(Errno, &str, &str)] = &[
    (Errno::NOENT, "ENOENT", "no such file or directory"),
    (Errno::ACCESS, "EACCES", "permission denied"),
    (Errno::PERM, "EPERM", "operation not permitted"),
    (Errno::ROFS, "EROFS", "read-only file system"),
    (Errno::EXIST, "EEXIST", "file already exists"),
    (Errno::NOTDIR, "ENOTDIR", "not a directory"),
    (Errno::ISDIR, "EISDIR", "illegal operation on a directory"),
    (Errno::NOTEMPTY, "ENOTEMPTY", "directory not empty"),
    (Errno::NOSPC, "ENOSPC", "no space left on device"),
    (Errno::DQUOT, "EDQUOT", "disk quota exceeded"),
    (Errno::FBIG, "EFBIG", "file too large"),
    (Errno::MFILE, "EMFILE", "too many open files"),
    (Errno::NFILE, "ENFILE", "file table overflow"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG", "name too long"),
    (Errno::LOOP, "ELOOP", "too many symbolic links encountered"),
    (Errno::INVAL, "EINVAL", "invalid argument"),
    (Errno::XDEV, "EXDEV", "cross-device link not permitted"),
    (Errno::BUSY, "EBUSY", "resource busy or locked"),
    (Errno::TXTBSY, "ETXTBSY", "text file is busy"),
    (Errno::NOMEM, "ENOMEM", "not enough memory"),
    (Errno::NXIO, "ENXIO", "no such device or address"),
    (Errno::NODEV, "ENODEV", "no such device"),
    (Errno::NOSYS, "ENOSYS", "function not implemented"),
    (Errno::OPNOTSUPP, "ENOTSUP", "operation not supported"),
    (Errno::IO, "EIO", "i/o error"),
];

/// Has `fail` throw, and returns the exception.
pub(super) fn raise(fail: &Function<'_>, error: &io::Error, call: &str) -> Error {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    let known = WORDS.iter().find(|(known, _, _)| *known == errno);
    let (name, words) = match known {
        Some((_, name, words)) => (*name, (*words).to_owned()),
        None => ("EUNKNOWN", error.to_string()),
    };
    let thrown = fail.call::<_, Value>((name, words, -errno.raw_os_error(), call));
    thrown.err().unwrap_or(Error::Unknown)
}
