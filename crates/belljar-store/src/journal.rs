//! The journal of a run: rows in the order they were appended, dense from 1.

use belljar_contract::RunId;
use rusqlite::Connection;

use crate::{
    AuditId, AuditRow, Lease, Store, StoreError, audit,
    runs::check_fence,
    spill::{self, spill},
};

/// One entry. Only the caller knows what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRow {
    /// The kind of entry, as the caller names it.
    pub kind: String,
    /// Which tool call of the run it is about.
    pub call: u32,
    /// The small part of the entry, as JSON.
    pub head: String,
    /// The part that may be large.
    pub body: Option<Vec<u8>>,
}

impl Store {
    /// Appends rows, all or none, and returns the number of the first. They are on disk when this
    /// returns.
    pub async fn append(
        &self,
        lease: &Lease,
        rows: Vec<JournalRow>,
        now_ms: i64,
    ) -> Result<u64, StoreError> {
        let lease = lease.clone();
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            insert(connection, &lease.run_id, rows, now_ms)
        })
        .await
    }

    /// As [`append`](Self::append), with the audit row of a call that is about to leave, in the same
    /// transaction.
    pub async fn append_sent(
        &self,
        lease: &Lease,
        rows: Vec<JournalRow>,
        audited: AuditRow,
        now_ms: i64,
    ) -> Result<AuditId, StoreError> {
        let lease = lease.clone();
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            insert(connection, &lease.run_id, rows, now_ms)?;
            audit::insert(connection, &audited)
        })
        .await
    }

    /// The journal of a run, each row with its number.
    pub async fn journal(&self, run_id: &RunId) -> Result<Vec<(u64, JournalRow)>, StoreError> {
        let run_id = run_id.clone();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT seq, kind, call, head, body, body_blob FROM journal
                 WHERE run_id = ?1 ORDER BY seq",
            )?;
            let mut rows = statement.query([run_id.as_str()])?;
            let mut journal: Vec<(u64, JournalRow)> = Vec::new();
            while let Some(row) = rows.next()? {
                let number: i64 = row.get(0)?;
                let entry = JournalRow {
                    kind: row.get(1)?,
                    call: row.get(2)?,
                    head: row.get(3)?,
                    body: spill::bytes(connection, row, 4)?,
                };
                journal.push((checked(number, journal.len(), &run_id)?, entry));
            }
            Ok(journal)
        })
        .await
    }
}

fn insert(
    connection: &Connection,
    run_id: &str,
    rows: Vec<JournalRow>,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let mut last = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM journal WHERE run_id = ?1")?
        .query_row([run_id], |row| row.get::<_, i64>(0))?;
    let first = last + 1;
    let mut statement = connection.prepare_cached(
        "INSERT INTO journal (run_id, seq, at_ms, kind, call, head, body, body_blob)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for row in rows {
        last += 1;
        let (body, blob) = match row.body {
            Some(body) => {
                let spilled = spill(connection, body, now_ms)?;
                (spilled.inline, spilled.blob)
            }
            None => (None, None),
        };
        statement.execute((run_id, last, now_ms, row.kind, row.call, row.head, body, blob))?;
    }
    Ok(u64::try_from(first).unwrap_or_default())
}

/// A replay that skips a row would repeat a call, so a gap is an error.
fn checked(number: i64, before: usize, run_id: &str) -> Result<u64, StoreError> {
    match u64::try_from(number) {
        Ok(number) if number == before as u64 + 1 => Ok(number),
        Ok(_) | Err(_) => Err(StoreError::Damaged {
            what: format!("the journal of {run_id}"),
            reason: "a row is missing",
        }),
    }
}
