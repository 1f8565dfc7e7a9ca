//! The root of a cell that was granted something: the zygote's root, with the grants in it.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat, symlinkat},
    mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree},
    process::chdir,
};

use super::{
    INERT, ROOT_DIRECTORIES, attach_as, become_root, bind,
    cell::mount_scratch_base,
    covered::{Cover, covered_view},
    inside, make_parents, place_tree,
};
use crate::{CellGrants, CellLimits, TreeAccess, certificates, sys};

/// Where commands granted to one cell are found.
const GRANTED_COMMANDS: &str = "/commands";

/// The layer that holds a cell's changes to its workspace.
#[derive(Debug)]
pub(crate) struct LayeredWork {
    /// A handle on the overlay's upper directory.
    pub(crate) changes: OwnedFd,
}

/// Which granted trees get a layer over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Covers {
    /// Only trees that have something to hide.
    WhereNeeded,
    /// Read-only directories too. Without a Landlock rule, a read-only mount still lets guests
    /// write to the host's fifos; beneath a layer, they reach copies only.
    AllThatIsRead,
}

/// Makes a root like the present one with the grants in it, and room for files, and enters it.
///
/// `finish` is called with the root to be as the current directory, while the old one is still
/// there: without a `/proc` in sight the kernel would not mount another.
pub(crate) fn enter_granted_root(
    limits: &CellLimits,
    grants: &CellGrants,
    trees: &[OwnedFd],
    finish: impl FnOnce() -> io::Result<()>,
) -> io::Result<Option<LayeredWork>> {
    begin_root(limits, grants, trees)?;
    copy_root(grants)?;
    let workspace = grants.trees.iter().zip(trees);
    let workspace = workspace.filter(|(tree, _)| tree.access == TreeAccess::Workspace);
    let mut layered = None;
    for (tree, handle) in workspace {
        place_tree(handle, tree.target())?;
        let cover = Cover::of(tree, handle, "workspace")?;
        layered = Some(layer_work(cover.as_ref())?);
    }
    if layered.is_none() {
        mkdirat(CWD, "/tmp/work", Mode::from_raw_mode(0o700))?;
        bind("/tmp/work", "work")?;
    }
    bind("/tmp/tmp", "tmp")?;
    place_grants(grants, trees, Covers::WhereNeeded)?;
    finish()?;
    become_root()?;
    Ok(layered)
}

/// Mounts room for files on `/tmp`, and on `/work`, which becomes the current directory, the root
/// to be, with nothing in it yet.
pub(super) fn begin_root(
    limits: &CellLimits,
    grants: &CellGrants,
    trees: &[OwnedFd],
) -> io::Result<()> {
    if grants.trees.len() != trees.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    mount_scratch_base(limits.disk_bytes, limits.inodes)?;
    let options = [("size", "1m"), ("nr_inodes", "4096"), ("mode", "0755")];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    attach_as("tmpfs", &options, "/work", attributes)?;
    Ok(chdir("/work")?)
}

/// Puts all grants except a workspace into the current directory, the root to be.
pub(super) fn place_grants(
    grants: &CellGrants,
    trees: &[OwnedFd],
    covers: Covers,
) -> io::Result<()> {
    for (number, (tree, handle)) in grants.trees.iter().zip(trees).enumerate() {
        if tree.access == TreeAccess::Workspace {
            continue;
        }
        let is_read = tree.access == TreeAccess::Read && tree.is_directory;
        let cover = match covers {
            Covers::AllThatIsRead if is_read => {
                Some(Cover::made(tree, handle, &number.to_string())?)
            }
            Covers::AllThatIsRead | Covers::WhereNeeded => {
                Cover::of(tree, handle, &number.to_string())?
            }
        };
        match cover {
            Some(cover) => place_tree(&covered_view(&cover, handle)?, tree.target())?,
            None => place_tree(handle, tree.target())?,
        }
        tree.fixed.iter().try_for_each(|path| fix(tree.target(), path))?;
    }
    if let Some(authority) = &grants.authority {
        certificates::lay_own(authority)?;
    }
    for (name, program) in &grants.commands {
        let path = PathBuf::from(GRANTED_COMMANDS).join(name);
        make_parents(inside(&path))?;
        symlinkat(program, CWD, inside(&path))?;
    }
    Ok(())
}

/// Lays a read-only mount of a part of a placed tree over it. A guest can neither write to it nor
/// move or remove it; what leads there it can move, and the mount with it.
fn fix(target: &Path, path: &Path) -> io::Result<()> {
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let look = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut place = openat(CWD, inside(target), look, Mode::empty())?;
    for part in path.iter() {
        place = openat(&place, part, look, Mode::empty())?;
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let part = open_tree(&place, "", flags)?;
    sys::mount::add_attributes(&part, MountAttrFlags::MOUNT_ATTR_RDONLY, None)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(&part, "", &place, "", flags)?)
}

/// Repeats the present root's directories, mounts and links in the current directory.
pub(super) fn copy_root(grants: &CellGrants) -> io::Result<()> {
    for entry in fs::read_dir("/")? {
        let entry = entry?;
        if ROOT_DIRECTORIES.iter().any(|own| entry.file_name() == **own) {
            mkdirat(CWD, inside(&entry.path()), super::DIRECTORY)?;
        } else {
            copy_entry(&entry, grants)?;
        }
    }
    Ok(())
}

/// Repeats one entry as it is, but for a directory of the root's own that leads to a grant: there
/// must be room in it for what else leads there.
fn copy_entry(entry: &fs::DirEntry, grants: &CellGrants) -> io::Result<()> {
    let (from, kind) = (entry.path(), entry.file_type()?);
    if kind.is_symlink() {
        if grants.trees.iter().any(|tree| tree.target() == from) {
            // The grant takes its place.
            return Ok(());
        }
        return Ok(symlinkat(fs::read_link(&from)?, CWD, inside(&from))?);
    }
    let leads_to_grant = grants.trees.iter().any(|tree| tree.target().starts_with(&from));
    if kind.is_dir() && leads_to_grant && entry.metadata()?.dev() == fs::metadata("/")?.dev() {
        mkdirat(CWD, inside(&from), super::DIRECTORY)?;
        return fs::read_dir(&from)?.try_for_each(|entry| copy_entry(&entry?, grants));
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, &from, flags)?;
    place_tree(&tree, &from)
}

/// Lays a writable layer over the tree on `work`, and over what covers parts of that.
fn layer_work(cover: Option<&Cover>) -> io::Result<LayeredWork> {
    for directory in ["/tmp/changes", "/tmp/overlay"] {
        mkdirat(CWD, directory, Mode::from_raw_mode(0o700))?;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let changes = openat(CWD, "/tmp/changes", flags, Mode::empty())?;
    let lower = cover.map_or_else(|| "work".to_owned(), |cover| cover.over("work"));
    let options = [
        ("userxattr", ""),
        ("lowerdir", &*lower),
        ("upperdir", "/tmp/changes"),
        ("workdir", "/tmp/overlay"),
    ];
    attach_as("overlay", &options, "work", INERT)?;
    Ok(LayeredWork { changes })
}
