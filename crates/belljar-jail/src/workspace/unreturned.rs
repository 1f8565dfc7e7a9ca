//! The files that a run wrote and does not hand back.
//!
//! Code often saves a chart in its working directory and not in `out/`. Such a file ends with the cell, so
//! its name and size are listed. Names that begin with a dot, and compiled Python, are not: libraries write
//! them on their own. No content is read.

use std::{
    io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
};

use super::{
    artifacts::{ArtifactFile, OUTPUT},
    beneath::{look, names},
    change::{EntryKind, size_of},
    upper::Upper,
};

/// The most files that are listed.
const MAX_UNRETURNED: usize = 20;
/// The most entries that are looked at, and the most of one directory.
const MAX_LOOKED_AT: usize = 2_000;
/// Longest path that is listed, in bytes.
const MAX_PATH: usize = 256;

/// A file that ends with its cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFile {
    /// Relative to the workspace; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The size of the file.
    pub bytes: u64,
}

/// Lists regular files outside of `out/`, those of upper directories first, without those whose paths are
/// in `returned`. Whether there are more than are listed is the second part. The cell must be dead.
///
/// # Errors
/// If the workspace itself cannot be read.
pub fn unreturned(
    work: BorrowedFd<'_>,
    returned: &[ArtifactFile],
) -> io::Result<(Vec<WorkFile>, bool)> {
    let work = Upper::new(work);
    let mut left = Some(MAX_LOOKED_AT);
    let mut found = Vec::new();
    let mut level = vec![PathBuf::new()];
    while !level.is_empty() && left.is_some() && found.len() <= MAX_UNRETURNED {
        let mut below = Vec::new();
        for directory in &level {
            match look_into(&work, directory, &mut left, &mut found) {
                Ok(directories) => below.extend(directories),
                Err(error) if directory.as_os_str().is_empty() => return Err(error),
                // One that cannot be read hides its own files only.
                Err(_) => {}
            }
        }
        found.retain(|file| !returned.iter().any(|artifact| artifact.path == file.path));
        level = below;
    }
    let more = left.is_none() || found.len() > MAX_UNRETURNED;
    found.truncate(MAX_UNRETURNED);
    Ok((found, more))
}

/// Adds the files of one directory, and gives the directories in it. `left` is `None` as soon as there
/// were too many entries.
fn look_into(
    work: &Upper<'_>,
    path: &Path,
    left: &mut Option<usize>,
    found: &mut Vec<WorkFile>,
) -> io::Result<Vec<PathBuf>> {
    let directory = work.listing(path)?;
    let most = left.unwrap_or_default();
    let Some(mut names) = names(&directory, most)? else {
        *left = None;
        return Ok(Vec::new());
    };
    *left = left.map(|left| left.saturating_sub(names.len()));
    names.sort_unstable();
    let mut directories = Vec::new();
    for name in names {
        let shown = name.to_string_lossy();
        let is_by_itself = shown.starts_with('.') || shown == "__pycache__";
        if is_by_itself || (path.as_os_str().is_empty() && shown == OUTPUT) {
            continue;
        }
        let Some(stat) = look(&directory, &name)? else { continue };
        let path = path.join(&name);
        match EntryKind::of(&stat) {
            EntryKind::Directory => directories.push(path),
            EntryKind::File if path.as_os_str().len() <= MAX_PATH => {
                let path = path.to_string_lossy().into_owned();
                found.push(WorkFile { path, bytes: size_of(&stat) });
            }
            EntryKind::File | EntryKind::Link | EntryKind::Other => {}
        }
    }
    Ok(directories)
}

#[cfg(test)]
mod tests;
