//! Finding out which of the two limits on files a full disk has reached.

use std::{fs, io};

use belljar_contract::ErrorCode;

/// A directory takes a place in the table of files, and no room among their contents.
const PROBE: &str = "/tmp/.belljar-room";

/// The limit that was reached, now that the system has said there is no space left.
pub(crate) fn exhausted_limit() -> ErrorCode {
    match fs::create_dir(PROBE) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => ErrorCode::LimitInodes,
        Ok(()) => {
            let _ = fs::remove_dir(PROBE);
            ErrorCode::LimitDisk
        }
        Err(_) => ErrorCode::LimitDisk,
    }
}
