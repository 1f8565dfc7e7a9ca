//! One row per tool call: caller, tool, decision, outcome.
//!
//! The row of a call that may have an effect is on disk before the call leaves ([`Store::begin_audit`],
//! [`Store::append_sent`]), and has the outcome [`SENT`] until the real one is known. Everything else is
//! written behind: no caller waits for the disk, and no row is dropped as long as the host lives.

use belljar_contract::RunId;
use rusqlite::{Connection, Row};
use serde::Serialize;

use crate::{Store, StoreError};

/// The record of one tool call. `belljar audit --json` shows it as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditRow {
    /// The run that made the call.
    pub run_id: RunId,
    /// The call's number in the run.
    pub call: u32,
    /// The qualified name of the tool, or the name the code wrote if no tool has it.
    pub tool: String,
    /// The decision of the policy, or of the person it asked.
    pub decision: String,
    /// Which rule or default led to that decision.
    pub reason: String,
    /// The caller who asked for the run.
    pub caller: String,
    /// A hash of the arguments.
    pub argument_hash: String,
    /// When the call began.
    pub started_ms: i64,
    /// How long it took.
    pub duration_ms: f64,
    /// `ok`, an error code, or [`SENT`] while the outcome is unknown.
    pub outcome: String,
}

/// The outcome of a call that was sent and has no other yet: it is running, or its host ended first.
pub const SENT: &str = "sent";

/// Identifies a row on disk that is completed when its call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditId {
    id: i64,
    /// A later row may get the same number after this one is pruned; the time tells them apart.
    started_ms: i64,
}

/// Selects rows; a field that is `None` matches all.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only calls of this run.
    pub run_id: Option<RunId>,
    /// Only calls of this tool.
    pub tool: Option<String>,
}

impl Store {
    /// Queues a row. Waits only if the queue is full; [`flush`](Self::flush) reports failures.
    pub async fn audit(&self, row: AuditRow) -> Result<(), StoreError> {
        self.write_behind(move |connection| insert(connection, &row).map(|_| ())).await
    }

    /// Writes the row of a call that is about to leave. It is on disk when this returns.
    pub async fn begin_audit(&self, row: AuditRow) -> Result<AuditId, StoreError> {
        self.write(move |connection| insert(connection, &row)).await
    }

    /// Queues the outcome of a call whose row is on disk.
    pub async fn end_audit(
        &self,
        id: AuditId,
        duration_ms: f64,
        outcome: String,
    ) -> Result<(), StoreError> {
        self.write_behind(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE audit SET duration_ms = ?3, outcome = ?4
                     WHERE id = ?1 AND started_ms = ?2",
                )?
                .execute((id.id, id.started_ms, duration_ms, outcome))?;
            Ok(())
        })
        .await
    }

    /// The newest rows, newest first.
    pub async fn audit_rows(
        &self,
        filter: AuditFilter,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        self.read(move |connection| {
            let mut conditions = String::from("?1 IS ?1 AND ?2 IS ?2");
            if filter.run_id.is_some() {
                conditions.push_str(" AND run_id = ?1");
            }
            if filter.tool.is_some() {
                conditions.push_str(" AND tool = ?2");
            }
            let mut statement = connection.prepare_cached(&format!(
                "SELECT run_id, call, tool, decision, reason, caller, argument_hash, started_ms,
                 duration_ms, outcome FROM audit WHERE {conditions} ORDER BY id DESC LIMIT ?3"
            ))?;
            let rows =
                statement.query_map((filter.run_id.as_deref(), filter.tool, limit), from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

pub(crate) fn insert(connection: &Connection, row: &AuditRow) -> Result<AuditId, StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO audit (run_id, call, tool, decision, reason, caller, argument_hash,
            started_ms, duration_ms, outcome)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    statement.execute((
        row.run_id.as_str(),
        row.call,
        &row.tool,
        &row.decision,
        &row.reason,
        &row.caller,
        &row.argument_hash,
        row.started_ms,
        row.duration_ms,
        &row.outcome,
    ))?;
    Ok(AuditId { id: connection.last_insert_rowid(), started_ms: row.started_ms })
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    Ok(AuditRow {
        run_id: row.get::<_, String>(0)?.into(),
        call: row.get(1)?,
        tool: row.get(2)?,
        decision: row.get(3)?,
        reason: row.get(4)?,
        caller: row.get(5)?,
        argument_hash: row.get(6)?,
        started_ms: row.get(7)?,
        duration_ms: row.get(8)?,
        outcome: row.get(9)?,
    })
}
