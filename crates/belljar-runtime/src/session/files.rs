//! Access to the files of a session from outside (C2): put, get, list, delete, below `/work`.
//!
//! Each is a call to the session and waits for its turn. The jail touches the files ([`BranchFiles`]): it
//! follows no link and acts as the guest's user. This module checks paths and holds uploads.

use std::{
    fs::File,
    io,
    io::Seek as _,
    path::{Component, Path, PathBuf},
};

use belljar_contract::{RunError, SessionFile, SessionFileKind};
use belljar_jail::workspace::{BranchEntry, BranchFiles, EntryKind};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    io::Errno,
};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::{CellSession, SessionGuests, SessionState};

/// The longest path in bytes and in components.
const MAX_PATH_BYTES: usize = 1024;
const MAX_PARTS: usize = 32;

/// Why a call on a file failed. Nothing has changed.
#[derive(Debug, Error)]
pub enum FileError {
    /// The session has ended, or its guest is lost.
    #[error("{}", .0.message)]
    Session(RunError),
    /// No file of a session can have this path.
    #[error("{0}")]
    Path(&'static str),
    /// No file has this path.
    #[error("there is no such file")]
    Missing,
    /// Only an empty directory can be removed.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The file is larger than the session's limit for files.
    #[error("the file is larger than {0} bytes, the limit of the session")]
    TooLarge(u64),
    /// The source of the content failed.
    #[error("could not read the content: {0}")]
    Content(io::Error),
    /// The operating system refused.
    #[error("{0}")]
    Refused(io::Error),
}

impl CellSession {
    /// Writes a file, and the directories it needs; replaces what was there. The session goes on, and nothing
    /// changes, until all of the content has arrived.
    pub async fn put_file(
        &self,
        path: &str,
        mut content: impl AsyncRead + Send + Unpin,
    ) -> Result<SessionFile, FileError> {
        let path = check_path(path)?;
        let most = self.state.limits.disk;
        // Uploads are held in memory, so there are few at a time.
        let _place = self.state.host.uploads.acquire().await;
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

    /// The size of a file, and its content.
    pub async fn get_file(
        &self,
        path: &str,
    ) -> Result<(u64, impl AsyncRead + Send + Unpin + use<>), FileError> {
        let path = check_path(path)?;
        let (bytes, file) = self.in_work(move |work| work.open(&path)).await?;
        Ok((bytes, tokio::fs::File::from_std(file).take(bytes)))
    }

    /// Lists everything below `/work` by path; the bool says whether there is more than `at_most`.
    pub async fn list_files(&self, at_most: usize) -> Result<(Vec<SessionFile>, bool), FileError> {
        let (listed, is_cut) = self.in_work(move |work| work.list(at_most)).await?;
        Ok((listed.into_iter().filter_map(session_file).collect(), is_cut))
    }

    /// Removes a file or an empty directory.
    pub async fn delete_file(&self, path: &str) -> Result<(), FileError> {
        let path = check_path(path)?;
        self.in_work(move |work| work.remove(&path)).await
    }

    /// Acts on `/work` when it is this call's turn.
    async fn in_work<T: Send + 'static>(
        &self,
        act: impl FnOnce(&BranchFiles) -> io::Result<T> + Send + 'static,
    ) -> Result<T, FileError> {
        let _queued = self.state.queue_call();
        let guests = self.state.take_turn().await.map_err(FileError::Session)?;
        let work = self.state.work(&guests).await?;
        let done = tokio::task::spawn_blocking(move || {
            let done = act(&work);
            // The next call begins only now.
            drop(guests);
            done
        });
        done.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(refused)
    }
}

impl SessionState {
    async fn work(&self, guests: &SessionGuests) -> Result<BranchFiles, FileError> {
        let (Some(cell), Some(live)) = (&guests.cell, &guests.live) else {
            return Err(FileError::Session(self.lost_error()));
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

/// Checks a path and makes it relative to `/work`.
fn check_path(path: &str) -> Result<PathBuf, FileError> {
    if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0') {
        return Err(FileError::Path(
            "the path is empty, longer than 1024 bytes, or has a NUL byte",
        ));
    }
    let path = path.strip_prefix("/work/").unwrap_or(path);
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(FileError::Path("the path must not contain `..`")),
            Component::RootDir | Component::Prefix(_) => {
                return Err(FileError::Path("an absolute path must be below /work"));
            }
        }
    }
    let parts = plain.components().count();
    if parts == 0 || parts > MAX_PARTS || path.ends_with('/') {
        return Err(FileError::Path(
            "the path does not name a file, or has more than 32 components",
        ));
    }
    Ok(plain)
}

fn session_file(listed: BranchEntry) -> Option<SessionFile> {
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
        Some(Errno::LOOP) => FileError::Path("the path leads through a symbolic link"),
        Some(Errno::XDEV) => FileError::Path("the path leads out of the workspace"),
        Some(Errno::NOTDIR | Errno::ISDIR) => {
            FileError::Path("the path uses a file as a directory, or a directory as a file")
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
