//! The attributes by which an overlay marks entries of its upper directory.

use std::{io, os::fd::AsFd};

use rustix::{
    fs::{fgetxattr, flistxattr},
    io::Errno,
};

use super::change::WithheldReason;

/// The longest list of attributes the kernel gives.
const MAX_LIST: usize = 64 << 10;
const PREFIXES: [&[u8]; 2] = [b"user.overlay.", b"trusted.overlay."];
/// Attributes for the kernel's own use, which do not change the merged tree.
const HARMLESS: [&[u8]; 4] = [b"origin", b"impure", b"nlink", b"uuid"];
/// How the kernel stores attributes that a guest named like the overlay's own.
const ESCAPED: &[u8] = b"overlay.";

/// The mark of an overlay on an entry of its upper directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// No mark that changes the guest's view.
    None,
    /// A directory that hides the one beneath it.
    Opaque,
}

/// Reads the marks of an open file or directory. Redirections, files without content and other
/// marks that a cell's overlay never sets are refused, because they refer to data elsewhere.
pub(super) fn mark(handle: impl AsFd) -> Result<Mark, WithheldReason> {
    let mut mark = Mark::None;
    let names = list(&handle).map_err(|error| WithheldReason::Unreadable(error.to_string()))?;
    for name in names.split(|byte| *byte == 0) {
        let Some(own) = PREFIXES.iter().find_map(|prefix| name.strip_prefix(*prefix)) else {
            continue;
        };
        if HARMLESS.contains(&own) || own.starts_with(ESCAPED) {
            continue;
        }
        let mut value = [0_u8; 2];
        if own != b"opaque" || fgetxattr(&handle, name, &mut value) != Ok(1) || value[0] != b'y' {
            return Err(WithheldReason::OverlayAttribute(
                String::from_utf8_lossy(name).into_owned(),
            ));
        }
        mark = Mark::Opaque;
    }
    Ok(mark)
}

fn list(handle: impl AsFd) -> io::Result<Vec<u8>> {
    let mut names = Vec::with_capacity(MAX_LIST);
    match flistxattr(handle, rustix::buffer::spare_capacity(&mut names)) {
        Ok(_) | Err(Errno::OPNOTSUPP) => Ok(names),
        Err(error) => Err(error.into()),
    }
}
