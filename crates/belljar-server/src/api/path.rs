//! Paths of files in a session, as a client writes them: relative to `/work`, and plain.
//!
//! This refuses paths that no honest client sends. It does not keep a path beneath `/work`: guest
//! code can create links there, and only opening the path beneath a directory handle is safe.

use crate::sessions::SessionError;

const MAX_BYTES: usize = 4_096;
const MAX_NAME_BYTES: usize = 255;

/// Gives the path back if it is plain and relative.
pub(super) fn checked(path: &str) -> Result<&str, SessionError> {
    let bad = |why: &str| Err(SessionError::BadPath { why: why.to_owned() });
    if path.is_empty() {
        return bad("it is empty");
    }
    if path.len() > MAX_BYTES {
        return bad("it is longer than 4096 bytes");
    }
    if path.chars().any(char::is_control) {
        return bad("it has a control character in it");
    }
    for name in path.split('/') {
        match name {
            "" => return bad("it is absolute, or has an empty name in it"),
            "." | ".." => return bad("it has `.` or `..` in it"),
            name if name.len() > MAX_NAME_BYTES => {
                return bad("a name in it is longer than 255 bytes");
            }
            _ => {}
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_only_plain_relative_paths_are_paths() {
        let long = "x".repeat(256);
        let deep = "a/".repeat(3_000);
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "a//b",
            "a/",
            ".",
            "./a",
            "a/./b",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            &long,
            &deep,
        ] {
            assert!(matches!(checked(bad), Err(SessionError::BadPath { .. })), "{bad:?}");
        }
        for good in ["a", "a/b.txt", "...", "..a", "a..b", ".hidden", "ü/日本", "a\\b", "C:", "%2e"]
        {
            assert_eq!(checked(good), Ok(good));
        }
    }
}
