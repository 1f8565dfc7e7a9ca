//! Several layers as one: what a session has changed in its workspace, in the form a single overlay
//! would have left it in.
//!
//! Files are there by another name, not copied. Of each path the topmost layer that has it counts; a
//! directory is what all layers have in it, down to one that replaces what is beneath. Whatever hides
//! something of the workspace still does.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, XattrFlags, chmodat, lgetxattr, linkat, mkdirat,
        openat, setxattr, statat,
    },
    io::Errno,
};

use super::layers::{self, Layer};

/// Where it is, until the next time.
const MERGED: &str = "/tmp/merged";
const PRIVATE: Mode = Mode::from_raw_mode(0o700);
const OPAQUE: &str = "user.overlay.opaque";
const LOOK: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory that is being put together.
struct Part {
    /// Relative to all layers.
    path: PathBuf,
    /// Those that have it, from the top.
    layers: Vec<Layer>,
}

/// Merges layers, given from the top.
pub(super) fn merge(layers: &[Layer]) -> io::Result<std::os::fd::OwnedFd> {
    forget()?;
    mkdirat(CWD, MERGED, PRIVATE)?;
    let mut parts = vec![Part { path: PathBuf::new(), layers: layers.to_vec() }];
    while let Some(part) = parts.pop() {
        merge_directory(&part, &mut parts)?;
    }
    Ok(openat(CWD, MERGED, LOOK, Mode::empty())?)
}

/// Gives back what merging took.
pub(super) fn forget() -> io::Result<()> {
    layers::remove_all(MERGED)
}

fn merge_directory(part: &Part, parts: &mut Vec<Part>) -> io::Result<()> {
    let mut seen = BTreeSet::new();
    for (depth, layer) in part.layers.iter().enumerate() {
        for name in layers::names_at(&at(*layer, &part.path))? {
            if !seen.insert(name.clone()) {
                continue;
            }
            let path = part.path.join(name);
            let from = at(*layer, &path);
            let found = statat(CWD, &from, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
                linkat(CWD, &from, CWD, merged(&path), AtFlags::empty())?;
                continue;
            }
            let beneath = part.layers.get(depth..).unwrap_or_default();
            let (layers, replaces) = of_directory(beneath, &path)?;
            mkdirat(CWD, merged(&path), PRIVATE)?;
            if replaces {
                setxattr(merged(&path), OPAQUE, b"y", XattrFlags::empty())?;
            }
            let mode = Mode::from_raw_mode(found.st_mode & 0o1777);
            chmodat(CWD, merged(&path), mode, AtFlags::empty())?;
            parts.push(Part { path, layers });
        }
    }
    Ok(())
}

/// The layers that have part in a directory, the topmost of which has it; and whether what is beneath
/// all of them is none of it.
fn of_directory(layers: &[Layer], path: &Path) -> io::Result<(Vec<Layer>, bool)> {
    let mut parts = Vec::new();
    for layer in layers {
        let here = at(*layer, path);
        match statat(CWD, &here, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                parts.push(*layer);
                if is_opaque(&here)? {
                    return Ok((parts, true));
                }
            }
            // A file, or a whiteout: the directory was made anew over it.
            Ok(_) => return Ok((parts, true)),
        }
    }
    Ok((parts, false))
}

fn is_opaque(path: &Path) -> io::Result<bool> {
    let mut value = [0; 4];
    match lgetxattr(path, OPAQUE, &mut value[..]) {
        Ok(bytes) => Ok(value.get(..bytes) == Some(b"y")),
        Err(Errno::NODATA) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn at(layer: Layer, path: &Path) -> PathBuf {
    Path::new(&layer.files()).join(path)
}

fn merged(path: &Path) -> PathBuf {
    Path::new(MERGED).join(path)
}
