//! Files of a session, from outside (C2): put, get, list, delete, beneath `/work`.
//!
//! All of it is done in the session's turn, by the jail, which follows no link and acts as the guest's
//! user ([`BranchFiles`]). Here is what a path may be, and what is on its way in.

use std::{
    fs::File,
    io,
    io::Seek as _,
    path::{Component, Path, PathBuf},
};

use belljar_contract::RunError;
use belljar_jail::workspace::{BranchEntry, BranchFiles, EntryKind};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    io::Errno,
};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::{Inner, Session};

/// No path is longer, and none has more parts.
const MAX_PATH_BYTES: usize = 1024;
const MAX_PARTS: usize = 32;

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
    /// A directory that still has something in it is not removed.
    #[error("the directory is not empty")]
    NotEmpty,
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
        let spool = memfd_create("upload", MemfdFlags::CLOEXEC);
        let spool = spool.map_err(|errno| FileError::Refused(errno.into()))?;
        let mut spool = tokio::fs::File::from_std(File::from(spool));
        let mut limited = (&mut content).take(most.saturating_add(1));
        let bytes = copy(&mut limited, &mut spool).await.map_err(FileError::Content)?;
        if bytes > most {
            return Err(FileError::TooLarge(most));
        }
        let mut spool = spool.into_std().await;
        spool.rewind().map_err(FileError::Refused)?;
        let shown = path.to_string_lossy().into_owned();
        self.in_work(move |work| work.put(&path, &mut spool)).await?;
        Ok(SessionFile { path: shown, bytes, kind: SessionFileKind::File })
    }

    /// A file's size and its content from the beginning.
    pub async fn get_file(
        &self,
        path: &str,
    ) -> Result<(u64, impl AsyncRead + Send + Unpin + use<>), FileError> {
        let path = checked(path)?;
        let (bytes, file) = self.in_work(move |work| work.open(&path)).await?;
        Ok((bytes, tokio::fs::File::from_std(file).take(bytes)))
    }

    /// What is beneath `/work`, by path, and whether there is more than `at_most`.
    pub async fn list_files(&self, at_most: usize) -> Result<(Vec<SessionFile>, bool), FileError> {
        let (listed, is_cut) = self.in_work(move |work| work.list(at_most)).await?;
        Ok((listed.into_iter().filter_map(shown).collect(), is_cut))
    }

    /// Removes a file, or a directory with nothing in it.
    pub async fn delete_file(&self, path: &str) -> Result<(), FileError> {
        let path = checked(path)?;
        self.in_work(move |work| work.remove(&path)).await
    }

    /// Does something with `/work`, in its turn.
    async fn in_work<T: Send + 'static>(
        &self,
        act: impl FnOnce(&BranchFiles) -> io::Result<T> + Send + 'static,
    ) -> Result<T, FileError> {
        let _waiting = self.inner.wait();
        let turn = self.inner.take_turn().await.map_err(FileError::Session)?;
        let work = self.inner.work(&turn).await?;
        let done = tokio::task::spawn_blocking(move || {
            let done = act(&work);
            // Nobody else has had a turn until now.
            drop(turn);
            done
        });
        done.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(refused)
    }
}

impl Inner {
    async fn work(&self, turn: &super::Turn) -> Result<BranchFiles, FileError> {
        let (Some(cell), Some(live)) = (&turn.cell, &turn.live) else {
            return Err(FileError::Session(self.is_lost()));
        };
        let work = cell.work(live.number()).await.map_err(FileError::Refused)?;
        Ok(BranchFiles::new(work, cell.body().ids()))
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

fn shown(listed: BranchEntry) -> Option<SessionFile> {
    let kind = match listed.kind {
        EntryKind::File => SessionFileKind::File,
        EntryKind::Directory => SessionFileKind::Directory,
        EntryKind::Link => SessionFileKind::Link,
        EntryKind::Other => return None,
    };
    let path = listed.path.to_string_lossy().into_owned();
    Some(SessionFile { path, bytes: listed.bytes, kind })
}

fn refused(error: io::Error) -> FileError {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => FileError::Missing,
        Some(Errno::LOOP) => FileError::Path("a symbolic link leads there"),
        Some(Errno::XDEV) => FileError::Path("it leads out of the workspace"),
        Some(Errno::NOTDIR | Errno::ISDIR) => {
            FileError::Path("a directory and a file are confused")
        }
        Some(Errno::NAMETOOLONG | Errno::INVAL) => FileError::Path("no file can have this name"),
        Some(Errno::NXIO) => FileError::Path("not a regular file"),
        Some(Errno::NOTEMPTY) => FileError::NotEmpty,
        None if error.kind() == io::ErrorKind::InvalidInput => {
            FileError::Path("not a regular file")
        }
        _ => FileError::Refused(error),
    }
}

#[cfg(test)]
mod tests;
