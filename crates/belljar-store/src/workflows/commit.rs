//! The commits of a workflow's owner: all or nothing, and only while it is the owner.
//!
//! The same batch may be committed again after a lost answer: rows that exist already are compared and
//! stay as they are.

use belljar_contract::WorkflowStatus;
use rusqlite::{Connection, OptionalExtension as _};

use crate::{
    Store, StoreError, WorkflowLease, WorkflowRecordError,
    spill::{self, spill},
    workflows::{check_fence, commands, number, signed},
};

/// An input of a workflow's state machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowInputRow {
    /// Its number, from 1 without gap.
    pub seq: u64,
    /// The name of the checkpoint after it, if there is one.
    pub checkpoint: Option<String>,
    /// The input itself, which only the workflow's driver can read.
    pub body: Vec<u8>,
}

/// Something that happened in a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowEventRow {
    /// Its number, from 1 without gap.
    pub seq: u64,
    /// The number of the input that caused it.
    pub cause: u64,
    /// The event itself, which only the workflow's driver can read.
    pub body: Vec<u8>,
}

/// A change to what is known of an effect outside the workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentChange {
    /// The effect may happen from now on. An effect that is open under this key stays as it is.
    Open {
        /// Names the effect within the workflow.
        key: String,
        /// The number of the input that caused it.
        at: u64,
        /// The effect itself, which only the workflow's driver can read.
        body: Vec<u8>,
    },
    /// The outcome is known. An effect that was opened later stays open.
    Close {
        /// The key with which it was opened.
        key: String,
        /// The number of the input that brought the outcome.
        at: u64,
    },
}

/// The status a workflow gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowStatusUpdate {
    /// The status that the driver gives it.
    pub status: WorkflowStatus,
    /// When a driver has to claim it again, if none holds it.
    pub due_ms: i64,
    /// Whether it has ended.
    pub finished: bool,
}

/// Everything that one commit writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowBatch {
    /// The time it is.
    pub now_ms: i64,
    /// Inputs to append, numbered without gap.
    pub inputs: Vec<WorkflowInputRow>,
    /// The state after the last input.
    pub snapshot: Option<Vec<u8>>,
    /// Events to append, numbered without gap.
    pub events: Vec<WorkflowEventRow>,
    /// Effects that begin or end, in this order.
    pub intents: Vec<IntentChange>,
    /// Commands that became inputs: number of the command, number of the input.
    pub taken: Vec<(u64, u64)>,
    /// Answers to commands, by their id.
    pub answers: Vec<(String, Vec<u8>)>,
    /// The status it gets, if that changes.
    pub state: Option<WorkflowStatusUpdate>,
    /// Extends the lease of its owner to this time.
    pub lease_until_ms: Option<i64>,
    /// Whether the workflow gets further by this: something ended.
    pub progress: bool,
}

impl Store {
    /// Commits a batch if the lease still holds, and returns the number of the last input. It is on
    /// disk when this returns.
    pub async fn commit_workflow(
        &self,
        lease: &WorkflowLease,
        batch: WorkflowBatch,
    ) -> Result<u64, StoreError> {
        let lease = lease.clone();
        let last = self.write(move |connection| {
            check_fence(connection, &lease)?;
            apply(connection, &lease.workflow_id, batch)
        });
        let last = last.await?;
        self.progressed().notify_waiters();
        Ok(last)
    }
}

fn apply(
    connection: &Connection,
    workflow_id: &str,
    batch: WorkflowBatch,
) -> Result<u64, StoreError> {
    let now_ms = batch.now_ms;
    let mut last = last_input(connection, workflow_id)?;
    for input in batch.inputs {
        last = last.max(input.seq);
        insert_input(connection, workflow_id, input, now_ms)?;
    }
    if let Some(snapshot) = batch.snapshot {
        insert_snapshot(connection, workflow_id, last, snapshot, now_ms)?;
    }
    for event in batch.events {
        insert_event(connection, workflow_id, event, now_ms)?;
    }
    for change in batch.intents {
        change_intent(connection, workflow_id, change, now_ms)?;
    }
    for (command, input) in batch.taken {
        commands::mark_taken(connection, workflow_id, command, input)?;
    }
    for (id, answer) in batch.answers {
        commands::save_answer(connection, workflow_id, &id, answer, now_ms)?;
    }
    if let Some(state) = batch.state {
        // The first end stays, until the workflow is brought back to life.
        connection
            .prepare_cached(
                "UPDATE flows SET status = ?2, due_ms = ?3,
                 finished_ms = CASE WHEN ?4 THEN coalesce(finished_ms, ?5) END WHERE id = ?1",
            )?
            .execute((workflow_id, state.status.as_str(), state.due_ms, state.finished, now_ms))?;
    }
    connection
        .prepare_cached(
            "UPDATE flows SET updated_ms = max(updated_ms, ?2),
             lease_until_ms = max(lease_until_ms, ?3),
             vain = CASE WHEN ?4 THEN 0 ELSE vain END WHERE id = ?1",
        )?
        .execute((workflow_id, now_ms, batch.lease_until_ms.unwrap_or_default(), batch.progress))?;
    Ok(last)
}

/// The number of the last input; inputs before a snapshot may have been dropped.
pub(super) fn last_input(connection: &Connection, workflow_id: &str) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT max(coalesce((SELECT max(seq) FROM flow_inputs WHERE flow_id = ?1), 0),
                    coalesce((SELECT max(seq) FROM flow_snapshots WHERE flow_id = ?1), 0))",
    )?;
    Ok(number(statement.query_row([workflow_id], |row| row.get(0))?))
}

fn insert_input(
    connection: &Connection,
    workflow_id: &str,
    input: WorkflowInputRow,
    now_ms: i64,
) -> Result<(), StoreError> {
    let last = last_input(connection, workflow_id)?;
    if is_known(connection, ("flow_inputs", "input"), workflow_id, (last, input.seq), &input.body)?
    {
        return Ok(());
    }
    let body = spill(connection, input.body, now_ms)?;
    connection
        .prepare_cached(
            "INSERT INTO flow_inputs (flow_id, seq, at_ms, checkpoint, body, body_blob)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((
            workflow_id,
            signed(input.seq),
            now_ms,
            input.checkpoint,
            body.inline,
            body.blob,
        ))?;
    Ok(())
}

fn insert_event(
    connection: &Connection,
    workflow_id: &str,
    event: WorkflowEventRow,
    now_ms: i64,
) -> Result<(), StoreError> {
    let last: i64 = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM flow_events WHERE flow_id = ?1")?
        .query_row([workflow_id], |row| row.get(0))?;
    let numbers = (number(last), event.seq);
    if is_known(connection, ("flow_events", "event"), workflow_id, numbers, &event.body)? {
        return Ok(());
    }
    let body = spill(connection, event.body, now_ms)?;
    let (seq, cause) = (signed(event.seq), signed(event.cause));
    connection
        .prepare_cached(
            "INSERT INTO flow_events (flow_id, seq, cause_seq, at_ms, body, body_blob)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((workflow_id, seq, cause, now_ms, body.inline, body.blob))?;
    Ok(())
}

/// Whether the row exists already, with the same bytes. A number that would leave a gap is refused.
fn is_known(
    connection: &Connection,
    (table, what): (&str, &'static str),
    workflow_id: &str,
    (last, given): (u64, u64),
    bytes: &[u8],
) -> Result<bool, StoreError> {
    if given == last + 1 {
        return Ok(false);
    }
    if given == 0 || given > last {
        return Err(WorkflowRecordError::OutOfOrder {
            workflow_id: workflow_id.to_owned(),
            what,
            last,
            given,
        }
        .into());
    }
    let mut statement = connection.prepare_cached(&format!(
        "SELECT body, body_blob FROM {table} WHERE flow_id = ?1 AND seq = ?2"
    ))?;
    let mut rows = statement.query((workflow_id, signed(given)))?;
    let found = match rows.next()? {
        Some(row) => spill::bytes(connection, row, 0)?,
        // It was dropped when the workflow was pruned, so there is nothing to compare.
        None => return Ok(true),
    };
    if found.as_deref() == Some(bytes) {
        return Ok(true);
    }
    let which = given.to_string();
    Err(WorkflowRecordError::Differs { workflow_id: workflow_id.to_owned(), what, which }.into())
}

fn insert_snapshot(
    connection: &Connection,
    workflow_id: &str,
    seq: u64,
    snapshot: Vec<u8>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let body = spill(connection, snapshot, now_ms)?;
    connection
        .prepare_cached(
            "INSERT INTO flow_snapshots (flow_id, seq, at_ms, body, body_blob)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (flow_id, seq) DO NOTHING",
        )?
        .execute((workflow_id, signed(seq), now_ms, body.inline, body.blob))?;
    Ok(())
}

fn change_intent(
    connection: &Connection,
    workflow_id: &str,
    change: IntentChange,
    now_ms: i64,
) -> Result<(), StoreError> {
    match change {
        IntentChange::Open { key, at, body } => {
            let mut open = connection.prepare_cached(
                "SELECT 1 FROM flow_intents WHERE flow_id = ?1 AND key = ?2
                 AND (closed_seq IS NULL OR opened_seq = ?3)",
            )?;
            let is_open = open.query_row((workflow_id, &key, signed(at)), |_| Ok(())).optional()?;
            if is_open.is_some() {
                return Ok(());
            }
            let body = spill(connection, body, now_ms)?;
            connection
                .prepare_cached(
                    "INSERT INTO flow_intents (flow_id, key, opened_seq, body, body_blob)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute((workflow_id, key, signed(at), body.inline, body.blob))?;
        }
        IntentChange::Close { key, at } => {
            connection
                .prepare_cached(
                    "UPDATE flow_intents SET closed_seq = ?3 WHERE flow_id = ?1 AND key = ?2
                     AND closed_seq IS NULL AND opened_seq < ?3",
                )?
                .execute((workflow_id, key, signed(at)))?;
        }
    }
    Ok(())
}
