//! The schema and its versions.
//!
//! A version is one SQL file and never changes once released; a new one is added at the end.
//! `user_version` counts the files that were applied.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::{StoreError, kinds::TABLES};

/// Every version's changes, oldest first.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
];
/// "BELL": marks the file as ours.
const APPLICATION_ID: i64 = 0x4245_4c4c;

/// Refuses a file that another program made, or that holds more than tables and indices.
pub(crate) fn check_origin(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let foreign = |reason| Err(StoreError::Foreign { path: path.to_owned(), reason });
    let application: i64 = match connection.pragma_query_value(None, "application_id", get) {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            return foreign("it is not a database");
        }
        other => other?,
    };
    // One statement, one snapshot: another process may be making the schema at this moment.
    let (objects, active): (i64, i64) = connection.query_row(
        "SELECT count(*), count(*) FILTER (WHERE type IN ('trigger', 'view')) FROM sqlite_schema",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if active > 0 {
        return foreign("it has triggers or views");
    }
    if application == APPLICATION_ID || objects == 0 {
        return Ok(());
    }
    // Another process may have made it a store between the two queries.
    let application: i64 = connection.pragma_query_value(None, "application_id", get)?;
    if application == APPLICATION_ID { Ok(()) } else { foreign("another program made it") }
}

/// Reads the first row of every table, which shows that the schema and each table can be read. Cheap;
/// [`Store::examine`](crate::Store::examine) finds damage further in.
pub(crate) fn check_tables(connection: &Connection) -> Result<(), StoreError> {
    for (table, _) in TABLES {
        let mut first =
            connection.prepare(&format!("SELECT 1 FROM {table} NOT INDEXED LIMIT 1"))?;
        first.exists([])?;
    }
    Ok(())
}

/// Refuses a file that is not of the version this program writes.
pub(crate) fn require_current(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found: i64 = connection.pragma_query_value(None, "user_version", get)?;
    if found == known {
        return Ok(());
    }
    Err(StoreError::Newer { path: path.to_owned(), found, known })
}

/// Applies the versions the file does not have yet, in one transaction.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found: i64 = connection.pragma_query_value(None, "user_version", get)?;
    if found == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again under the lock: another process may have migrated the file in the meantime.
    let found: i64 = transaction.pragma_query_value(None, "user_version", get)?;
    if !(0..=known).contains(&found) {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

fn get(row: &rusqlite::Row<'_>) -> rusqlite::Result<i64> {
    row.get(0)
}
