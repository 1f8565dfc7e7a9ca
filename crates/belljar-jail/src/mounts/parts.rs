//! The root of a session of programs: those parts of the zygote's root that its guests may read or
//! execute, and nothing else.
//!
//! In a cell for one run, Landlock says which parts of the host's software can be read. A session
//! has one Landlock rule for its whole tree, so the tree contains only readable files.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, mkdirat, symlinkat},
    mount::{OpenTreeFlags, open_tree},
};

use super::{DEVICES, DIRECTORY, ROOT_DIRECTORIES, inside, place_tree};
use crate::{CellGrants, View};

/// Repeats in the current directory the files that a view lets guests read and execute, and the
/// programs that this session is granted as commands.
pub(super) fn copy_parts(view: &View, grants: &CellGrants) -> io::Result<()> {
    let own = fs::metadata("/")?.dev();
    let mut mounted: BTreeSet<&Path> = view.trees.iter().map(PathBuf::as_path).collect();
    mounted.extend(view.moved.iter().map(|(_, target)| target.as_path()));
    mounted.extend(DEVICES.iter().map(|(path, _)| Path::new(*path)));
    mounted.extend(grants.trees.iter().map(|tree| tree.target()));
    copy_own(Path::new("/"), own, &mounted)?;
    let devices = DEVICES.iter().map(|(path, _)| PathBuf::from(path));
    let commands = grants.commands.iter().map(|(_, program)| program);
    let parts = view.readable.iter().chain(&view.executable).chain(commands).cloned();
    let parts = parts.chain(devices);
    // Parents come before their content, which is then there already.
    let mut placed: Vec<PathBuf> = Vec::new();
    for part in parts.filter_map(|part| real(&part)).collect::<BTreeSet<PathBuf>>() {
        if !placed.iter().any(|parent| part.starts_with(parent)) && place(&part)? {
            placed.push(part);
        }
    }
    Ok(())
}

/// Repeats the root's own entries of a directory of the zygote's root: it leaves out mount points
/// and creates the directories that lead to them.
fn copy_own(directory: &Path, own: u64, mounted: &BTreeSet<&Path>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_place = ROOT_DIRECTORIES.iter().any(|name| path == Path::new("/").join(name));
        if kind.is_symlink() {
            symlinkat(fs::read_link(&path)?, CWD, inside(&path))?;
        } else if is_place {
            mkdirat(CWD, inside(&path), DIRECTORY)?;
        } else if entry.metadata()?.dev() != own {
            // A mount: its parts are placed later.
        } else if kind.is_dir() && mounted.iter().any(|at| at.starts_with(&path)) {
            mkdirat(CWD, inside(&path), DIRECTORY)?;
            copy_own(&path, own, mounted)?;
        } else {
            place(&path)?;
        }
    }
    Ok(())
}

/// Where a path of the zygote's root really leads, if anywhere: links are repeated as links.
#[expect(clippy::disallowed_methods, reason = "in a root of our own making, not a path to check")]
fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Mounts what is at a path of the zygote's root at the same path of the new one; returns whether
/// anything is there.
fn place(path: &Path) -> io::Result<bool> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = match open_tree(CWD, path, flags) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(false),
        other => other?,
    };
    place_tree(&tree, path).map(|()| true)
}
