//! Runs, and the leases that say who may write about them.
//!
//! A run's fence grows with each claim. Every later write about the run carries the fence of its
//! lease and is refused, inside its own transaction, if the run has a higher fence by then.

use belljar_contract::{RecordedWork, RunId, RunStatus};
use rusqlite::{Connection, OptionalExtension as _, Row, types::Value};

use crate::{Store, StoreError, spill, spill::spill};

/// A run that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id, chosen by the caller; a second run with it is refused.
    pub id: RunId,
    /// The caller who asked for it.
    pub caller: String,
    /// Code in a language, or one tool call.
    pub work: RecordedWork,
    /// The guest code, unchanged.
    pub code: String,
    /// The rest of the request.
    pub request_json: String,
    /// Whether it can be resumed from its journal.
    pub durable: bool,
    /// The seed of its random numbers.
    pub seed: String,
    /// Which process runs it.
    pub owner: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
}

/// The right to write about a run, until another process claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run that was claimed.
    pub run_id: RunId,
    /// The run's fence when it was claimed.
    pub fence: i64,
}

/// A run without its large values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id, unique in the store.
    pub id: RunId,
    /// The caller who asked for it.
    pub caller: String,
    /// Code in a language, or one tool call.
    pub work: RecordedWork,
    /// Whether it can be resumed from its journal.
    pub durable: bool,
    /// The seed of its random numbers.
    pub seed: String,
    /// `running`, or the status that was set last.
    pub status: RunStatus,
    /// The process that claimed it last.
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
    /// How often in a row a host resumed it by itself and died before the run got further.
    pub fruitless_attempts: u32,
}

/// Why a run or a workflow is claimed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClaimReason {
    /// A person or a client asked for it.
    #[default]
    Asked,
    /// A host found that no process has it. Such claims are counted until the run or workflow gets
    /// further.
    Found,
}

/// A run that has neither finished nor been aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedRun {
    /// The run without its large values.
    pub summary: RunSummary,
    /// Whether it waits for a person to decide.
    pub has_pending_approval: bool,
}

/// Everything that is stored about a run except its journal.
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
    /// Records that a run begins, and claims it.
    pub async fn begin_run(&self, run: NewRun) -> Result<Lease, StoreError> {
        self.write(move |connection| {
            insert(connection, &run)?;
            Ok(Lease { run_id: run.id, fence: 1 })
        })
        .await
    }

    /// Takes a run over: all writes with an earlier lease are refused from now on.
    ///
    /// `seen` is the run and the fence it had when the caller read it. Of several callers that saw
    /// the same fence, in any process, one gets the run; the others get [`StoreError::Fenced`].
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
            let fruitless_attempts = match why {
                ClaimReason::Asked => 0,
                ClaimReason::Found => fruitless_claims(connection, &seen.run_id)?,
            };
            connection
                .prepare_cached(
                    "UPDATE runs SET fence = fence + 1, owner = ?2, claimed_ms = ?3,
                     updated_ms = ?3, status = ?4, vain = ?5 WHERE id = ?1",
                )?
                .execute((
                    seen.run_id.as_str(),
                    owner,
                    now_ms,
                    RunStatus::Running.as_str(),
                    fruitless_attempts,
                ))?;
            Ok(Lease { fence: seen.fence + 1, ..seen })
        })
        .await
    }

    /// Sets the status of a run.
    pub async fn set_run_status(
        &self,
        lease: &Lease,
        status: RunStatus,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let (lease, status) = (lease.clone(), status.as_str());
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            connection
                .prepare_cached(
                    "UPDATE runs SET status = ?2, updated_ms = ?3, vain = 0 WHERE id = ?1",
                )?
                .execute((lease.run_id.as_str(), status, now_ms))?;
            Ok(())
        })
        .await
    }

    /// Saves a run's result and its final status.
    pub async fn finish_run(
        &self,
        lease: &Lease,
        status: RunStatus,
        result_json: String,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let (lease, status) = (lease.clone(), status.as_str());
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            let result = spill(connection, result_json, now_ms)?;
            connection
                .prepare_cached(
                    "UPDATE runs SET status = ?2, updated_ms = ?3, finished_ms = ?3, result = ?4,
                     result_blob = ?5 WHERE id = ?1",
                )?
                .execute((lease.run_id.as_str(), status, now_ms, result.inline, result.blob))?;
            Ok(())
        })
        .await
    }

    /// The run with this id, with its code, request and result.
    pub async fn run(&self, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let id = id.clone();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {SUMMARY}, code, code_blob, request, request_blob, result, result_blob
                 FROM runs WHERE id = ?1"
            ))?;
            let mut rows = statement.query([id.as_str()])?;
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

    /// The runs with these ids; ids that no run has are left out.
    pub async fn runs_named(&self, ids: Vec<RunId>) -> Result<Vec<RunSummary>, StoreError> {
        self.read(move |connection| {
            let mut statement =
                connection.prepare_cached(&format!("SELECT {SUMMARY} FROM runs WHERE id = ?1"))?;
            let mut found = Vec::new();
            for id in &ids {
                found.extend(statement.query_row([id.as_str()], summary).optional()?);
            }
            Ok(found)
        })
        .await
    }

    /// The newest runs, newest first; those before `before`, a run's id, if it is given.
    pub async fn runs(
        &self,
        limit: u32,
        before: Option<&RunId>,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let before = before.map(|id| id.to_string());
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

    /// Runs that have neither finished nor been aborted, oldest first.
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
                Ok(UnfinishedRun { summary: summary(row)?, has_pending_approval: row.get(13)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// How often in a row the run was claimed and got no further, including the claim that is about to
/// be made.
fn fruitless_claims(connection: &Connection, run_id: &RunId) -> Result<u32, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT CASE WHEN (SELECT at_ms FROM journal WHERE run_id = ?1 ORDER BY seq DESC LIMIT 1)
            >= claimed_ms THEN 0 ELSE vain + 1 END FROM runs WHERE id = ?1",
    )?;
    Ok(statement.query_row([run_id.as_str()], |row| row.get(0))?)
}

/// Refuses a writer whose run another process has claimed. Must be called in the transaction that
/// writes.
pub(crate) fn check_fence(connection: &Connection, lease: &Lease) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("SELECT fence FROM runs WHERE id = ?1")?;
    let current = statement.query_row([lease.run_id.as_str()], |row| row.get(0)).optional()?;
    match current {
        None => Err(StoreError::UnknownRun(lease.run_id.clone())),
        Some(current) if current == lease.fence => Ok(()),
        Some(current) => {
            Err(StoreError::Fenced { run_id: lease.run_id.to_string(), held: lease.fence, current })
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
        run.id.as_str(),
        &run.caller,
        run.work.as_str(),
        run.durable,
        &run.seed,
        RunStatus::Running.as_str(),
        &run.owner,
        run.started_ms,
        code.inline,
        code.blob,
        request.inline,
        request.blob,
    ))?;
    if inserted == 0 { Err(StoreError::RunExists(run.id.clone())) } else { Ok(()) }
}

fn status(row: &Row<'_>, column: usize) -> rusqlite::Result<RunStatus> {
    let name: String = row.get(column)?;
    // A status of some other version: one row must not hide all others, and must not be resumed.
    Ok(RunStatus::from_name(&name).unwrap_or_else(|| {
        tracing::warn!(status = name, "a run has an unknown status; it counts as failed");
        RunStatus::Failed
    }))
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    Ok(RunSummary {
        id: row.get::<_, String>(0)?.into(),
        caller: row.get(1)?,
        work: RecordedWork::from_record(row.get_ref(2)?.as_str()?),
        durable: row.get(3)?,
        seed: row.get(4)?,
        status: status(row, 5)?,
        owner: row.get(6)?,
        fence: row.get(7)?,
        claimed_ms: row.get(8)?,
        started_ms: row.get(9)?,
        updated_ms: row.get(10)?,
        finished_ms: row.get(11)?,
        fruitless_attempts: row.get(12)?,
    })
}
