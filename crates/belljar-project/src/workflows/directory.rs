//! A directory of the host with files of guests.
//!
//! Paths come from guests. They are resolved component by component from an open handle; links are
//! never followed, and everything but plain names is refused.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Component, Path},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, mkdirat, openat, readlinkat, renameat,
        statat, symlinkat, unlinkat,
    },
    io::Errno,
};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Deepest level that is read.
const DEPTH: usize = 64;

/// An open directory; paths are resolved beneath it.
#[derive(Debug)]
pub(super) struct WorkflowDirectory(OwnedFd);

/// A file, link or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DirectoryEntry {
    File { mode: u32, bytes: u64 },
    Link { to: String },
    Directory { mode: u32, is_empty: bool },
}

impl WorkflowDirectory {
    /// Opens a directory of the host's own.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, DIRECTORY - OFlags::NOFOLLOW, Mode::empty())?))
    }

    /// Everything below, by path, except what `skip` excludes. Sockets and devices are left out.
    pub(super) fn walk(
        &self,
        skip: &dyn Fn(&Path) -> bool,
        most: usize,
    ) -> io::Result<Vec<(String, DirectoryEntry)>> {
        let mut found = Vec::new();
        // Paths, not handles: a guest may have created more directories than this process may open.
        let mut todo = vec![String::new()];
        while let Some(path) = todo.pop() {
            if path.matches('/').count() > DEPTH {
                return Err(io::Error::other(format!("{path} is nested too deeply")));
            }
            let directory = self.enter(&path)?;
            for name in names(&directory)? {
                let Some(below) = joined(&path, &name) else { continue };
                if skip(Path::new(&below)) {
                    continue;
                }
                let there = entry_of(&directory, &name)?;
                if let Some(DirectoryEntry::Directory { .. }) = there {
                    todo.push(below.clone());
                }
                found.extend(there.map(|there| (below, there)));
                if found.len() > most {
                    return Err(io::Error::other(format!("there are more than {most} files")));
                }
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// The entry at a path, if it exists.
    pub(super) fn entry(&self, path: &str) -> io::Result<Option<DirectoryEntry>> {
        match self.parent(path, MissingParents::Fail) {
            Ok((parent, name)) => match entry_of(&parent, &name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                found => found,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a whole file.
    pub(super) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let (parent, name) = self.parent(path, MissingParents::Fail)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(openat(&parent, &*name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("no file"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file atomically.
    pub(super) fn write(&self, path: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
        let (parent, name) = self.parent(path, MissingParents::Create)?;
        let mut beside = OsString::from(".belljar-new-");
        beside.push(&name);
        let _ = unlinkat(&parent, &*beside, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&parent, &*beside, flags, Mode::from(0o600))?);
        let written = file.write_all(bytes).and_then(|()| {
            fchmod(&file, permissions(mode))?;
            Ok(renameat(&parent, &*beside, &parent, &*name)?)
        });
        if written.is_err() {
            let _ = unlinkat(&parent, &*beside, AtFlags::empty());
        }
        written
    }

    /// Creates a link. Its target is not checked.
    pub(super) fn create_link(&self, path: &str, to: &str) -> io::Result<()> {
        let (parent, name) = self.parent(path, MissingParents::Create)?;
        let _ = unlinkat(&parent, &*name, AtFlags::empty());
        Ok(symlinkat(to, &parent, &*name)?)
    }

    /// Creates a directory unless it exists.
    pub(super) fn create_directory(&self, path: &str, mode: u32) -> io::Result<()> {
        let (parent, name) = self.parent(path, MissingParents::Create)?;
        match mkdirat(&parent, &*name, Mode::from(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let made = openat(&parent, &*name, DIRECTORY, Mode::empty())?;
        // The owner can always enter it.
        Ok(fchmod(&made, permissions(mode | 0o700))?)
    }

    /// Removes a file, a link or an empty directory.
    pub(super) fn remove(&self, path: &str) -> io::Result<()> {
        let (parent, name) = self.parent(path, MissingParents::Fail)?;
        match unlinkat(&parent, &*name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => Ok(unlinkat(&parent, &*name, AtFlags::REMOVEDIR)?),
            removed => Ok(removed?),
        }
    }

    /// Opens a directory below this one.
    fn enter(&self, path: &str) -> io::Result<OwnedFd> {
        let mut at = openat(&self.0, ".", DIRECTORY, Mode::empty())?;
        for name in plain_names(path)? {
            at = openat(&at, name, DIRECTORY, Mode::empty())?;
        }
        Ok(at)
    }

    /// Opens the parent of a path; also returns its last name.
    fn parent(&self, path: &str, missing: MissingParents) -> io::Result<(OwnedFd, OsString)> {
        let mut names = plain_names(path)?;
        let last = names.pop().ok_or_else(|| io::Error::other("no path"))?;
        let mut at = openat(&self.0, ".", DIRECTORY, Mode::empty())?;
        for name in names {
            at = match openat(&at, name, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) if missing == MissingParents::Create => {
                    mkdirat(&at, name, Mode::from(0o755))?;
                    openat(&at, name, DIRECTORY, Mode::empty())?
                }
                opened => opened?,
            };
        }
        Ok((at, last.to_owned()))
    }
}

/// The treatment of missing parent directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingParents {
    Create,
    Fail,
}

/// The components of a path, if all are plain names.
fn plain_names(path: &str) -> io::Result<Vec<&OsStr>> {
    let part = |part: Component<'_>| match part {
        Component::Normal(_) => true,
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    };
    if path.contains('\0') || !Path::new(path).components().all(part) {
        return Err(io::Error::other("a path may contain only plain names"));
    }
    Ok(path.split('/').filter(|name| !name.is_empty()).map(OsStr::new).collect())
}

fn permissions(mode: u32) -> Mode {
    // Without set-user-id and similar bits.
    Mode::from_raw_mode(mode & 0o777)
}

fn names(directory: &impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Names that are not UTF-8 cannot be stored and are left out.
fn joined(path: &str, name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    Some(if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") })
}

fn entry_of(directory: &impl AsFd, name: &OsStr) -> io::Result<Option<DirectoryEntry>> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = found.st_mode & 0o777;
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Some(DirectoryEntry::File {
            mode,
            bytes: u64::try_from(found.st_size).unwrap_or_default(),
        }),
        FileType::Directory => {
            let inner = openat(directory, name, DIRECTORY, Mode::empty())?;
            Some(DirectoryEntry::Directory { mode, is_empty: names(&inner)?.is_empty() })
        }
        FileType::Symlink => {
            let to = readlinkat(directory, name, Vec::new())?;
            to.to_str().ok().map(|to| DirectoryEntry::Link { to: to.to_owned() })
        }
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => None,
    })
}
