//! Limits that a guest meets as an error of the system. The guest says which limit it was; the host adds its
//! value, and says how its reader raises it, the same for every language.

use belljar_contract::{ErrorCode, Limits, RunError};

/// Adds the value of the limit, and what to do about it, to an error that names a limit.
pub(super) fn with_limit(mut error: RunError, limits: &Limits) -> RunError {
    let (value, hint) = if error.code == ErrorCode::LimitDisk {
        (
            format!("files in /work and /tmp may take {} together", size(limits.disk)),
            "Write less, or delete files that are no longer needed.",
        )
    } else if error.code == ErrorCode::LimitInodes {
        (
            format!("/work and /tmp may have {} files and directories", limits.inodes),
            "Make fewer files, or delete those that are no longer needed.",
        )
    } else if error.code == ErrorCode::LimitOpenFiles {
        (format!("{} files may be open at a time", limits.open_files), "Close each file after use.")
    } else {
        return error;
    };
    error.message = format!("{}: {value}", error.message);
    error.with_hint(hint).with_advice()
}

fn size(bytes: u64) -> String {
    match bytes {
        whole if whole >= 1 << 20 && whole % (1 << 20) == 0 => format!("{} MiB", whole >> 20),
        other => format!("{other} bytes"),
    }
}
