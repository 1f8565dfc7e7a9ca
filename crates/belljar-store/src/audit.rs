//! One row per tool call: who, what, how it was decided, how it went.
//!
//! Rows are written behind the call: nobody waits for the disk, and no row is dropped.

use rusqlite::{Connection, Row};

use crate::{Store, StoreError};

/// What is kept of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    /// The run.
    pub run_id: String,
    /// The call's number in the run.
    pub call: u32,
    /// The tool.
    pub tool: String,
    /// What policy said.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// Who asked for the run.
    pub caller: String,
    /// A hash of the arguments.
    pub argument_hash: String,
    /// When the call began.
    pub started_ms: i64,
    /// How long it took.
    pub duration_ms: f64,
    /// How it went.
    pub outcome: String,
}

/// Which rows are meant; what is `None` does not matter.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Of this run.
    pub run_id: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
}

impl Store {
    /// Has a row written soon. Waits only if too many are waiting already; whether it was written
    /// is told by [`flush`](Self::flush).
    pub async fn audit(&self, row: AuditRow) -> Result<(), StoreError> {
        self.write_behind(move |connection| insert(connection, &row)).await
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
            let rows = statement.query_map((filter.run_id, filter.tool, limit), from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

fn insert(connection: &Connection, row: &AuditRow) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO audit (run_id, call, tool, decision, reason, caller, argument_hash,
            started_ms, duration_ms, outcome)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    statement.execute((
        &row.run_id,
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
    Ok(())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    Ok(AuditRow {
        run_id: row.get(0)?,
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
