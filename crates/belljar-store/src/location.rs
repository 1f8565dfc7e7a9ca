//! Whether the open file is still the one at its path.
//!
//! A file that was deleted or replaced while it is open accepts writes like any other, and all of
//! them are lost when it is closed. So every transaction checks first.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rusqlite::ffi;

use crate::{StoreError, open::log_of};

/// Device and inode of a file.
type FileIdentity = (u64, u64);

/// Where a store is, and which files it had there when it was opened.
#[derive(Debug)]
pub(crate) struct StoreLocation {
    path: PathBuf,
    file: Option<FileIdentity>,
    log: Option<FileIdentity>,
}

impl StoreLocation {
    /// Must be called while the store is open: it remembers the files that are there now.
    pub(crate) fn of(path: PathBuf) -> Self {
        let (file, log) = (identity(&path), identity(&log_of(&path)));
        Self { path, file, log }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the files are where they were.
    pub(crate) fn is_unmoved(&self) -> bool {
        self.file.is_some()
            && identity(&self.path) == self.file
            && (self.log.is_none() || identity(&log_of(&self.path)) == self.log)
    }

    /// The error of SQLite for a transaction that must not begin, because a file was moved.
    pub(crate) fn check_unmoved(&self) -> Result<(), rusqlite::Error> {
        if self.is_unmoved() {
            return Ok(());
        }
        let moved = ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED);
        Err(rusqlite::Error::SqliteFailure(moved, Some("the file was moved".to_owned())))
    }

    /// The same as an error of the store.
    pub(crate) fn require_unmoved(&self) -> Result<(), StoreError> {
        self.check_unmoved().map_err(|error| StoreError::from(error).at(&self.path))
    }
}

fn identity(path: &Path) -> Option<FileIdentity> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
