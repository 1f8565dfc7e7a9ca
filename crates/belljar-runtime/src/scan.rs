//! Looks through trees before they are granted: for state and configuration of any project in them or
//! around them, and in trees to write to for what the host would execute.
//!
//! A guest reaches a file by its name, and nothing in the kernel hides a name wherever it is. So every
//! directory is looked at before the cell is made. What cannot be looked through within the bounds is
//! not granted: nothing is open because nobody looked. What appears after the look is not hidden.

mod take_back;
mod writing;

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
    take_back::TakenBack,
    writing::{Trees, Writing},
};
use crate::files::is_reserved;

/// How much of one tree is looked at: what is larger is not granted. That many entries take about a
/// second.
const BOUNDS: Bounds = Bounds { entries: 1_000_000, depth: 128 };
/// Names of one tree to write to that are only read: each is a mount of its cell.
const MAX_FIXED: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Bounds {
    entries: usize,
    /// Levels.
    depth: usize,
}

/// A tree that is to be granted.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: PathBuf,
    pub(crate) access: TreeAccess,
    pub(crate) flag: &'static str,
}

/// What was found in trees and around them.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// What no guest may reach.
    pub(crate) protected: Vec<PathBuf>,
    /// The trees that are written to.
    pub(crate) written: Vec<WrittenTree>,
}

/// A tree to write to, and what of it stays as it is.
#[derive(Debug)]
pub(crate) struct WrittenTree {
    asked: Asked,
    /// What the host would execute, relative to it, and what each was.
    known: Vec<(PathBuf, Identity)>,
}

/// What something was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    /// When it was changed last; not of a directory, which changes with what is in it.
    changed: Option<(i64, u64)>,
}

impl Identity {
    fn of(found: &Stat) -> Self {
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let changed = (!is_directory).then_some((found.st_ctime, found.st_ctime_nsec));
        Self { device: found.st_dev, inode: found.st_ino, changed }
    }
}

/// Looks through trees. `reserved` are the names that make a directory a project.
pub(crate) fn survey(trees: &[Asked], reserved: &[OsString]) -> Result<Survey, RunError> {
    let mut survey = Survey::default();
    for asked in trees {
        if !reserved.is_empty() {
            let around = asked.path.ancestors().filter(|at| is_project(at, reserved));
            survey.protect(around.map(Path::to_owned), reserved);
        }
        let is_written = asked.access == TreeAccess::Write;
        if let (true, Some(name)) = (is_written, names::executed_in(&asked.path)) {
            return Err(asked.refused(format!("the host would execute what is in {name}")));
        }
        if !is_written && reserved.is_empty() {
            continue;
        }
        let Some(found) = Scan::of(asked, reserved, BOUNDS)? else { continue };
        survey.protect(found.projects.iter().map(|at| asked.path.join(at)), reserved);
        survey.protected.extend(found.closed.iter().map(|at| asked.path.join(at)));
        if is_written {
            survey.written.push(WrittenTree::of(asked, &found)?);
        }
    }
    Ok(survey)
}

impl Survey {
    /// All names of a project are protected, whichever of them are there.
    fn protect(&mut self, projects: impl Iterator<Item = PathBuf>, reserved: &[OsString]) {
        self.protected
            .extend(projects.flat_map(|at| reserved.iter().map(move |name| at.join(name))));
    }

    /// What of a tree to write to is only read.
    pub(crate) fn fixed(&self, path: &Path) -> Vec<PathBuf> {
        let tree = self.written.iter().find(|tree| tree.asked.path == path);
        let known = tree.into_iter().flat_map(|tree| &tree.known);
        known.map(|(path, _)| path.clone()).collect()
    }
}

fn is_project(directory: &Path, reserved: &[OsString]) -> bool {
    reserved.iter().any(|name| directory.join(name).symlink_metadata().is_ok())
}

impl Asked {
    fn refused(&self, why: impl std::fmt::Display) -> RunError {
        let message = format!("{} {}: {why}", self.flag, self.path.display());
        RunError::new(ErrorCode::PermissionFile, message).with_hint(match self.access {
            TreeAccess::Write => "grant another directory, or use --workspace and --commit",
            TreeAccess::Read | TreeAccess::Workspace => "grant a smaller directory, or parts of it",
        })
    }

    fn open(&self) -> Result<Option<OwnedFd>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match openat(CWD, &self.path, flags, Mode::empty()) {
            Ok(root) => Ok(Some(root)),
            // A file, or nothing that could be granted: told by who opens it for the cell.
            Err(Errno::NOTDIR | Errno::NOENT | Errno::LOOP | Errno::ACCESS) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl WrittenTree {
    fn of(asked: &Asked, found: &Scan<'_>) -> Result<Self, RunError> {
        if let Some(link) = found.executed.iter().find(|entry| entry.is_link) {
            let path = link.path.display();
            let why =
                format!("{path} in it is a link, and the host would execute what it leads to");
            return Err(asked.refused(why));
        }
        if found.executed.len() > MAX_FIXED {
            let why = format!("more than {MAX_FIXED} files in it that the host would execute");
            return Err(asked.refused(why));
        }
        let known = found.executed.iter().map(|entry| (entry.path.clone(), entry.identity));
        Ok(Self { asked: asked.clone(), known: known.collect() })
    }
}

/// A tree that was looked through; paths are relative to it.
struct Scan<'a> {
    asked: &'a Asked,
    root: OwnedFd,
    /// Directories that are projects.
    projects: Vec<PathBuf>,
    /// Directories that can be passed and not looked into.
    closed: Vec<PathBuf>,
    /// What the host would execute. Only of a tree that is written to.
    executed: Vec<Entry>,
}

struct Entry {
    path: PathBuf,
    identity: Identity,
    is_link: bool,
}

impl<'a> Scan<'a> {
    /// Nothing, if it is no directory.
    fn of(
        asked: &'a Asked,
        reserved: &[OsString],
        bounds: Bounds,
    ) -> Result<Option<Self>, RunError> {
        let Some(root) = asked.open().map_err(|errno| asked.refused(errno))? else {
            return Ok(None);
        };
        let (projects, closed, executed) = (Vec::new(), Vec::new(), Vec::new());
        let mut scan = Self { asked, root, projects, closed, executed };
        let mut left = bounds.entries;
        let mut pending = vec![(PathBuf::new(), 0)];
        while let Some((path, depth)) = pending.pop() {
            let looked = scan.look_into(&path, reserved, &mut left);
            let inner = looked.map_err(|errno| asked.refused(Fault { path: &path, errno }))?;
            let Some(inner) = inner else {
                return Err(asked.refused(format!(
                    "more than {} entries, too many to look through for the state of projects",
                    bounds.entries
                )));
            };
            if depth == bounds.depth && !inner.is_empty() {
                let why = format!("{} is more than {} levels down", path.display(), bounds.depth);
                return Err(asked.refused(why));
            }
            pending.extend(inner.into_iter().map(|name| (path.join(name), depth + 1)));
        }
        Ok(Some(scan))
    }

    /// Looks at the entries of a directory; its directories, or nothing if there are too many.
    fn look_into(
        &mut self,
        path: &Path,
        reserved: &[OsString],
        left: &mut usize,
    ) -> Result<Option<Vec<OsString>>, Errno> {
        let Some(directory) = self.open(path)? else { return Ok(Some(Vec::new())) };
        let is_written = self.asked.access == TreeAccess::Write;
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

    /// Notes an entry of a tree to write to; whether what is beneath it counts as it.
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
        let Some(found) = look(directory, name)? else { return Ok(true) };
        let is_link = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        if is_executed {
            let identity = Identity::of(&found);
            self.executed.push(Entry { path: path.join(name), identity, is_link });
        }
        Ok(true)
    }

    /// Opens a directory, through no link. Nothing, if it is gone or no guest gets into it either.
    fn open(&mut self, path: &Path) -> Result<Option<OwnedFd>, Errno> {
        if path.as_os_str().is_empty() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return openat(&self.root, ".", flags, Mode::empty()).map(Some);
        }
        match beneath(&self.root, path, OFlags::RDONLY) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(Errno::ACCESS) => {
                // Whoever knows a name in there could still use it.
                if accessat(&self.root, path, Access::EXEC_OK, AtFlags::empty()).is_ok() {
                    self.closed.push(path.to_owned());
                }
                Ok(None)
            }
            Err(errno) => Err(errno),
        }
    }
}

/// Opens a directory of a tree without following a link.
fn beneath(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(root, path, flags, Mode::empty(), how) {
        // A kernel or a filter without it: the last component at least is no link.
        Err(Errno::NOSYS) => openat(root, path, flags, Mode::empty()),
        other => other,
    }
}

fn look(directory: &OwnedFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Some file systems do not say of what kind an entry is.
fn is_directory(directory: &OwnedFd, name: &OsStr, kind: FileType) -> Result<bool, Errno> {
    if kind != FileType::Unknown {
        return Ok(kind == FileType::Directory);
    }
    let found = look(directory, name)?;
    Ok(found.is_some_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory))
}

/// What could not be looked at, and why.
struct Fault<'a> {
    path: &'a Path,
    errno: Errno,
}

impl std::fmt::Display for Fault<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "could not look into {}: {}", self.path.display(), self.errno)
    }
}

#[cfg(test)]
mod tests;
