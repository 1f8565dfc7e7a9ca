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
    /// Its id, chosen by the caller; a second run with it is refused.
    pub id: String,
    /// Who asked for it.
    pub caller: String,
    /// The language of its code.
    pub language: String,
    /// The guest code, unchanged.
    pub code: String,
    /// The rest of the request.
    pub request_json: String,
    /// Whether it can be resumed from its journal.
    pub durable: bool,
    /// Where its randomness comes from.
    pub seed: String,
    /// Which process runs it.
    pub owner: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
}

/// The right to write about a run, until somebody else claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run that was claimed.
    pub run_id: String,
    /// The run's fence when it was claimed.
    pub fence: i64,
}

/// A run without its large values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id, unique in the store.
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
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When its status was set last.
    pub updated_ms: i64,
    /// When it was finished.
    pub finished_ms: Option<i64>,
    /// How often in a row hosts took it up by themselves, died, and it got no further.
    pub vain: u32,
}

/// Why a run is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimReason {
    /// Somebody asked for it.
    Asked,
    /// A host found that nobody has it.
    Found,
}

/// A run that has neither ended nor been given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedRun {
    /// The run without its large values.
    pub summary: RunSummary,
    /// Whether a person has yet to decide something for it.
    pub waits: bool,
}

/// All that is kept of a run, its journal aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The run without its large values.
    pub summary: RunSummary,
    /// The guest code, unchanged.
    pub code: String,
    /// The rest of the request.
    pub request_json: String,
    /// Its result, when it is finished.
    pub result_json: Option<String>,
}

const SUMMARY: &str = "id, caller, language, durable, seed, status, owner, fence, claimed_ms, \
                       started_ms, updated_ms, finished_ms, vain";

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
        why: ClaimReason,
        now_ms: i64,
    ) -> Result<Lease, StoreError> {
        let owner = owner.to_owned();
        self.write(move |connection| {
            check_fence(connection, &seen)?;
            let vain = match why {
                ClaimReason::Asked => 0,
                ClaimReason::Found => claims_in_vain(connection, &seen.run_id)?,
            };
            connection
                .prepare_cached(
                    "UPDATE runs SET fence = fence + 1, owner = ?2, claimed_ms = ?3,
                     updated_ms = ?3, status = ?4, vain = ?5 WHERE id = ?1",
                )?
                .execute((&seen.run_id, owner, now_ms, BEGUN, vain))?;
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
                .prepare_cached(
                    "UPDATE runs SET status = ?2, updated_ms = ?3, vain = 0 WHERE id = ?1",
                )?
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

    /// The run with this id, with its code, request and result.
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
                code: spill::text(connection, row, 13)?.unwrap_or_default(),
                request_json: spill::text(connection, row, 15)?.unwrap_or_default(),
                result_json: spill::text(connection, row, 17)?,
            }))
        })
        .await
    }

    /// Those of these runs that there are.
    pub async fn runs_named(&self, ids: Vec<String>) -> Result<Vec<RunSummary>, StoreError> {
        self.read(move |connection| {
            let mut statement =
                connection.prepare_cached(&format!("SELECT {SUMMARY} FROM runs WHERE id = ?1"))?;
            let mut found = Vec::new();
            for id in &ids {
                found.extend(statement.query_row([id], summary).optional()?);
            }
            Ok(found)
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

    /// Runs that have neither ended nor been given up, oldest first.
    pub async fn unfinished_runs(
        &self,
        limit: u32,
        now_ms: i64,
    ) -> Result<Vec<UnfinishedRun>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {SUMMARY}, EXISTS (SELECT 1 FROM approvals WHERE run_id = runs.id
                    AND state = 'pending' AND expires_ms > ?2)
                 FROM runs WHERE finished_ms IS NULL AND status <> 'aborted'
                 ORDER BY started_ms, id LIMIT ?1"
            ))?;
            let rows = statement.query_map((limit, now_ms), |row| {
                Ok(UnfinishedRun { summary: summary(row)?, waits: row.get(13)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// How often in a row the run was claimed and got no further, the claim that is about to be made
/// included.
fn claims_in_vain(connection: &Connection, run_id: &str) -> Result<u32, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT CASE WHEN (SELECT at_ms FROM journal WHERE run_id = ?1 ORDER BY seq DESC LIMIT 1)
            >= claimed_ms THEN 0 ELSE vain + 1 END FROM runs WHERE id = ?1",
    )?;
    Ok(statement.query_row([run_id], |row| row.get(0))?)
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
        vain: row.get(12)?,
    })
}
