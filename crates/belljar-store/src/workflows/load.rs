//! Reading a workflow back: a snapshot, the inputs after it, and the open effects.

use rusqlite::{Connection, OptionalExtension as _};

use crate::{
    QueuedCommand, Store, StoreError, WorkflowInputRow, WorkflowRecordError, WorkflowRow, spill,
    workflows::{commands, commit::last_input, number, require, signed},
};

/// An effect whose outcome is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentRow {
    /// Names the effect within the workflow.
    pub key: String,
    /// The number of the input that caused it.
    pub opened: u64,
    /// The effect itself, which only the workflow's driver can read.
    pub body: Vec<u8>,
}

/// A point that a workflow can be rolled back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    /// The number of the last input before it.
    pub seq: u64,
    /// The name its author gave it.
    pub name: String,
    /// When it was committed.
    pub at_ms: i64,
}

/// Everything a driver needs to resume a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedWorkflow {
    /// Its row: status, owner, times.
    pub workflow: WorkflowRow,
    /// A state and the number of the last input in it.
    pub snapshot: (u64, Vec<u8>),
    /// The inputs after it.
    pub inputs: Vec<WorkflowInputRow>,
    /// Effects without an outcome, in the order they were opened.
    pub open: Vec<IntentRow>,
    /// Commands that are still in the queue; empty if the workflow is read at a checkpoint.
    pub commands: Vec<QueuedCommand>,
    /// The number of the last event.
    pub last_event: u64,
}

impl Store {
    /// A workflow as it is, or as it was at a checkpoint.
    pub async fn load_workflow(
        &self,
        workflow_id: &str,
        checkpoint: Option<u64>,
    ) -> Result<LoadedWorkflow, StoreError> {
        let workflow_id = workflow_id.to_owned();
        self.read(move |connection| {
            let workflow = require(connection, &workflow_id)?;
            let (upto, commands) = match checkpoint {
                Some(checkpoint) => {
                    check_checkpoint(connection, &workflow_id, checkpoint)?;
                    (checkpoint, Vec::new())
                }
                None => {
                    let waiting = commands::list(connection, &workflow_id, "taken_seq IS NULL")?;
                    (last_input(connection, &workflow_id)?, waiting)
                }
            };
            let snapshot = snapshot(connection, &workflow_id, upto)?;
            let inputs = inputs(connection, &workflow_id, snapshot.0, upto)?;
            let open = open(connection, &workflow_id, upto)?;
            let last_event = last_event(connection, &workflow_id, upto)?;
            Ok(LoadedWorkflow { workflow, snapshot, inputs, open, commands, last_event })
        })
        .await
    }

    /// The checkpoints of a workflow, newest first; those before `before`, a number, if it is
    /// given.
    pub async fn workflow_checkpoints(
        &self,
        workflow_id: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, StoreError> {
        let workflow_id = workflow_id.to_owned();
        self.read(move |connection| {
            require(connection, &workflow_id)?;
            let mut statement = connection.prepare_cached(
                "SELECT seq, checkpoint, at_ms FROM flow_inputs
                 WHERE flow_id = ?1 AND seq < ?2 AND checkpoint IS NOT NULL
                 ORDER BY seq DESC LIMIT ?3",
            )?;
            let before = before.map_or(i64::MAX, signed);
            let rows = statement.query_map((&workflow_id, before, limit), |row| {
                let seq = number(row.get(0)?);
                Ok(CheckpointRow { seq, name: row.get(1)?, at_ms: row.get(2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Refuses a number that is not a checkpoint, or whose inputs were pruned. The beginning (0) is a
/// checkpoint.
pub(super) fn check_checkpoint(
    connection: &Connection,
    workflow_id: &str,
    checkpoint: u64,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM flow_snapshots WHERE flow_id = ?1 AND seq <= ?2)
            AND (?2 = 0 OR EXISTS (SELECT 1 FROM flow_inputs
                WHERE flow_id = ?1 AND seq = ?2 AND checkpoint IS NOT NULL))",
    )?;
    if statement.query_row((workflow_id, signed(checkpoint)), |row| row.get(0))? {
        return Ok(());
    }
    Err(WorkflowRecordError::NoCheckpoint { workflow_id: workflow_id.to_owned(), checkpoint }
        .into())
}

/// The newest snapshot that has no later input than this.
fn snapshot(
    connection: &Connection,
    workflow_id: &str,
    upto: u64,
) -> Result<(u64, Vec<u8>), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, body, body_blob FROM flow_snapshots WHERE flow_id = ?1 AND seq <= ?2
         ORDER BY seq DESC LIMIT 1",
    )?;
    let mut rows = statement.query((workflow_id, signed(upto)))?;
    let row = rows.next()?.ok_or_else(|| damaged(workflow_id, "it has no snapshot"))?;
    let bytes = spill::bytes(connection, row, 1)?;
    Ok((number(row.get(0)?), bytes.unwrap_or_default()))
}

/// The inputs after one number up to another. A replay that skips one would give another state, so a
/// gap is an error.
fn inputs(
    connection: &Connection,
    workflow_id: &str,
    after: u64,
    upto: u64,
) -> Result<Vec<WorkflowInputRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, checkpoint, body, body_blob FROM flow_inputs
         WHERE flow_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
    )?;
    let mut rows = statement.query((workflow_id, signed(after), signed(upto)))?;
    let mut inputs = Vec::new();
    let mut last = after;
    while let Some(row) = rows.next()? {
        let seq = number(row.get(0)?);
        if seq != last + 1 {
            return Err(damaged(workflow_id, "an input is missing"));
        }
        last = seq;
        let body = spill::bytes(connection, row, 2)?.unwrap_or_default();
        inputs.push(WorkflowInputRow { seq, checkpoint: row.get(1)?, body });
    }
    if last == upto { Ok(inputs) } else { Err(damaged(workflow_id, "an input is missing")) }
}

/// The effects that were open after an input.
fn open(
    connection: &Connection,
    workflow_id: &str,
    upto: u64,
) -> Result<Vec<IntentRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT key, opened_seq, body, body_blob FROM flow_intents
         WHERE flow_id = ?1 AND opened_seq <= ?2 AND (closed_seq IS NULL OR closed_seq > ?2)
         ORDER BY opened_seq, key",
    )?;
    let mut rows = statement.query((workflow_id, signed(upto)))?;
    let mut open = Vec::new();
    while let Some(row) = rows.next()? {
        let body = spill::bytes(connection, row, 2)?.unwrap_or_default();
        open.push(IntentRow { key: row.get(0)?, opened: number(row.get(1)?), body });
    }
    Ok(open)
}

fn last_event(connection: &Connection, workflow_id: &str, upto: u64) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq FROM flow_events WHERE flow_id = ?1 AND cause_seq <= ?2
         ORDER BY seq DESC LIMIT 1",
    )?;
    let last = statement.query_row((workflow_id, signed(upto)), |row| row.get(0)).optional()?;
    Ok(last.map(number).unwrap_or_default())
}

fn damaged(workflow_id: &str, reason: &'static str) -> StoreError {
    StoreError::Damaged { what: format!("workflow {workflow_id}"), reason }
}
