//! Runs and who may write about them.
//!
//! A run's fence grows with each claim. Every later write about the run brings the fence it was
//! claimed with and is refused, inside its own transaction, if the run has a higher one by then.

use rusqlite::{Connection, OptionalExtension as _, Row, types::Value};

use crate::{
    Store, StoreError,
    spill::{self, spill},
};

/// The status of a run that has begun.
const BEGUN: &str = "running";

/// A run that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id.
    pub id: String,
    /// Who asked for it.
    pub caller: String,
    /// The language of its code.
    pub language: String,
    /// Its code.
    pub code: String,
    /// The rest of the request.
    pub request_json: String,
    /// Whether it can be resumed from its journal.
    pub durable: bool,
    /// Where its randomness comes from.
    pub seed: String,
    /// Which process runs it.
    pub owner: String,
    /// When it began.
    pub started_ms: i64,
}

/// The right to write about a run, until somebody else claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run_id: String,
    /// The run's fence when it was claimed.
    pub fence: i64,
}

/// A run without its large values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// Who asked for it.
    pub caller: String,
    /// The language of its code.
    pub language: String,
    /// Whether it can be resumed from its journal.
    pub durable: bool,
    /// Where its randomness comes from.
    pub seed: String,
    /// Where it is: `running`, or what was set since.
    pub status: String,
    /// Who claimed it last.
    pub owner: String,
    /// How often it was claimed.
    pub fence: i64,
    /// When it was claimed last.
    pub claimed_ms: i64,
    /// When it began.
    pub started_ms: i64,
    /// When its status was set last.
    pub updated_ms: i64,
    /// When it was finished.
    pub finished_ms: Option<i64>,
}

/// All that is kept of a run, its journal aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// What is small.
    pub summary: RunSummary,
    /// Its code.
    pub code: String,
    /// The rest of the request.
    pub request_json: String,
    /// Its result, when it is finished.
    pub result_json: Option<String>,
}

const SUMMARY: &str = "id, caller, language, durable, seed, status, owner, fence, claimed_ms, \
                       started_ms, updated_ms, finished_ms";

impl Store {
    /// Notes that a run begins, and claims it.
    pub async fn begin_run(&self, run: NewRun) -> Result<Lease, StoreError> {
        self.write(move |connection| {
            insert(connection, &run)?;
            Ok(Lease { run_id: run.id, fence: 1 })
        })
        .await
    }

    /// Takes a run over from whoever had it: all their writes are refused from now on.
    ///
    /// `seen` is the run and the fence it had when it was looked at. Of several that saw the same
    /// and claim it, in whatever processes, one does; the others are told that they are fenced.
    pub async fn claim_run(
        &self,
        seen: Lease,
        owner: &str,
        now_ms: i64,
    ) -> Result<Lease, StoreError> {
        let owner = owner.to_owned();
        self.write(move |connection| {
            check_fence(connection, &seen)?;
            connection
                .prepare_cached(
                    "UPDATE runs SET fence = fence + 1, owner = ?2, claimed_ms = ?3,
                     updated_ms = ?3, status = ?4 WHERE id = ?1",
                )?
                .execute((&seen.run_id, owner, now_ms, BEGUN))?;
            Ok(Lease { fence: seen.fence + 1, ..seen })
        })
        .await
    }

    /// Sets where a run is.
    pub async fn set_run_status(
        &self,
        lease: &Lease,
        status: &str,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let (lease, status) = (lease.clone(), status.to_owned());
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            connection
                .prepare_cached("UPDATE runs SET status = ?2, updated_ms = ?3 WHERE id = ?1")?
                .execute((&lease.run_id, status, now_ms))?;
            Ok(())
        })
        .await
    }

    /// Keeps a run's result and its last status.
    pub async fn finish_run(
        &self,
        lease: &Lease,
        status: &str,
        result_json: String,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let (lease, status) = (lease.clone(), status.to_owned());
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            let result = spill(connection, result_json, now_ms)?;
            connection
                .prepare_cached(
                    "UPDATE runs SET status = ?2, updated_ms = ?3, finished_ms = ?3, result = ?4,
                     result_blob = ?5 WHERE id = ?1",
                )?
                .execute((&lease.run_id, status, now_ms, result.inline, result.blob))?;
            Ok(())
        })
        .await
    }

    /// A run.
    pub async fn run(&self, id: &str) -> Result<Option<RunRecord>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {SUMMARY}, code, code_blob, request, request_blob, result, result_blob
                 FROM runs WHERE id = ?1"
            ))?;
            let mut rows = statement.query([&id])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            Ok(Some(RunRecord {
                summary: summary(row)?,
                code: spill::text(connection, row, 12)?.unwrap_or_default(),
                request_json: spill::text(connection, row, 14)?.unwrap_or_default(),
                result_json: spill::text(connection, row, 16)?,
            }))
        })
        .await
    }

    /// The newest runs, newest first; those before `before`, a run's id, if it is given.
    pub async fn runs(
        &self,
        limit: u32,
        before: Option<&str>,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let before = before.map(str::to_owned);
        self.read(move |connection| {
            let older = "WHERE (started_ms, id) < (SELECT started_ms, id FROM runs WHERE id = ?2)";
            let (older, parameters) = match before {
                Some(before) => (older, vec![Value::from(limit), Value::from(before)]),
                None => ("", vec![Value::from(limit)]),
            };
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {SUMMARY} FROM runs {older} ORDER BY started_ms DESC, id DESC LIMIT ?1"
            ))?;
            let rows = statement.query_map(rusqlite::params_from_iter(parameters), summary)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Refuses a writer whose run was claimed by somebody else. To be asked in the transaction that
/// writes.
pub(crate) fn check_fence(connection: &Connection, lease: &Lease) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("SELECT fence FROM runs WHERE id = ?1")?;
    let current = statement.query_row([&lease.run_id], |row| row.get(0)).optional()?;
    match current {
        None => Err(StoreError::UnknownRun(lease.run_id.clone())),
        Some(current) if current == lease.fence => Ok(()),
        Some(current) => {
            Err(StoreError::Fenced { run_id: lease.run_id.clone(), held: lease.fence, current })
        }
    }
}

fn insert(connection: &Connection, run: &NewRun) -> Result<(), StoreError> {
    let code = spill(connection, &run.code, run.started_ms)?;
    let request = spill(connection, &run.request_json, run.started_ms)?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO runs (id, caller, language, durable, seed, status, owner, fence, claimed_ms,
            started_ms, updated_ms, code, code_blob, request, request_blob)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?8, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT (id) DO NOTHING",
    )?;
    let inserted = statement.execute((
        &run.id,
        &run.caller,
        &run.language,
        run.durable,
        &run.seed,
        BEGUN,
        &run.owner,
        run.started_ms,
        code.inline,
        code.blob,
        request.inline,
        request.blob,
    ))?;
    if inserted == 0 { Err(StoreError::RunExists(run.id.clone())) } else { Ok(()) }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    Ok(RunSummary {
        id: row.get(0)?,
        caller: row.get(1)?,
        language: row.get(2)?,
        durable: row.get(3)?,
        seed: row.get(4)?,
        status: row.get(5)?,
        owner: row.get(6)?,
        fence: row.get(7)?,
        claimed_ms: row.get(8)?,
        started_ms: row.get(9)?,
        updated_ms: row.get(10)?,
        finished_ms: row.get(11)?,
    })
}
