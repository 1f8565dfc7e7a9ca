//! Workflows, and the leases that say who may write about them.
//!
//! A workflow is claimed for a time. Its fence grows with each claim; a writer with an older fence is
//! refused inside the transaction that would have written. The modules beside this file hold what the
//! owner commits, the commands that others send, and how a workflow is read, copied and removed.

mod commands;
mod commit;
mod copy;
mod load;
mod progress;

use belljar_contract::WorkflowStatus;
use rusqlite::{Connection, OptionalExtension as _, Row, types::Value};
use thiserror::Error;

use crate::{ClaimReason, Store, StoreError, spill::spill};

pub use commands::{CommandRow, QueuedCommand, SentCommand};
pub use commit::{
    IntentChange, WorkflowBatch, WorkflowEventRow, WorkflowInputRow, WorkflowStatusUpdate,
};
pub use load::{CheckpointRow, IntentRow, LoadedWorkflow};

const COLUMNS: &str = "id, name, caller, status, due_ms, owner, fence, lease_until_ms, parent, \
                       parent_checkpoint, created_ms, updated_ms, finished_ms, vain";

/// Why an operation does not fit a workflow as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkflowRecordError {
    /// There is no such workflow.
    #[error("there is no workflow {0}")]
    Unknown(String),
    /// There is such a workflow already.
    #[error("workflow {0} exists already")]
    Exists(String),
    /// A process holds it at the moment.
    #[error("workflow {workflow_id} belongs to {owner} until {until_ms}")]
    Held {
        /// The workflow that was asked for.
        workflow_id: String,
        /// The process that holds the lease.
        owner: String,
        /// When the lease lapses, unless its owner renews it.
        until_ms: i64,
    },
    /// The number would leave a gap.
    #[error("workflow {workflow_id}: {what} {given} cannot follow {last}")]
    OutOfOrder {
        /// The workflow that was written to.
        workflow_id: String,
        /// The kind of row: `input` or `event`.
        what: &'static str,
        /// The last number there is.
        last: u64,
        /// The number that was given.
        given: u64,
    },
    /// A different row exists under this number or id.
    #[error("workflow {workflow_id} already has a different {what} {which}")]
    Differs {
        /// The workflow that was written to.
        workflow_id: String,
        /// The kind of row: `input`, `event` or `command`.
        what: &'static str,
        /// Its number or id.
        which: String,
    },
    /// It has no such checkpoint, or the inputs before it were pruned.
    #[error("workflow {workflow_id} has no checkpoint {checkpoint}")]
    NoCheckpoint {
        /// The workflow that was asked for.
        workflow_id: String,
        /// The number that was asked for.
        checkpoint: u64,
    },
}

/// A workflow that is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorkflowRow {
    /// Its id, chosen by the caller; a second workflow with it is refused.
    pub id: String,
    /// The name people know it by.
    pub name: String,
    /// The caller who asked for it.
    pub caller: String,
    /// Its state before the first input.
    pub snapshot: Vec<u8>,
    /// When it is created, in milliseconds since 1970.
    pub created_ms: i64,
}

/// The right to write about a workflow, until another process claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowLease {
    /// The workflow that was claimed.
    pub workflow_id: String,
    /// Its fence when it was claimed.
    pub fence: i64,
}

/// A claim to a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The process that claims the workflow.
    pub owner: String,
    /// The current time, in milliseconds since 1970.
    pub now_ms: i64,
    /// When the lease lapses unless it is renewed.
    pub until_ms: i64,
    /// Whether to claim it even while another process holds it.
    pub take_over: bool,
    /// Whether a person asked for it: other claims are counted.
    pub why: ClaimReason,
}

/// How a workflow is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveBack {
    /// It has no owner: any process may claim it.
    Free,
    /// Nothing is to be done now. The process stays its owner without holding a claim, and claims it
    /// again when something is due.
    Resting,
    /// Its owner could not continue it, or has ended. Any process may claim it; the owner stays on
    /// record.
    Failed,
}

/// A workflow without its inputs and events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRow {
    /// Its id, unique in the store.
    pub id: String,
    /// The name people know it by.
    pub name: String,
    /// The caller who asked for it.
    pub caller: String,
    /// Its status, as its driver last committed it; `created` until then.
    pub status: WorkflowStatus,
    /// When a driver has to claim it again, if none holds it.
    pub due_ms: i64,
    /// The process that holds it, held it last, or claims it again when it is due; empty if none.
    pub owner: String,
    /// How often it was claimed.
    pub fence: i64,
    /// When the lease of its owner lapses.
    pub lease_until_ms: i64,
    /// The workflow it was forked or copied from, and the checkpoint.
    pub parent: Option<(String, u64)>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When a batch was last committed.
    pub updated_ms: i64,
    /// When it ended; `None` while it has not.
    pub finished_ms: Option<i64>,
    /// How often in a row a host resumed it by itself and it got no further.
    pub fruitless_attempts: u32,
}

/// Selects workflows; a field that is `None` matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowFilter {
    /// Only those in this status.
    pub status: Option<WorkflowStatus>,
    /// Only those with this name.
    pub name: Option<String>,
    /// Only those of this caller.
    pub caller: Option<String>,
    /// Forked or copied from this one.
    pub parent: Option<String>,
}

/// Which workflows are not resumed automatically, though they are due and no process holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeExclusions {
    /// Workflows of this caller that have no owner: a person stopped them.
    pub stopped: Option<String>,
    /// Workflows with at least so many fruitless attempts.
    pub fruitless_attempts: u32,
}

impl Default for ResumeExclusions {
    /// Excludes no workflow at all.
    fn default() -> Self {
        Self { stopped: None, fruitless_attempts: u32::MAX }
    }
}

impl Store {
    /// Creates a workflow without an owner.
    pub async fn create_workflow(&self, workflow: NewWorkflowRow) -> Result<(), StoreError> {
        self.write(move |connection| {
            insert(connection, &workflow, None)?;
            let snapshot = spill(connection, &workflow.snapshot, workflow.created_ms)?;
            connection
                .prepare_cached(
                    "INSERT INTO flow_snapshots (flow_id, seq, at_ms, body, body_blob)
                     VALUES (?1, 0, ?2, ?3, ?4)",
                )?
                .execute((&workflow.id, workflow.created_ms, snapshot.inline, snapshot.blob))?;
            Ok(())
        })
        .await
    }

    /// Claims a workflow. Of several callers, in any process, one gets it; the others get
    /// [`WorkflowRecordError::Held`], unless they take it over.
    pub async fn claim_workflow(
        &self,
        workflow_id: &str,
        request: LeaseRequest,
    ) -> Result<WorkflowLease, StoreError> {
        let workflow_id = workflow_id.to_owned();
        self.write(move |connection| {
            let row = require(connection, &workflow_id)?;
            if row.lease_until_ms > request.now_ms && !request.take_over {
                let (owner, until_ms) = (row.owner, row.lease_until_ms);
                return Err(WorkflowRecordError::Held { workflow_id, owner, until_ms }.into());
            }
            let fruitless_attempts = match request.why {
                ClaimReason::Asked => 0,
                ClaimReason::Found => row.fruitless_attempts.saturating_add(1),
            };
            connection
                .prepare_cached(
                    "UPDATE flows SET fence = fence + 1, owner = ?2, lease_until_ms = ?3,
                     vain = ?4 WHERE id = ?1",
                )?
                .execute((&workflow_id, &request.owner, request.until_ms, fruitless_attempts))?;
            Ok(WorkflowLease { workflow_id, fence: row.fence + 1 })
        })
        .await
    }

    /// Extends a lease to a later time.
    pub async fn renew_workflow(
        &self,
        lease: &WorkflowLease,
        until_ms: i64,
    ) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            connection
                .prepare_cached(
                    "UPDATE flows SET lease_until_ms = max(lease_until_ms, ?2) WHERE id = ?1",
                )?
                .execute((&lease.workflow_id, until_ms))?;
            Ok(())
        })
        .await
    }

    /// Ends a lease: its holder writes no more, and any process may claim the workflow.
    pub async fn release_workflow(
        &self,
        lease: &WorkflowLease,
        how: GiveBack,
    ) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            connection
                .prepare_cached(
                    "UPDATE flows SET fence = fence + 1, lease_until_ms = 0,
                     owner = CASE WHEN ?2 THEN owner ELSE '' END,
                     vain = CASE WHEN ?3 THEN vain ELSE 0 END WHERE id = ?1",
                )?
                .execute((&lease.workflow_id, how != GiveBack::Free, how == GiveBack::Failed))?;
            Ok(())
        })
        .await
    }

    /// The workflow with this id.
    pub async fn workflow(&self, id: &str) -> Result<Option<WorkflowRow>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| find(connection, &id)).await
    }

    /// The newest workflows, newest first; those before `before`, an id, if it is given.
    pub async fn workflows(
        &self,
        filter: WorkflowFilter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        let before = before.map(str::to_owned);
        self.read(move |connection| {
            let mut conditions = String::from("true");
            let mut values = vec![Value::from(limit)];
            let asked = [
                ("status = ?", filter.status.map(|status| status.to_string())),
                ("name = ?", filter.name),
                ("caller = ?", filter.caller),
                ("parent = ?", filter.parent),
                ("(created_ms, id) < (SELECT created_ms, id FROM flows WHERE id = ?)", before),
            ];
            for (condition, value) in asked {
                if let Some(value) = value {
                    values.push(Value::from(value));
                    let numbered = condition.replace('?', &format!("?{}", values.len()));
                    conditions.push_str(" AND ");
                    conditions.push_str(&numbered);
                }
            }
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM flows WHERE {conditions}
                 ORDER BY created_ms DESC, id DESC LIMIT ?1"
            ))?;
            let rows = statement.query_map(rusqlite::params_from_iter(values), from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Workflows that a driver should claim: their lease has lapsed, and they are due or have queued
    /// commands. The longest due come first. Excluded workflows do not count towards the limit.
    pub async fn abandoned_workflows(
        &self,
        now_ms: i64,
        except: ResumeExclusions,
        limit: u32,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM flows
                 WHERE lease_until_ms <= ?1 AND NOT (owner = '' AND caller IS ?3)
                 AND (vain < ?4 OR finished_ms IS NOT NULL) AND id IN (
                    SELECT id FROM flows WHERE finished_ms IS NULL AND due_ms <= ?1
                    UNION SELECT flow_id FROM flow_commands WHERE taken_seq IS NULL)
                 ORDER BY due_ms, created_ms, id LIMIT ?2"
            ))?;
            let values = (now_ms, limit, except.stopped, except.fruitless_attempts);
            let rows = statement.query_map(values, from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Refuses a writer whose workflow another process has claimed. Must be called in the transaction
/// that writes.
fn check_fence(connection: &Connection, lease: &WorkflowLease) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("SELECT fence FROM flows WHERE id = ?1")?;
    let current = statement.query_row([&lease.workflow_id], |row| row.get(0)).optional()?;
    match current {
        None => Err(WorkflowRecordError::Unknown(lease.workflow_id.clone()).into()),
        Some(current) if current == lease.fence => Ok(()),
        Some(current) => Err(StoreError::Fenced {
            run_id: lease.workflow_id.clone(),
            held: lease.fence,
            current,
        }),
    }
}

/// The workflow with this id, or an error if there is none.
fn require(connection: &Connection, id: &str) -> Result<WorkflowRow, StoreError> {
    find(connection, id)?.ok_or_else(|| WorkflowRecordError::Unknown(id.to_owned()).into())
}

fn find(connection: &Connection, id: &str) -> Result<Option<WorkflowRow>, StoreError> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM flows WHERE id = ?1"))?;
    Ok(statement.query_row([id], from_row).optional()?)
}

/// Inserts the row of a new workflow, with its parent.
fn insert(
    connection: &Connection,
    workflow: &NewWorkflowRow,
    parent: Option<(&str, i64)>,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO flows (id, name, caller, status, due_ms, owner, fence, lease_until_ms, parent,
            parent_checkpoint, created_ms, updated_ms)
         VALUES (?1, ?2, ?3, ?4, 0, '', 0, 0, ?5, ?6, ?7, ?7)
         ON CONFLICT (id) DO NOTHING",
    )?;
    let (parent, checkpoint) = parent.unzip();
    let inserted = statement.execute((
        &workflow.id,
        &workflow.name,
        &workflow.caller,
        WorkflowStatus::Created.as_str(),
        parent,
        checkpoint,
        workflow.created_ms,
    ))?;
    if inserted == 0 {
        Err(WorkflowRecordError::Exists(workflow.id.clone()).into())
    } else {
        Ok(())
    }
}

fn status(row: &Row<'_>, column: usize) -> rusqlite::Result<WorkflowStatus> {
    let name: String = row.get(column)?;
    // A status of some other version: one row must not hide all others.
    Ok(WorkflowStatus::from_name(&name).unwrap_or_else(|| {
        tracing::warn!(status = name, "a workflow has an unknown status; it counts as failed");
        WorkflowStatus::Failed
    }))
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<WorkflowRow> {
    let (parent, checkpoint): (Option<String>, Option<i64>) = (row.get(8)?, row.get(9)?);
    Ok(WorkflowRow {
        id: row.get(0)?,
        name: row.get(1)?,
        caller: row.get(2)?,
        status: status(row, 3)?,
        due_ms: row.get(4)?,
        owner: row.get(5)?,
        fence: row.get(6)?,
        lease_until_ms: row.get(7)?,
        parent: parent.zip(checkpoint.map(number)),
        created_ms: row.get(10)?,
        updated_ms: row.get(11)?,
        finished_ms: row.get(12)?,
        fruitless_attempts: row.get(13)?,
    })
}

/// Numbers are never negative in a file of ours.
fn number(seq: i64) -> u64 {
    u64::try_from(seq).unwrap_or_default()
}

/// As SQLite keeps it.
fn signed(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
