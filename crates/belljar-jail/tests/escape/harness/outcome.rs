//! The report of an attempt: it says itself what the kernel answered, so that a missing tool can
//! never pass for a blocked one.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

use super::raw::Errno;

/// How an attempt went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Conclusion {
    /// Refused, by one of the errors that mean refusal.
    Blocked,
    /// It got through, or as far as the kernel's own check of its arguments.
    Succeeded,
    /// It failed for another reason: neither a pass nor an escape.
    Inconclusive,
}

/// The report of a probe on its attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) outcome: Conclusion,
    pub(crate) errno: Option<Errno>,
    pub(crate) detail: String,
}

impl Outcome {
    pub(crate) fn succeeded(detail: impl Into<String>) -> Self {
        Self { outcome: Conclusion::Succeeded, errno: None, detail: detail.into() }
    }

    pub(crate) fn blocked(detail: impl Into<String>) -> Self {
        Self { outcome: Conclusion::Blocked, errno: None, detail: detail.into() }
    }

    pub(crate) fn blocked_by(errno: Errno) -> Self {
        Self { errno: Some(errno), ..Self::blocked("") }
    }

    pub(crate) fn inconclusive(detail: impl Into<String>) -> Self {
        Self { outcome: Conclusion::Inconclusive, errno: None, detail: detail.into() }
    }

    /// `detail` when `escaped`, else a plain refusal that says what was seen instead.
    pub(crate) fn succeeded_if(escaped: bool, seen: impl Into<String>) -> Self {
        if escaped { Self::succeeded(seen) } else { Self::blocked(seen) }
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.outcome == Conclusion::Blocked
    }

    pub(crate) fn has_succeeded(&self) -> bool {
        self.outcome == Conclusion::Succeeded
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.outcome)?;
        if let Some(errno) = self.errno {
            write!(out, " ({})", io::Error::from_raw_os_error(errno))?;
        }
        write!(out, " {}", self.detail)
    }
}

/// For calls whose arguments the kernel rejects after its permission check: any error but the
/// three that mean refusal shows that the call got through to the code behind it.
pub(crate) fn reached<T>(result: Result<T, Errno>) -> Outcome {
    match result {
        Ok(_) => Outcome::succeeded("the call went through"),
        Err(errno @ (libc::EPERM | libc::EACCES | libc::ENOSYS)) => Outcome::blocked_by(errno),
        Err(errno) => Outcome { errno: Some(errno), ..Outcome::succeeded("reached the kernel") },
    }
}

/// For calls with a result of their own: refused only by the errors listed.
pub(crate) fn refused_by<T>(result: Result<T, Errno>, refusals: &[Errno]) -> Outcome {
    match result {
        Ok(_) => Outcome::succeeded("the call went through"),
        Err(errno) if refusals.contains(&errno) => Outcome::blocked_by(errno),
        Err(errno) => Outcome { errno: Some(errno), ..Outcome::inconclusive("unexpected errno") },
    }
}

/// For files: not there, not allowed, not writable, or behind a link that is not followed.
pub(crate) fn opened<T>(result: io::Result<T>) -> Outcome {
    let errno = result.map_err(|error| error.raw_os_error().unwrap_or_default());
    refused_by(errno, NO_FILE)
}

/// The kernel's answers about files that a cell cannot have.
pub(crate) const NO_FILE: &[Errno] =
    &[libc::ENOENT, libc::EACCES, libc::EPERM, libc::EROFS, libc::ENOTDIR, libc::ELOOP];

/// A file about this process. By its number: `self` is a link, and those need not be followed.
pub(crate) fn own(file: &str) -> String {
    format!("/proc/{}/{file}", std::process::id())
}

/// For what the standard library does with sockets, threads and programs.
pub(crate) fn permitted<T>(result: io::Result<T>) -> Outcome {
    reached(result.map_err(|error| error.raw_os_error().unwrap_or_default()))
}
