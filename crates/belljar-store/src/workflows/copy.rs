//! Forking and removing workflows.
//!
//! A fork has rows of its own and shares only blobs, which stay as long as any row refers to them. So it
//! can be resumed after its parent was removed.

use std::collections::BTreeSet;

use belljar_contract::RunId;
use rusqlite::{Connection, types::Value};

use crate::{
    NewWorkflowRow, QueuedCommand, Store, StoreError, WorkflowRecordError, blobs, prune,
    workflows::{commands, insert, load::check_checkpoint, require, signed},
};

/// Tables with rows of a workflow, in the order they can be emptied.
const TABLES: [&str; 6] =
    ["flow_blobs", "flow_commands", "flow_events", "flow_intents", "flow_snapshots", "flow_inputs"];

/// Where those rows refer to large values.
const BLOBS: [(&str, &str); 7] = [
    ("flow_blobs", "blob_id"),
    ("flow_commands", "body_blob"),
    ("flow_commands", "answer_blob"),
    ("flow_events", "body_blob"),
    ("flow_intents", "body_blob"),
    ("flow_snapshots", "body_blob"),
    ("flow_inputs", "body_blob"),
];

impl Store {
    /// Makes a workflow from another's inputs, snapshots and events up to a checkpoint. Commands and
    /// effects are not copied. It has no owner yet. A command that is given is queued in the same
    /// transaction, so that no driver finds the fork without it.
    pub async fn fork_workflow(
        &self,
        workflow_id: &str,
        checkpoint: u64,
        new_id: &str,
        now_ms: i64,
        command: Option<QueuedCommand>,
    ) -> Result<(), StoreError> {
        let (workflow_id, new_id) = (workflow_id.to_owned(), new_id.to_owned());
        self.write(move |connection| {
            begin_copy(connection, &workflow_id, &new_id, checkpoint, now_ms)?;
            check_checkpoint(connection, &workflow_id, checkpoint)?;
            copy_rows(connection, &workflow_id, &new_id, checkpoint)?;
            if let Some(command) = command {
                commands::insert(connection, &new_id, command)?;
            }
            Ok(())
        })
        .await
    }

    /// Removes a workflow that has ended and has no owner, together with the given runs and with the
    /// values that no other row refers to. Its forks stay.
    pub async fn forget_workflow(
        &self,
        workflow_id: &str,
        runs: Vec<RunId>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let workflow_id = workflow_id.to_owned();
        self.write(move |connection| {
            let row = require(connection, &workflow_id)?;
            if row.finished_ms.is_none() || row.lease_until_ms > now_ms {
                let (owner, until_ms) = (row.owner, row.lease_until_ms);
                return Err(WorkflowRecordError::Held { workflow_id, owner, until_ms }.into());
            }
            for run in &runs {
                prune::remove_run(connection, run, prune::RunExtent::Everything)?;
            }
            forget(connection, &workflow_id)
        })
        .await
    }

    /// The keys of a workflow's effects that are closed.
    pub async fn closed_workflow_intents(
        &self,
        workflow_id: &str,
    ) -> Result<Vec<String>, StoreError> {
        let workflow_id = workflow_id.to_owned();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key FROM flow_intents WHERE flow_id = ?1 GROUP BY key
                 HAVING count(*) = count(closed_seq)",
            )?;
            let rows = statement.query_map([&workflow_id], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// The keys of all effects of a workflow.
    pub async fn workflow_intents(&self, workflow_id: &str) -> Result<Vec<String>, StoreError> {
        let workflow_id = workflow_id.to_owned();
        self.read(move |connection| {
            let mut statement = connection
                .prepare_cached("SELECT DISTINCT key FROM flow_intents WHERE flow_id = ?1")?;
            let rows = statement.query_map([&workflow_id], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Workflows that ended before a time, ordered by when they ended.
    pub async fn workflows_ended_before(
        &self,
        before_ms: i64,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id FROM flows WHERE finished_ms < ?1 ORDER BY finished_ms, id LIMIT ?2",
            )?;
            let rows = statement.query_map((before_ms, limit), |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Saves bytes for as long as the workflow exists, and returns their id.
    pub async fn put_workflow_blob(
        &self,
        workflow_id: &str,
        bytes: Vec<u8>,
        media_type: &str,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let (workflow_id, media_type) = (workflow_id.to_owned(), media_type.to_owned());
        self.write(move |connection| {
            require(connection, &workflow_id)?;
            let id = blobs::save(connection, &bytes, &media_type, now_ms)?;
            connection
                .prepare_cached(
                    "INSERT INTO flow_blobs (flow_id, blob_id) VALUES (?1, ?2)
                     ON CONFLICT DO NOTHING",
                )?
                .execute((&workflow_id, &id))?;
            Ok(id)
        })
        .await
    }
}

fn begin_copy(
    connection: &Connection,
    workflow_id: &str,
    new_id: &str,
    checkpoint: u64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let row = require(connection, workflow_id)?;
    let (name, caller) = (row.name, row.caller);
    let (id, snapshot) = (new_id.to_owned(), Vec::new());
    let new = NewWorkflowRow { id, name, caller, snapshot, created_ms: now_ms };
    insert(connection, &new, Some((workflow_id, signed(checkpoint))))
}

/// Copies the rows of a workflow up to an input.
fn copy_rows(
    connection: &Connection,
    workflow_id: &str,
    new_id: &str,
    upto: u64,
) -> Result<(), StoreError> {
    let copies = [
        "INSERT INTO flow_inputs SELECT ?2, seq, at_ms, checkpoint, body, body_blob
         FROM flow_inputs WHERE flow_id = ?1 AND seq <= ?3",
        "INSERT INTO flow_snapshots SELECT ?2, seq, at_ms, body, body_blob
         FROM flow_snapshots WHERE flow_id = ?1 AND seq <= ?3",
        "INSERT INTO flow_events SELECT ?2, seq, cause_seq, at_ms, body, body_blob
         FROM flow_events WHERE flow_id = ?1 AND cause_seq <= ?3",
        // All of them: which ones it needs is in bytes that this crate cannot read.
        "INSERT INTO flow_blobs SELECT ?2, blob_id FROM flow_blobs
         WHERE flow_id = ?1 AND ?3 IS ?3",
    ];
    for copy in copies {
        connection.prepare_cached(copy)?.execute((workflow_id, new_id, signed(upto)))?;
    }
    Ok(())
}

fn forget(connection: &Connection, workflow_id: &str) -> Result<(), StoreError> {
    let (value, mut values) = (Value::from(workflow_id.to_owned()), BTreeSet::new());
    for (table, column) in BLOBS {
        let sql = format!(
            "SELECT DISTINCT {column} FROM {table} WHERE flow_id = ?1 AND {column} IS NOT NULL"
        );
        prune::collect(connection, &sql, &value, &mut values)?;
    }
    for table in TABLES {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE flow_id = ?1"))?
            .execute([workflow_id])?;
    }
    connection.prepare_cached("DELETE FROM flows WHERE id = ?1")?.execute([workflow_id])?;
    blobs::drop_unreferenced(connection, &values)?;
    Ok(())
}
