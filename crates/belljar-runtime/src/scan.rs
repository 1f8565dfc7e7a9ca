//! Scans trees before they are granted: for state and configuration of any project in them or around them,
//! and, in trees to write to, for files that the host would execute.
//!
//! The kernel cannot hide a name wherever it occurs, so every directory is read before the cell is made. A
//! tree beyond the bounds of the scan is not granted. Names that appear after the scan are not hidden.

mod withhold;
mod withhold_guard;

use std::{
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use belljar_contract::{ErrorCode, RunError};
use belljar_jail::TreeAccess;
use belljar_paths::names;
use rustix::{
    fs::{
        Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, accessat, openat,
        openat2, statat,
    },
    io::Errno,
};

pub(crate) use self::{
    withhold::WithholdReport,
    withhold_guard::{WithholdGuard, WrittenTrees},
};
use crate::{files::is_reserved, grants};

/// A larger tree is not granted. A scan of this many entries takes about a second.
const BOUNDS: ScanBounds = ScanBounds { entries: 1_000_000, depth: 128 };
/// Paths in one tree to write to that stay read-only: each is a mount in its cell.
const MAX_FIXED: usize = 256;

#[derive(Debug, Clone, Copy)]
struct ScanBounds {
    entries: usize,
    /// Levels of directories below the tree.
    depth: usize,
}

/// A tree that a request asks for.
#[derive(Debug, Clone)]
pub(crate) struct RequestedTree {
    pub(crate) path: PathBuf,
    pub(crate) access: TreeAccess,
}

/// The findings of a scan of all trees of a request.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Paths that no guest may reach.
    pub(crate) protected: Vec<PathBuf>,
    /// The trees that the run may write to.
    pub(crate) written: Vec<WrittenTree>,
}

/// A tree that a run may write to, and the paths in it that stay as they are.
#[derive(Debug)]
pub(crate) struct WrittenTree {
    request: RequestedTree,
    /// Paths that the host would execute, relative to the tree, as they were before the run.
    known: Vec<(PathBuf, EntryIdentity)>,
}

/// Identifies a file and its content, to notice a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntryIdentity {
    device: u64,
    inode: u64,
    /// The time of the last change; `None` for a directory, which changes with its entries.
    changed: Option<(i64, u64)>,
}

impl EntryIdentity {
    fn of(found: &Stat) -> Self {
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let changed = (!is_directory).then_some((found.st_ctime, found.st_ctime_nsec));
        Self { device: found.st_dev, inode: found.st_ino, changed }
    }
}

/// Scans trees. `reserved` are the names that make a directory a project.
pub(crate) fn survey(trees: &[RequestedTree], reserved: &[OsString]) -> Result<Survey, RunError> {
    let mut survey = Survey::default();
    for tree in trees {
        if !reserved.is_empty() {
            let around = tree.path.ancestors().filter(|at| is_project(at, reserved));
            survey.protect(around.map(Path::to_owned), reserved);
        }
        let is_written = tree.access == TreeAccess::Write;
        if let (true, Some(name)) = (is_written, names::executed_in(&tree.path)) {
            return Err(tree.refused(format!("the host would execute files in {name}")));
        }
        if !is_written && reserved.is_empty() {
            continue;
        }
        let Some(found) = TreeScan::of(tree, reserved, BOUNDS)? else { continue };
        survey.protect(found.projects.iter().map(|at| tree.path.join(at)), reserved);
        survey.protected.extend(found.closed.iter().map(|at| tree.path.join(at)));
        if is_written {
            survey.written.push(WrittenTree::of(tree, &found)?);
        }
    }
    Ok(survey)
}

impl Survey {
    /// Protects all reserved names of the projects, whether or not they exist.
    fn protect(&mut self, projects: impl Iterator<Item = PathBuf>, reserved: &[OsString]) {
        self.protected
            .extend(projects.flat_map(|at| reserved.iter().map(move |name| at.join(name))));
    }

    /// Paths in a tree to write to that stay read-only.
    pub(crate) fn fixed(&self, path: &Path) -> Vec<PathBuf> {
        let tree = self.written.iter().find(|tree| tree.request.path == path);
        let known = tree.into_iter().flat_map(|tree| &tree.known);
        known.map(|(path, _)| path.clone()).collect()
    }
}

fn is_project(directory: &Path, reserved: &[OsString]) -> bool {
    reserved.iter().any(|name| directory.join(name).symlink_metadata().is_ok())
}

impl RequestedTree {
    fn refused(&self, why: impl std::fmt::Display) -> RunError {
        let message = grants::refusal(self.access, &self.path, why);
        RunError::new(ErrorCode::PermissionFile, message).with_hint(match self.access {
            TreeAccess::Write => {
                "grant another directory, or a workspace whose changes are committed"
            }
            TreeAccess::Read | TreeAccess::Workspace => "grant a smaller directory, or parts of it",
        })
    }

    fn open(&self) -> Result<Option<OwnedFd>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match openat(CWD, &self.path, flags, Mode::empty()) {
            Ok(root) => Ok(Some(root)),
            // A file, or a path that cannot be granted: the caller that opens it for the cell says so.
            Err(Errno::NOTDIR | Errno::NOENT | Errno::LOOP | Errno::ACCESS) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl WrittenTree {
    fn of(request: &RequestedTree, found: &TreeScan<'_>) -> Result<Self, RunError> {
        if let Some(link) = found.executed.iter().find(|entry| entry.is_link) {
            let path = link.path.display();
            let why = format!("it contains the link {path}, and the host would execute its target");
            return Err(request.refused(why));
        }
        if found.executed.len() > MAX_FIXED {
            let why =
                format!("it contains more than {MAX_FIXED} files that the host would execute");
            return Err(request.refused(why));
        }
        let known = found.executed.iter().map(|entry| (entry.path.clone(), entry.identity));
        Ok(Self { request: request.clone(), known: known.collect() })
    }
}

/// A scanned tree; paths are relative to it.
struct TreeScan<'a> {
    request: &'a RequestedTree,
    root: OwnedFd,
    /// Directories that are projects.
    projects: Vec<PathBuf>,
    /// Directories that can be passed through and not listed.
    closed: Vec<PathBuf>,
    /// Files that the host would execute. Only for a tree to write to.
    executed: Vec<ExecutedEntry>,
}

/// A file that the host would execute.
struct ExecutedEntry {
    path: PathBuf,
    identity: EntryIdentity,
    is_link: bool,
}

impl<'a> TreeScan<'a> {
    /// Scans a tree; `None` if it is not a directory.
    fn of(
        request: &'a RequestedTree,
        reserved: &[OsString],
        bounds: ScanBounds,
    ) -> Result<Option<Self>, RunError> {
        let Some(root) = request.open().map_err(|errno| request.refused(errno))? else {
            return Ok(None);
        };
        let (projects, closed, executed) = (Vec::new(), Vec::new(), Vec::new());
        let mut scan = Self { request, root, projects, closed, executed };
        let mut left = bounds.entries;
        let mut pending = vec![(PathBuf::new(), 0)];
        while let Some((path, depth)) = pending.pop() {
            let read = scan.read_directory(&path, reserved, &mut left);
            let inner = read.map_err(|errno| request.refused(ReadFault { path: &path, errno }))?;
            let Some(inner) = inner else {
                let why = format!("more than {} entries, too many to scan", bounds.entries);
                return Err(request.refused(why));
            };
            if depth == bounds.depth && !inner.is_empty() {
                let why = format!("{} is more than {} levels down", path.display(), bounds.depth);
                return Err(request.refused(why));
            }
            pending.extend(inner.into_iter().map(|name| (path.join(name), depth + 1)));
        }
        Ok(Some(scan))
    }

    /// Reads a directory and returns the directories in it; `None` if there are too many entries.
    fn read_directory(
        &mut self,
        path: &Path,
        reserved: &[OsString],
        left: &mut usize,
    ) -> Result<Option<Vec<OsString>>, Errno> {
        let Some(directory) = self.open(path)? else { return Ok(Some(Vec::new())) };
        let is_written = self.request.access == TreeAccess::Write;
        let (mut inner, mut is_project) = (Vec::new(), false);
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let Some(rest) = left.checked_sub(1) else { return Ok(None) };
            *left = rest;
            is_project |= reserved.iter().any(|reserved| name == reserved);
            if is_written && self.note(&directory, path, name, reserved)? {
                continue;
            }
            if is_directory(&directory, name, entry.file_type())? {
                inner.push(name.to_owned());
            }
        }
        if is_project {
            self.projects.push(path.to_owned());
        }
        Ok(Some(inner))
    }

    /// Notes an entry of a tree to write to; returns whether the scan skips what is below it.
    fn note(
        &mut self,
        directory: &OwnedFd,
        path: &Path,
        name: &OsStr,
        reserved: &[OsString],
    ) -> Result<bool, Errno> {
        let is_executed = names::executed(name).is_some();
        let is_own = reserved.iter().any(|reserved| is_reserved(name, reserved));
        if !is_executed && !is_own {
            return Ok(false);
        }
        let Some(found) = stat_entry(directory, name)? else { return Ok(true) };
        let is_link = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        if is_executed {
            let identity = EntryIdentity::of(&found);
            self.executed.push(ExecutedEntry { path: path.join(name), identity, is_link });
        }
        Ok(true)
    }

    /// Opens a directory without following links; `None` if it is gone, or closed to the guest as well.
    fn open(&mut self, path: &Path) -> Result<Option<OwnedFd>, Errno> {
        if path.as_os_str().is_empty() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return openat(&self.root, ".", flags, Mode::empty()).map(Some);
        }
        match beneath(&self.root, path, OFlags::RDONLY) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(Errno::ACCESS) => {
                // A guest that knows a name in there could still use it.
                if accessat(&self.root, path, Access::EXEC_OK, AtFlags::empty()).is_ok() {
                    self.closed.push(path.to_owned());
                }
                Ok(None)
            }
            Err(errno) => Err(errno),
        }
    }
}

/// Opens a directory of a tree without following links.
fn beneath(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(root, path, flags, Mode::empty(), how) {
        // Without this system call, at least the last component is not followed.
        Err(Errno::NOSYS) => openat(root, path, flags, Mode::empty()),
        other => other,
    }
}

fn stat_entry(directory: &OwnedFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Some file systems do not report the type of an entry in a listing.
fn is_directory(directory: &OwnedFd, name: &OsStr, kind: FileType) -> Result<bool, Errno> {
    if kind != FileType::Unknown {
        return Ok(kind == FileType::Directory);
    }
    let found = stat_entry(directory, name)?;
    Ok(found.is_some_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory))
}

/// A directory that could not be read.
struct ReadFault<'a> {
    path: &'a Path,
    errno: Errno,
}

impl std::fmt::Display for ReadFault<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "could not read {}: {}", self.path.display(), self.errno)
    }
}

#[cfg(test)]
mod tests;
