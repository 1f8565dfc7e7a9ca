//! Connections: where the file is, who may read it, and how SQLite is configured.
//!
//! A project can come from a stranger, and so can a `.belljar/` in it. A file with triggers or
//! views (which could decide approvals by themselves), a symbolic link, and a database of another
//! program are refused.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{StoreError, schema, upkeep::INCREMENTAL};

/// The file's name in the project's `.belljar/` directory.
pub const FILE_NAME: &str = "belljar.db";

/// How long an operation waits for another process's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the switch to WAL is retried, and the delay in between; SQLite itself does not wait for it.
const BUSY_RETRIES: u32 = 200;
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// Pages in the log before a commit also copies them back: the log is then written over from its
/// beginning, which is cheaper to synchronise than a file that grows.
const CHECKPOINT_PAGES: i64 = 1000;
/// Every statement of this crate stays prepared.
const STATEMENTS: usize = 160;

/// A store that was opened for writing.
pub(crate) struct OpenedStore {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) prior_file: PriorFile,
}

/// The state of the path before the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorFile {
    /// No file: the store was made.
    Nothing,
    /// An empty file: a new one, or the rest of a store that was lost.
    EmptyFile,
    /// A store of an earlier run of the program.
    Store,
}

/// Makes the directory and the file if needed, and brings the schema up to date.
pub(crate) fn open_writer(directory: &Path) -> Result<OpenedStore, StoreError> {
    let path = directory.join(FILE_NAME);
    let prior_file = make_private(directory, &path)
        .map_err(|source| StoreError::Open { path: path.clone(), source })?;
    let mut retries = 0;
    loop {
        match prepare_writer(&path) {
            Err(StoreError::Sqlite(error)) if is_busy(&error) && retries < BUSY_RETRIES => {
                retries += 1;
                thread::sleep(BUSY_PAUSE);
            }
            Err(error) => return Err(error.at(&path)),
            Ok(connection) => return Ok(OpenedStore { path, connection, prior_file }),
        }
    }
}

/// A connection that only reads.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A connection that only reads and needs no room on the disk: the index of the log is in memory, and
/// no other process may have the file open.
pub(crate) fn open_alone(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    connection.pragma_update_and_check(None, "locking_mode", "exclusive", |_| Ok(()))?;
    connection.pragma_update(None, "query_only", true)?;
    schema::check_origin(&connection, path)?;
    schema::require_current(&connection, path)?;
    Ok(connection)
}

/// Where SQLite keeps the log of a file.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

fn prepare_writer(path: &Path) -> Result<Connection, StoreError> {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    let is_empty = bytes(path) == 0;
    if is_empty && bytes(&log_of(path)) > 0 {
        // SQLite would throw the log away.
        return Err(StoreError::damaged(path, "the file is empty, but its log is not"));
    }
    let mut connection = connect(path)?;
    schema::check_origin(&connection, path)?;
    if is_empty {
        // Setting it later needs a rewrite of the whole file.
        connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    // Deleted rows are overwritten in the file, too.
    connection.pragma_update_and_check(None, "secure_delete", "on", |_| Ok(()))?;
    schema::migrate(&mut connection, path)?;
    schema::check_tables(&connection)?;
    Ok(connection)
}

pub(crate) fn connect(path: &Path) -> Result<Connection, StoreError> {
    // No URI names: a path is a path, whatever characters it has.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// A directory and a file only their owner may read. SQLite gives its log the file's mode.
fn make_private(directory: &Path, path: &Path) -> io::Result<PriorFile> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(PriorFile::Nothing),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path)?;
            if found.is_file() {
                return Ok(if found.len() == 0 { PriorFile::EmptyFile } else { PriorFile::Store });
            }
            Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"))
        }
        Err(error) => Err(error),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
