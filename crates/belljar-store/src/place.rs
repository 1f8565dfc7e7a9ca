//! Whether the file that is open is still the one at its path.
//!
//! A file that was deleted or replaced while it is open takes writes like any other, and loses all of
//! them when it is closed. So every transaction looks first.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rusqlite::ffi;

use crate::{StoreError, open::log_of};

/// A file by what the kernel knows it by.
type Identity = (u64, u64);

/// Where a store is, and which files it had there when it was opened.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    file: Option<Identity>,
    log: Option<Identity>,
}

impl Place {
    /// To be asked when the store is open.
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

    /// The error of a transaction that was not begun because they are not.
    pub(crate) fn check(&self) -> Result<(), rusqlite::Error> {
        if self.is_unmoved() {
            return Ok(());
        }
        let moved = ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED);
        Err(rusqlite::Error::SqliteFailure(moved, Some("the file was moved".to_owned())))
    }

    /// The same for those who only ask.
    pub(crate) fn told(&self) -> Result<(), StoreError> {
        self.check().map_err(|error| StoreError::from(error).at(&self.path))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
