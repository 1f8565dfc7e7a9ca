//! Workflows and who may write about them.
//!
//! A workflow is claimed for a time. Its fence grows with each claim; whoever holds an older one
//! changes nothing and is told so, inside the transaction that would have written. The rest of what
//! is kept of a workflow is beside this file: what its owner commits, what others send it, how it is
//! read, copied and dropped.

mod commands;
mod commit;
mod copy;
mod load;
mod progress;

use rusqlite::{Connection, OptionalExtension as _, Row, types::Value};
use thiserror::Error;

use crate::{Store, StoreError, spill::spill};

pub use commands::{CommandRow, FlowCommand, SentCommand};
pub use commit::{FlowBatch, FlowEvent, FlowInput, FlowState, IntentChange};
pub use load::{CheckpointRow, IntentRow, LoadedFlow};

/// The status of a workflow that was made and not begun.
const CREATED: &str = "created";
const COLUMNS: &str = "id, name, caller, status, due_ms, owner, fence, lease_until_ms, parent, \
                       parent_checkpoint, created_ms, updated_ms, finished_ms, vain";

/// Why something cannot be done with a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FlowError {
    /// There is no such workflow.
    #[error("there is no workflow {0}")]
    Unknown(String),
    /// There is such a workflow already.
    #[error("workflow {0} exists already")]
    Exists(String),
    /// Somebody has it at the moment.
    #[error("workflow {flow_id} belongs to {owner} until {until_ms}")]
    Held {
        /// The workflow that was asked for.
        flow_id: String,
        /// The process that holds the lease.
        owner: String,
        /// Until when, unless they renew it.
        until_ms: i64,
    },
    /// A number was left out.
    #[error("workflow {flow_id}: {what} {given} cannot follow {last}")]
    OutOfOrder {
        /// The workflow that was written to.
        flow_id: String,
        /// The kind of row: `input` or `event`.
        what: &'static str,
        /// The last number there is.
        last: u64,
        /// The number that was given.
        given: u64,
    },
    /// Something else was written under this number or id.
    #[error("workflow {flow_id} has another {what} {which}")]
    Differs {
        /// The workflow that was written to.
        flow_id: String,
        /// The kind of row: `input`, `event` or `command`.
        what: &'static str,
        /// Its number or id.
        which: String,
    },
    /// It has no such checkpoint, or not any more.
    #[error("workflow {flow_id} has no checkpoint {checkpoint}")]
    NoCheckpoint {
        /// The workflow that was asked for.
        flow_id: String,
        /// The number that was asked for.
        checkpoint: u64,
    },
}

/// A workflow that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFlow {
    /// Its id, chosen by the caller; a second workflow with it is refused.
    pub id: String,
    /// What a person calls it.
    pub name: String,
    /// Who asked for it.
    pub caller: String,
    /// Its state before the first input.
    pub snapshot: Vec<u8>,
    /// When it is made.
    pub created_ms: i64,
}

/// The right to write about a workflow, until somebody else claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowLease {
    /// The workflow that was claimed.
    pub flow_id: String,
    /// Its fence when it was claimed.
    pub fence: i64,
}

/// Who wants a workflow, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The process that claims the workflow.
    pub owner: String,
    /// The time it is.
    pub now_ms: i64,
    /// When the lease lapses unless it is renewed.
    pub until_ms: i64,
    /// Also while somebody else has it.
    pub take_over: bool,
    /// Whether a person asked for it: claims that nobody asked for are counted.
    pub why: Why,
}

/// Why a workflow is claimed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Why {
    /// Somebody asked for it.
    #[default]
    Asked,
    /// Nobody did: a host takes up what was left. That is counted until it gets further.
    Found,
}

/// How a workflow is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveBack {
    /// It has no owner: any process may claim it.
    Free,
    /// Nothing is to be done, and who had it looks after it when something is: it stays its owner,
    /// without a claim.
    Resting,
    /// Who had it could not go on with it, or is gone. Anybody may claim it; it was theirs last.
    Failed,
}

/// A workflow without what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRow {
    /// Its id, unique in the store.
    pub id: String,
    /// What a person calls it.
    pub name: String,
    /// Who asked for it.
    pub caller: String,
    /// Its status, as its driver last committed it; `created` until then.
    pub status: String,
    /// When somebody has to look after it again, if nobody does.
    pub due_ms: i64,
    /// Who has it, had it last or looks after it while it rests; empty when it is nobody's.
    pub owner: String,
    /// How often it was claimed.
    pub fence: i64,
    /// Until when its owner has it.
    pub lease_until_ms: i64,
    /// What it was forked or copied from, and at which checkpoint.
    pub parent: Option<(String, u64)>,
    /// When it was made.
    pub created_ms: i64,
    /// When something was last committed.
    pub updated_ms: i64,
    /// When it ended; `None` while it has not.
    pub finished_ms: Option<i64>,
    /// How often in a row it was taken up by hosts nobody asked, and got no further.
    pub vain: u32,
}

/// Which workflows are meant; what is `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Only those in this status.
    pub status: Option<String>,
    /// Only those with this name.
    pub name: Option<String>,
    /// Only those of this caller.
    pub caller: Option<String>,
    /// Forked or copied from this one.
    pub parent: Option<String>,
}

/// Which workflows nobody takes up, though nobody has them and they are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlone {
    /// Those of this caller that are nobody's: they were stopped.
    pub stopped: Option<String>,
    /// Those that were taken up in vain so often.
    pub vain: u32,
}

impl Default for LeftAlone {
    /// Excludes no workflow at all.
    fn default() -> Self {
        Self { stopped: None, vain: u32::MAX }
    }
}

impl Store {
    /// Makes a workflow nobody has yet.
    pub async fn create_flow(&self, flow: NewFlow) -> Result<(), StoreError> {
        self.write(move |connection| {
            insert(connection, &flow, None)?;
            let snapshot = spill(connection, &flow.snapshot, flow.created_ms)?;
            connection
                .prepare_cached(
                    "INSERT INTO flow_snapshots (flow_id, seq, at_ms, body, body_blob)
                     VALUES (?1, 0, ?2, ?3, ?4)",
                )?
                .execute((&flow.id, flow.created_ms, snapshot.inline, snapshot.blob))?;
            Ok(())
        })
        .await
    }

    /// Claims a workflow. Of several that try at once, in whatever processes, one gets it; the
    /// others are told who has it, unless they take it over.
    pub async fn claim_flow(
        &self,
        flow_id: &str,
        request: LeaseRequest,
    ) -> Result<FlowLease, StoreError> {
        let flow_id = flow_id.to_owned();
        self.write(move |connection| {
            let row = require(connection, &flow_id)?;
            if row.lease_until_ms > request.now_ms && !request.take_over {
                let (owner, until_ms) = (row.owner, row.lease_until_ms);
                return Err(FlowError::Held { flow_id, owner, until_ms }.into());
            }
            let vain = match request.why {
                Why::Asked => 0,
                Why::Found => row.vain.saturating_add(1),
            };
            connection
                .prepare_cached(
                    "UPDATE flows SET fence = fence + 1, owner = ?2, lease_until_ms = ?3,
                     vain = ?4 WHERE id = ?1",
                )?
                .execute((&flow_id, &request.owner, request.until_ms, vain))?;
            Ok(FlowLease { flow_id, fence: row.fence + 1 })
        })
        .await
    }

    /// Keeps a workflow until a later time.
    pub async fn renew_flow(&self, lease: &FlowLease, until_ms: i64) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            connection
                .prepare_cached(
                    "UPDATE flows SET lease_until_ms = max(lease_until_ms, ?2) WHERE id = ?1",
                )?
                .execute((&lease.flow_id, until_ms))?;
            Ok(())
        })
        .await
    }

    /// Gives a workflow back: who had it writes no more, and anybody may claim it.
    pub async fn release_flow(&self, lease: &FlowLease, how: GiveBack) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(move |connection| {
            check_fence(connection, &lease)?;
            connection
                .prepare_cached(
                    "UPDATE flows SET fence = fence + 1, lease_until_ms = 0,
                     owner = CASE WHEN ?2 THEN owner ELSE '' END,
                     vain = CASE WHEN ?3 THEN vain ELSE 0 END WHERE id = ?1",
                )?
                .execute((&lease.flow_id, how != GiveBack::Free, how == GiveBack::Failed))?;
            Ok(())
        })
        .await
    }

    /// The workflow with this id.
    pub async fn flow(&self, id: &str) -> Result<Option<FlowRow>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| find(connection, &id)).await
    }

    /// The newest workflows, newest first; those before `before`, an id, if it is given.
    pub async fn flows(
        &self,
        filter: FlowFilter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FlowRow>, StoreError> {
        let before = before.map(str::to_owned);
        self.read(move |connection| {
            let mut conditions = String::from("true");
            let mut values = vec![Value::from(limit)];
            let asked = [
                ("status = ?", filter.status),
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

    /// Workflows nobody looks after though it is time: the lease has lapsed, and they are due or
    /// have commands nobody took. Those that are due longest come first; those that are left alone do
    /// not come, and keep no others from coming.
    pub async fn abandoned_flows(
        &self,
        now_ms: i64,
        but: LeftAlone,
        limit: u32,
    ) -> Result<Vec<FlowRow>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM flows
                 WHERE lease_until_ms <= ?1 AND NOT (owner = '' AND caller IS ?3)
                 AND (vain < ?4 OR finished_ms IS NOT NULL) AND id IN (
                    SELECT id FROM flows WHERE finished_ms IS NULL AND due_ms <= ?1
                    UNION SELECT flow_id FROM flow_commands WHERE taken_seq IS NULL)
                 ORDER BY due_ms, created_ms, id LIMIT ?2"
            ))?;
            let values = (now_ms, limit, but.stopped, but.vain);
            let rows = statement.query_map(values, from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Refuses a writer whose workflow was claimed by somebody else. To be asked in the transaction
/// that writes.
fn check_fence(connection: &Connection, lease: &FlowLease) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("SELECT fence FROM flows WHERE id = ?1")?;
    let current = statement.query_row([&lease.flow_id], |row| row.get(0)).optional()?;
    match current {
        None => Err(FlowError::Unknown(lease.flow_id.clone()).into()),
        Some(current) if current == lease.fence => Ok(()),
        Some(current) => {
            Err(StoreError::Fenced { run_id: lease.flow_id.clone(), held: lease.fence, current })
        }
    }
}

/// A workflow, or the error that there is none.
fn require(connection: &Connection, id: &str) -> Result<FlowRow, StoreError> {
    find(connection, id)?.ok_or_else(|| FlowError::Unknown(id.to_owned()).into())
}

fn find(connection: &Connection, id: &str) -> Result<Option<FlowRow>, StoreError> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM flows WHERE id = ?1"))?;
    Ok(statement.query_row([id], from_row).optional()?)
}

/// The row of a new workflow, with what it came from.
fn insert(
    connection: &Connection,
    flow: &NewFlow,
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
        &flow.id,
        &flow.name,
        &flow.caller,
        CREATED,
        parent,
        checkpoint,
        flow.created_ms,
    ))?;
    if inserted == 0 { Err(FlowError::Exists(flow.id.clone()).into()) } else { Ok(()) }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<FlowRow> {
    let (parent, checkpoint): (Option<String>, Option<i64>) = (row.get(8)?, row.get(9)?);
    Ok(FlowRow {
        id: row.get(0)?,
        name: row.get(1)?,
        caller: row.get(2)?,
        status: row.get(3)?,
        due_ms: row.get(4)?,
        owner: row.get(5)?,
        fence: row.get(6)?,
        lease_until_ms: row.get(7)?,
        parent: parent.zip(checkpoint.map(number)),
        created_ms: row.get(10)?,
        updated_ms: row.get(11)?,
        finished_ms: row.get(12)?,
        vain: row.get(13)?,
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
