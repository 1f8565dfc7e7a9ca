//! Retention: removing records by age, and deleting single runs.
//!
//! Pruning works in batches: a reader finds candidates, and the writer removes a few at a time, after
//! checking each one again. Nothing that is still needed is a candidate: runs that can be resumed, approvals of such runs, values that any row refers to, workflows
//! that have not ended, answers in the cache that have not expired.

use std::{collections::BTreeSet, sync::Arc};

use belljar_contract::RunId;
use rusqlite::{Connection, types::Value};

use crate::{
    Lease, RecordKind, Store, StoreError,
    blobs::{UNREFERENCED_BY_ROWS, drop_unreferenced, unsigned},
    runs::check_fence,
};

/// Bytes of values that one batch drops: each is written over with zeros.
const BATCH_BYTES: u64 = 8 << 20;

/// How much was removed, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// Records of the kind that was pruned; for a deletion, records of every kind.
    pub records: u64,
    /// Bytes of large values that went with them.
    pub bytes: u64,
}

/// One batch of records to remove.
#[derive(Debug, Clone)]
pub struct Prune {
    /// The kind to remove. Workflows are removed one by one instead ([`Store::forget_workflow`]), and
    /// [`RecordKind::Other`] is never removed.
    pub kind: RecordKind,
    /// Only records that ended before this time.
    pub before_ms: i64,
    /// At most so many records in this batch.
    pub limit: u32,
    /// Runs that are kept whatever their age.
    pub needed_runs: Arc<BTreeSet<RunId>>,
}

/// The SQL that finds the records of a kind that may be removed (`?1` is the time).
struct PruneQuery {
    table: &'static str,
    id: &'static str,
    condition: String,
    order: &'static str,
    /// A bound on how far a batch looks, for tables without an index by time.
    window: &'static str,
}

impl Store {
    /// Removes one batch. An empty report means that nothing is left to remove.
    pub async fn prune(&self, prune: Prune) -> Result<PruneReport, StoreError> {
        let Some(query) = prune_query(prune.kind) else { return Ok(PruneReport::default()) };
        let found = {
            let (prune, sql) = (prune.clone(), query.find());
            self.read(move |connection| candidates(connection, &sql, &prune)).await?
        };
        if found.is_empty() {
            return Ok(PruneReport::default());
        }
        self.write(move |connection| remove_all(connection, &query, &prune, found)).await
    }

    /// How much [`prune`](Self::prune) would remove, batch after batch.
    pub async fn count_prunable(&self, prune: Prune) -> Result<PruneReport, StoreError> {
        let Some(query) = prune_query(prune.kind) else { return Ok(PruneReport::default()) };
        self.read(move |connection| {
            if prune.kind == RecordKind::Blobs {
                let sql = format!(
                    "SELECT count(*), coalesce(sum(size), 0) FROM blobs WHERE {}",
                    query.condition
                );
                let mut statement = connection.prepare(&sql)?;
                let counted = statement.query_row([prune.before_ms], |row| {
                    Ok(PruneReport { records: unsigned(row.get(0)?), bytes: unsigned(row.get(1)?) })
                });
                return Ok(counted?);
            }
            let everything = Prune { limit: u32::MAX, ..prune };
            let found = candidates(connection, &query.find_all(), &everything)?;
            Ok(PruneReport { records: found.len() as u64, bytes: 0 })
        })
        .await
    }

    /// Deletes a run with its journal, its approvals, its events, and the values that no other row
    /// refers to. Its audit rows stay; they have no values in them.
    ///
    /// `seen` is the run as the caller read it. A run that was claimed since is not deleted.
    pub async fn delete_run(&self, seen: Lease) -> Result<PruneReport, StoreError> {
        self.write(move |connection| {
            check_fence(connection, &seen)?;
            remove_run(connection, &seen.run_id, RunExtent::Everything)
        })
        .await
    }

    /// The keys of the open effects of all workflows.
    pub async fn open_workflow_intents(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT key FROM flow_intents WHERE closed_seq IS NULL")?;
            let keys = statement.query_map([], |row| row.get(0))?;
            Ok(keys.collect::<Result<_, _>>()?)
        })
        .await
    }
}

impl PruneQuery {
    fn find(&self) -> String {
        let Self { table, id, condition, order, window } = self;
        format!("SELECT {id} FROM {table} WHERE {condition}{window} ORDER BY {order} LIMIT ?2")
    }

    fn find_all(&self) -> String {
        Self { condition: self.condition.clone(), window: "", ..*self }.find()
    }

    fn check(&self) -> String {
        let Self { table, id, condition, .. } = self;
        format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {id} = ?2 AND {condition})")
    }
}

/// The query for the records of a kind; `None` for kinds that are not pruned by age.
fn prune_query(kind: RecordKind) -> Option<PruneQuery> {
    let of = |table, id, condition: &str, order| PruneQuery {
        table,
        id,
        condition: condition.to_owned(),
        order,
        window: "",
    };
    let run_end = "coalesce(finished_ms, updated_ms)";
    Some(match kind {
        // An aborted run can be resumed until it is pruned like one that has ended.
        RecordKind::Runs => {
            let over = "(finished_ms IS NOT NULL OR status = 'aborted')";
            of("runs", "id", &format!("{over} AND {run_end} < ?1"), run_end)
        }
        RecordKind::Journals => {
            let condition = format!(
                "(finished_ms IS NOT NULL OR status = 'aborted') AND {run_end} < ?1
                 AND finished_ms IS NOT NULL
                 AND EXISTS (SELECT 1 FROM journal WHERE run_id = runs.id)"
            );
            of("runs", "id", &condition, run_end)
        }
        RecordKind::Events => PruneQuery {
            window: " AND seq < (SELECT min(seq) FROM events) + 1000",
            ..of("events", "seq", "at_ms < ?1", "seq")
        },
        RecordKind::Audit => PruneQuery {
            window: " AND id < (SELECT min(id) FROM audit) + 1000",
            ..of("audit", "id", "started_ms < ?1", "id")
        },
        // A run that can be resumed reads its decisions again.
        RecordKind::Approvals => {
            let end = "coalesce(decided_ms, expires_ms)";
            let condition = format!(
                "{end} < ?1 AND NOT EXISTS (SELECT 1 FROM runs
                 WHERE runs.id = approvals.run_id AND runs.finished_ms IS NULL)"
            );
            of("approvals", "id", &condition, end)
        }
        // A handle of a run that is kept, or that was given out not long ago, is a reference, too.
        RecordKind::Blobs => {
            let condition = format!(
                "last_used_ms < ?1 AND {UNREFERENCED_BY_ROWS}
                 AND NOT EXISTS (SELECT 1 FROM run_blobs WHERE blob_id = blobs.id
                    AND (run_blobs.at_ms >= ?1
                        OR EXISTS (SELECT 1 FROM runs WHERE runs.id = run_blobs.run_id)))"
            );
            of("blobs", "id", &condition, "last_used_ms, created_ms, rowid")
        }
        RecordKind::Sessions => of("sessions", "id", "ended_ms < ?1", "ended_ms"),
        RecordKind::Cache => of("cache", "key", "expires_ms < ?1", "expires_ms"),
        RecordKind::Workflows | RecordKind::Other => return None,
    })
}

fn candidates(connection: &Connection, sql: &str, prune: &Prune) -> Result<Vec<Value>, StoreError> {
    let needed = u32::try_from(prune.needed_runs.len()).unwrap_or(u32::MAX);
    let mut statement = connection.prepare(sql)?;
    let found = statement
        .query_map((prune.before_ms, prune.limit.saturating_add(needed)), |row| row.get(0))?
        .collect::<Result<Vec<Value>, _>>()?;
    let stays = |id: &Value| match id {
        Value::Text(id) => prune.needed_runs.contains(id.as_str()),
        Value::Null | Value::Integer(_) | Value::Real(_) | Value::Blob(_) => false,
    };
    let limit = prune.limit as usize;
    Ok(found.into_iter().filter(|id| !stays(id)).take(limit).collect())
}

fn remove_all(
    connection: &Connection,
    query: &PruneQuery,
    prune: &Prune,
    found: Vec<Value>,
) -> Result<PruneReport, StoreError> {
    let mut check = connection.prepare_cached(&query.check())?;
    let mut removed = PruneReport::default();
    for id in found {
        if removed.bytes >= BATCH_BYTES {
            break;
        }
        if !check.query_row((prune.before_ms, &id), |row| row.get(0))? {
            continue;
        }
        let went = remove(connection, query, prune.kind, &id)?;
        removed.records += 1;
        removed.bytes += went.bytes;
    }
    Ok(removed)
}

fn remove(
    connection: &Connection,
    query: &PruneQuery,
    kind: RecordKind,
    id: &Value,
) -> Result<PruneReport, StoreError> {
    let mut blobs = BTreeSet::new();
    let mut extent = None;
    match (kind, id) {
        (RecordKind::Runs, Value::Text(_)) => extent = Some(RunExtent::Run),
        (RecordKind::Journals, Value::Text(_)) => extent = Some(RunExtent::Journal),
        (RecordKind::Approvals, _) => collect(connection, APPROVAL_BLOBS, id, &mut blobs)?,
        (RecordKind::Blobs, Value::Text(blob)) => {
            connection.prepare_cached("DELETE FROM run_blobs WHERE blob_id = ?1")?.execute([id])?;
            blobs.insert(blob.clone());
            return drop_unreferenced(connection, &blobs);
        }
        _ => {}
    }
    if let (Some(extent), Value::Text(id)) = (extent, id) {
        return remove_run(connection, id, extent);
    }
    let PruneQuery { table, id: column, .. } = query;
    connection
        .prepare_cached(&format!("DELETE FROM {table} WHERE {column} = ?1"))?
        .execute([id])?;
    drop_unreferenced(connection, &blobs)
}

/// How much of a run is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunExtent {
    /// Its journal, and nothing else.
    Journal,
    /// The journal and the run; approvals and events are pruned by their own age.
    Run,
    /// The run, its journal, its approvals and its events.
    Everything,
}

const JOURNAL_BLOBS: &str =
    "SELECT body_blob FROM journal WHERE run_id = ?1 AND body_blob IS NOT NULL";
const RUN_BLOBS: &str = "SELECT code_blob FROM runs WHERE id = ?1 AND code_blob IS NOT NULL
     UNION SELECT request_blob FROM runs WHERE id = ?1 AND request_blob IS NOT NULL
     UNION SELECT result_blob FROM runs WHERE id = ?1 AND result_blob IS NOT NULL
     UNION SELECT blob_id FROM run_blobs WHERE run_id = ?1";
const APPROVAL_BLOBS: &str =
    "SELECT arguments_blob FROM approvals WHERE id = ?1 AND arguments_blob IS NOT NULL";
const APPROVAL_BLOBS_OF_RUN: &str =
    "SELECT arguments_blob FROM approvals WHERE run_id = ?1 AND arguments_blob IS NOT NULL";

/// Removes a run or a part of it, and the values that no other row refers to.
pub(crate) fn remove_run(
    connection: &Connection,
    id: &str,
    extent: RunExtent,
) -> Result<PruneReport, StoreError> {
    let value = Value::from(id.to_owned());
    let mut blobs = BTreeSet::new();
    let mut statements = vec!["DELETE FROM journal WHERE run_id = ?1"];
    collect(connection, JOURNAL_BLOBS, &value, &mut blobs)?;
    if extent != RunExtent::Journal {
        collect(connection, RUN_BLOBS, &value, &mut blobs)?;
        statements.extend(["DELETE FROM run_blobs WHERE run_id = ?1"]);
        statements.extend(["DELETE FROM runs WHERE id = ?1"]);
    }
    if extent == RunExtent::Run {
        // Approvals that nothing waits for are expired as of the end of the run.
        statements.insert(
            0,
            "UPDATE approvals SET state = 'expired', decided_ms = min(expires_ms - 1,
                (SELECT coalesce(finished_ms, updated_ms) FROM runs WHERE id = ?1))
             WHERE run_id = ?1 AND state = 'pending'",
        );
    }
    if extent == RunExtent::Everything {
        collect(connection, APPROVAL_BLOBS_OF_RUN, &value, &mut blobs)?;
        statements.extend(["DELETE FROM approvals WHERE run_id = ?1"]);
        statements.extend(["DELETE FROM events WHERE run_id = ?1"]);
    }
    let mut records = 0;
    for statement in statements {
        records += connection.prepare_cached(statement)?.execute([id])? as u64;
    }
    let dropped = drop_unreferenced(connection, &blobs)?;
    Ok(PruneReport { records: records + dropped.records, bytes: dropped.bytes })
}

/// Adds the ids that a query about one record gives.
pub(crate) fn collect(
    connection: &Connection,
    sql: &str,
    id: &Value,
    ids: &mut BTreeSet<String>,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    for found in statement.query_map([id], |row| row.get(0))? {
        ids.insert(found?);
    }
    Ok(())
}
