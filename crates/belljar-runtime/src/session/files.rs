//! Files of a session, from outside (C2): put, get, list, delete, beneath `/work`.
//!
//! All of it is done by the host through a handle on what the guest sees there, as the user the guest
//! is. No link is followed and no path leads up, so that a guest that changes its files meanwhile
//! changes only what it gets.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use belljar_jail::{as_user, control::Ids};
use rustix::{
    fs::{
        AtFlags, Dir, FileType, MemfdFlags, Mode, OFlags, ResolveFlags, fstat, memfd_create,
        mkdirat, openat2, renameat, statat, unlinkat,
    },
    io::Errno,
};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::{Inner, Session};
use crate::{RunError, result::name};

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
/// No path is longer, and none has more parts.
const MAX_PATH_BYTES: usize = 1024;
const MAX_PARTS: usize = 32;
/// Entries that are looked at for one list.
const MAX_LOOKED_AT: usize = 100_000;

/// A file of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Relative to `/work`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What it is.
    pub kind: SessionFileKind,
}

/// What a path of a session leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which is not followed.
    Link,
}

/// Why something was not done with a file. Nothing was changed.
#[derive(Debug, Error)]
pub enum FileError {
    /// The session cannot be asked.
    #[error("{}", .0.message)]
    Session(RunError),
    /// No file of a session can have this path.
    #[error("{0}")]
    Path(&'static str),
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// It is larger than what is left of the session's room for files.
    #[error("it is larger than the {0} bytes it may have")]
    TooLarge(u64),
    /// What the content was read from failed.
    #[error("the content broke off: {0}")]
    Content(io::Error),
    /// The system refused.
    #[error("{0}")]
    Refused(io::Error),
}

impl Session {
    /// Writes a file, with the directories it is in; what was there is replaced. Until all of the
    /// content is there, the session goes on and nothing is changed.
    pub async fn put_file(
        &self,
        path: &str,
        mut content: impl AsyncRead + Send + Unpin,
    ) -> Result<SessionFile, FileError> {
        let path = checked(path)?;
        let most = self.inner.limits.disk;
        // What is on its way is held in memory: of few at a time.
        let _place = self.inner.host.uploads().acquire().await;
        let spool = memfd_create("upload", MemfdFlags::CLOEXEC).map_err(refused)?;
        let mut spool = tokio::fs::File::from_std(File::from(spool));
        let mut limited = (&mut content).take(most.saturating_add(1));
        let bytes = copy(&mut limited, &mut spool).await.map_err(FileError::Content)?;
        if bytes > most {
            return Err(FileError::TooLarge(most));
        }
        let spool = spool.into_std().await;
        let shown = path.to_string_lossy().into_owned();
        self.in_work(move |work| write(work, &path, spool)).await?;
        Ok(SessionFile { path: shown, bytes, kind: SessionFileKind::File })
    }

    /// A file's size and its content from the beginning.
    pub async fn get_file(
        &self,
        path: &str,
    ) -> Result<(u64, impl AsyncRead + Send + Unpin + use<>), FileError> {
        let path = checked(path)?;
        let (bytes, file) = self.in_work(move |work| read(work, &path)).await?;
        Ok((bytes, tokio::fs::File::from_std(file).take(bytes)))
    }

    /// What is beneath `/work`, by path, and whether there is more than `at_most`.
    pub async fn list_files(&self, at_most: usize) -> Result<(Vec<SessionFile>, bool), FileError> {
        self.in_work(move |work| list(work, at_most)).await
    }

    /// Removes a file, or a directory with nothing in it.
    pub async fn delete_file(&self, path: &str) -> Result<(), FileError> {
        let path = checked(path)?;
        self.in_work(move |work| remove(work, &path)).await
    }

    /// Does something with `/work`, in its turn and as the guest's user.
    async fn in_work<T: Send + 'static>(
        &self,
        act: impl FnOnce(&OwnedFd) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let _waiting = self.inner.wait();
        let turn = self.inner.take_turn().await.map_err(FileError::Session)?;
        let (work, ids) = Inner::work(&self.inner, &turn).await?;
        let done = tokio::task::spawn_blocking(move || {
            let done = as_user(ids.uid, ids.gid, || act(&work)).map_err(FileError::Refused);
            // Nobody else has had a turn until now.
            drop(turn);
            done?
        });
        done.await.unwrap_or_else(|error| Err(FileError::Refused(io::Error::other(error))))
    }
}

impl Inner {
    async fn work(&self, turn: &super::Turn) -> Result<(OwnedFd, Ids), FileError> {
        let (Some(cell), Some(live)) = (&turn.cell, &turn.live) else {
            return Err(FileError::Session(self.is_lost()));
        };
        let work = cell.work(live.number()).await.map_err(FileError::Refused)?;
        Ok((work, cell.body().ids()))
    }
}

async fn copy(from: &mut (impl AsyncRead + Unpin), to: &mut tokio::fs::File) -> io::Result<u64> {
    let bytes = tokio::io::copy(from, to).await?;
    to.flush().await?;
    Ok(bytes)
}

/// A path of plain names, relative to `/work`.
fn checked(path: &str) -> Result<PathBuf, FileError> {
    if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0') {
        return Err(FileError::Path("empty, too long, or with a NUL byte"));
    }
    let path = path.strip_prefix("/work/").unwrap_or(path);
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(FileError::Path("`..` leads up")),
            Component::RootDir | Component::Prefix(_) => {
                return Err(FileError::Path("absolute, and not beneath /work"));
            }
        }
    }
    let parts = plain.components().count();
    if parts == 0 || parts > MAX_PARTS || path.ends_with('/') {
        return Err(FileError::Path("not the name of a file, or too deep"));
    }
    Ok(plain)
}

/// The directory a path is in, made if need be, and its last name.
fn parent<'a>(
    work: &OwnedFd,
    path: &'a Path,
    make: bool,
) -> Result<(OwnedFd, &'a std::ffi::OsStr), FileError> {
    let name = path.file_name().ok_or(FileError::Path("not the name of a file"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = openat2(work, ".", flags, Mode::empty(), BENEATH).map_err(refused)?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let part = part.as_os_str();
        if make {
            match mkdirat(&directory, part, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(refused(errno)),
            }
        }
        directory = openat2(&directory, part, flags, Mode::empty(), BENEATH).map_err(refused)?;
    }
    Ok((directory, name))
}

fn write(work: &OwnedFd, path: &Path, mut content: File) -> Result<(), FileError> {
    use std::io::Seek as _;
    content.rewind().map_err(FileError::Refused)?;
    let (directory, last) = parent(work, path, true)?;
    let temporary = name(".belljar-");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = openat2(&directory, &*temporary, flags, Mode::RUSR | Mode::WUSR, BENEATH);
    let mut made = File::from(made.map_err(refused)?);
    let written = io::copy(&mut content, &mut made);
    drop(made);
    let moved = match written {
        Ok(_) => renameat(&directory, &*temporary, &directory, last).map_err(refused),
        Err(error) => Err(refused(Errno::from_io_error(&error).unwrap_or(Errno::IO))),
    };
    if moved.is_err() {
        let _ = unlinkat(&directory, &*temporary, AtFlags::empty());
    }
    moved
}

fn read(work: &OwnedFd, path: &Path) -> Result<(u64, File), FileError> {
    // A pipe would have the host wait for somebody to write to it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat2(work, path, flags, Mode::empty(), BENEATH).map_err(refused)?;
    let found = fstat(&file).map_err(refused)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(FileError::Path("not a regular file"));
    }
    Ok((u64::try_from(found.st_size).unwrap_or_default(), File::from(file)))
}

fn remove(work: &OwnedFd, path: &Path) -> Result<(), FileError> {
    let (directory, last) = parent(work, path, false)?;
    match unlinkat(&directory, last, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {
            unlinkat(&directory, last, AtFlags::REMOVEDIR).map_err(refused)
        }
        other => other.map_err(refused),
    }
}

fn list(work: &OwnedFd, at_most: usize) -> Result<(Vec<SessionFile>, bool), FileError> {
    let (mut found, mut looked_at) = (Vec::new(), 0);
    let mut pending = vec![PathBuf::from(".")];
    while let Some(directory) = pending.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // One that is gone by now, or closed to the guest's own user, shows nothing.
        let Ok(open) = openat2(work, &directory, flags, Mode::empty(), BENEATH) else { continue };
        for entry in Dir::read_from(&open).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            looked_at += 1;
            if looked_at > MAX_LOOKED_AT {
                return Ok(ordered(found, at_most, true));
            }
            let path = directory.join(as_path(&entry));
            if let Some(file) = look(&open, &entry, &path) {
                if file.kind == SessionFileKind::Directory {
                    pending.push(path);
                }
                found.push(file);
            }
        }
    }
    Ok(ordered(found, at_most, false))
}

fn as_path(entry: &rustix::fs::DirEntry) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()))
}

/// What an entry is; devices, pipes and sockets are nothing to hand out.
fn look(directory: impl AsFd, entry: &rustix::fs::DirEntry, path: &Path) -> Option<SessionFile> {
    let found = statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => SessionFileKind::File,
        FileType::Directory => SessionFileKind::Directory,
        FileType::Symlink => SessionFileKind::Link,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => return None,
    };
    let path = path.strip_prefix(".").unwrap_or(path).to_string_lossy().into_owned();
    Some(SessionFile { path, bytes: u64::try_from(found.st_size).unwrap_or_default(), kind })
}

fn ordered(
    mut found: Vec<SessionFile>,
    at_most: usize,
    mut is_cut: bool,
) -> (Vec<SessionFile>, bool) {
    found.sort_by(|a, b| a.path.cmp(&b.path));
    is_cut |= found.len() > at_most;
    found.truncate(at_most);
    (found, is_cut)
}

fn refused(errno: Errno) -> FileError {
    match errno {
        Errno::NOENT => FileError::Missing,
        Errno::LOOP => FileError::Path("a symbolic link leads there"),
        Errno::XDEV => FileError::Path("it leads out of the workspace"),
        Errno::NOTDIR | Errno::ISDIR => FileError::Path("a directory and a file are confused"),
        Errno::NAMETOOLONG | Errno::INVAL => FileError::Path("no file can have this name"),
        Errno::NXIO => FileError::Path("not a regular file"),
        errno => FileError::Refused(errno.into()),
    }
}

#[cfg(test)]
mod tests;
