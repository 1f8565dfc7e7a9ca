//! The file itself: its size by kind of record, shrinking, copying and checking it.
//!
//! Deleted rows are written over with zeros (`secure_delete`) and their pages are given back in small
//! steps (`auto_vacuum = INCREMENTAL`), so that no writer waits for either. A file of an earlier version
//! has to be rewritten once ([`Store::compact`]).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, backup::Backup};

use crate::{
    RecordKind, Store, StoreError, StoreSizes,
    blobs::unsigned,
    kinds::kind_of_table,
    open::{connect, log_of},
};

/// `auto_vacuum` as SQLite numbers it.
pub(crate) const INCREMENTAL: i64 = 2;
/// How long emptying the log waits for readers; writers wait meanwhile.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_millis(250);

/// How unused pages are given back to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShrinkMode {
    /// A few at a time.
    InSteps,
    /// Only by rewriting the file ([`Store::compact`]).
    AfterCompacting,
}

impl Store {
    /// The size of the store by kind of record. Reads every page, so do not call it for each request.
    pub async fn sizes(&self) -> Result<StoreSizes, StoreError> {
        let path = self.path().to_owned();
        self.read(move |connection| {
            let mut kinds: BTreeMap<_, _> = RecordKind::ALL.map(|kind| (kind, 0)).into();
            let mut statement = connection.prepare(
                "SELECT coalesce(s.tbl_name, ''), sum(d.pgsize) FROM dbstat AS d
                 LEFT JOIN sqlite_schema AS s ON s.name = d.name WHERE d.aggregate = 1 GROUP BY 1",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let table: String = row.get(0)?;
                let kind = kind_of_table(&table);
                *kinds.entry(kind).or_default() += unsigned(row.get(1)?);
            }
            let Pages { size, free, .. } = Pages::of(connection)?;
            let bytes = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
            let (file, log) = (bytes(&path), bytes(&log_of(&path)));
            Ok(StoreSizes { kinds, file, log, free: free * size })
        })
        .await
    }

    /// Bytes of audit rows and their index, estimated from their number and the size of the newest.
    /// Cheap, and close: rows are alike, and only the oldest are ever removed.
    pub async fn audit_bytes(&self) -> Result<u64, StoreError> {
        self.read(|connection| {
            let bytes: f64 = connection.query_row(
                "SELECT coalesce((SELECT max(id) - min(id) + 1 FROM audit) * (SELECT avg(
                     3 * length(run_id) + length(tool) + length(decision) + length(reason)
                     + length(caller) + length(argument_hash) + length(outcome) + 50)
                 FROM (SELECT * FROM audit ORDER BY id DESC LIMIT 1000)), 0.0)",
                [],
                |row| row.get(0),
            )?;
            Ok(bytes as u64)
        })
        .await
    }

    /// Bytes of used pages. Cheap.
    pub async fn used_bytes(&self) -> Result<u64, StoreError> {
        self.read(|connection| {
            let Pages { size, all, free } = Pages::of(connection)?;
            Ok(all.saturating_sub(free) * size)
        })
        .await
    }

    /// How the file shrinks.
    pub async fn shrink_mode(&self) -> Result<ShrinkMode, StoreError> {
        self.read(|connection| {
            // A connection caches the header; this makes it read the file again.
            pragma(connection, "page_count")?;
            Ok(match pragma(connection, "auto_vacuum")? {
                INCREMENTAL => ShrinkMode::InSteps,
                _ => ShrinkMode::AfterCompacting,
            })
        })
        .await
    }

    /// Gives at most so many unused pages back to the file system, and returns how many.
    pub async fn shrink(&self, pages: u32) -> Result<u64, StoreError> {
        self.write(move |connection| {
            let before = Pages::of(connection)?;
            // Each row is a step; the pages are free when all were taken.
            let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
            let mut steps = vacuum.query([])?;
            while steps.next()?.is_some() {}
            Ok(before.all.saturating_sub(Pages::of(connection)?.all))
        })
        .await
    }

    /// Copies the log back into the file and empties it, unless a reader holds it. Returns whether it
    /// is empty now; deleted rows are then gone from the log, too.
    pub async fn empty_log(&self) -> Result<bool, StoreError> {
        self.on_own_connection(|connection, _| {
            connection.busy_timeout(CHECKPOINT_TIMEOUT)?;
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            let busy: i64 = connection.query_row(checkpoint, [], |row| row.get(0))?;
            Ok(busy == 0)
        })
        .await
    }

    /// Rewrites the file without free pages, so that it shrinks in steps from then on. Writers wait
    /// meanwhile; it needs as much room again as the file has.
    pub async fn compact(&self) -> Result<(), StoreError> {
        self.on_own_connection(|connection, _| {
            connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
            Ok(connection.execute_batch("VACUUM")?)
        })
        .await
    }

    /// Copies a consistent snapshot of the store to an empty file. Writers do not wait.
    pub async fn copy_to(&self, target: &Path) -> Result<(), StoreError> {
        let target = target.to_owned();
        self.on_own_connection(move |source, _| {
            let mut copy = Connection::open(&target)?;
            Backup::new(&source, &mut copy)?.run_to_completion(i32::MAX, Duration::ZERO, None)?;
            // One file that needs no other beside it.
            copy.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
            examine(&copy, &target)
        })
        .await
    }

    /// Reads the whole file and fails if anything is damaged. Takes as long as reading it.
    pub async fn examine(&self) -> Result<(), StoreError> {
        let path = self.path().to_owned();
        self.read(move |connection| examine(connection, &path)).await
    }

    /// Runs `work` on a new connection, on a blocking thread.
    async fn on_own_connection<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(Connection, PathBuf) -> Result<T, StoreError> + Send + 'static,
    {
        let path = self.path().to_owned();
        let working = tokio::task::spawn_blocking(move || {
            let connection = connect(&path)?;
            connection.pragma_update_and_check(None, "secure_delete", "on", |_| Ok(()))?;
            work(connection, path)
        });
        let done = working.await.unwrap_or(Err(StoreError::Closed));
        done.map_err(|error| error.at(self.path()))
    }
}

/// Pages of a file.
struct Pages {
    size: u64,
    all: u64,
    free: u64,
}

impl Pages {
    fn of(connection: &Connection) -> Result<Self, StoreError> {
        let number = |name| Ok::<_, StoreError>(unsigned(pragma(connection, name)?));
        let (size, all) = (number("page_size")?, number("page_count")?);
        Ok(Self { size, all, free: number("freelist_count")? })
    }
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, StoreError> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}

fn examine(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(StoreError::damaged(path, &found)) }
}
