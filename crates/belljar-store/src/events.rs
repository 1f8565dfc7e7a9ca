//! The event log: what happened to all runs of a project, in order.
//!
//! Numbers are given under the write lock: a reader that has reached one has missed none before it.

use belljar_contract::RunId;
use rusqlite::{Connection, Row};

use crate::{Store, StoreError};

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number; later events have higher ones.
    pub seq: i64,
    /// The run it is about.
    pub run_id: RunId,
    /// The kind of event, as the caller names it.
    pub name: String,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// The details, as JSON.
    pub data_json: String,
}

impl Store {
    /// Appends an event, and returns its number.
    pub async fn append_event(
        &self,
        run_id: &RunId,
        name: &str,
        data_json: String,
        at_ms: i64,
    ) -> Result<i64, StoreError> {
        let (run_id, name) = (run_id.clone(), name.to_owned());
        self.write(move |connection| insert(connection, &run_id, &name, &data_json, at_ms)).await
    }

    /// As [`append_event`](Self::append_event), without waiting for the disk. The events of one caller
    /// keep their order.
    pub async fn post_event(
        &self,
        run_id: &RunId,
        name: &str,
        data_json: String,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let (run_id, name) = (run_id.clone(), name.to_owned());
        let insert = move |connection: &Connection| {
            insert(connection, &run_id, &name, &data_json, at_ms).map(|_| ())
        };
        self.write_behind(insert).await
    }

    /// The events after a number, oldest first; of one run, if it is given.
    pub async fn events(
        &self,
        after_seq: i64,
        limit: u32,
        run_id: Option<&RunId>,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let run_id = run_id.map(|id| id.to_string());
        self.read(move |connection| {
            let of_run = if run_id.is_some() { "run_id = ?3" } else { "?3 IS NULL" };
            let mut statement = connection.prepare_cached(&format!(
                "SELECT seq, run_id, name, at_ms, data FROM events
                 WHERE seq > ?1 AND {of_run} ORDER BY seq LIMIT ?2"
            ))?;
            let rows = statement.query_map((after_seq, limit, run_id), from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

fn insert(
    connection: &Connection,
    run_id: &str,
    name: &str,
    data_json: &str,
    at_ms: i64,
) -> Result<i64, StoreError> {
    connection
        .prepare_cached("INSERT INTO events (run_id, name, at_ms, data) VALUES (?1, ?2, ?3, ?4)")?
        .execute((run_id, name, at_ms, data_json))?;
    Ok(connection.last_insert_rowid())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        seq: row.get(0)?,
        run_id: row.get::<_, String>(1)?.into(),
        name: row.get(2)?,
        at_ms: row.get(3)?,
        data_json: row.get(4)?,
    })
}
