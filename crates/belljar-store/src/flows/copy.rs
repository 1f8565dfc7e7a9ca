//! Workflows that come from others, and what is dropped.
//!
//! A fork or a copy has rows of its own and shares blobs only, which stay as long as anybody refers
//! to them: it goes on when what it came from is pruned or forgotten.

use std::collections::BTreeSet;

use rusqlite::{Connection, types::Value};

use crate::{
    FlowCommand, FlowError, NewFlow, Store, StoreError, blobs,
    flows::{commands, commit::last_input, insert, load::check_checkpoint, require, signed},
    prune,
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
    /// Makes a workflow that is what another was at a checkpoint: its inputs, snapshots and events
    /// up to there. Commands are not part of it, nor are effects: it has begun none. Nobody has it
    /// yet. With it comes a command of its own, if there is one: nobody finds it without.
    pub async fn fork_flow(
        &self,
        flow_id: &str,
        checkpoint: u64,
        new_id: &str,
        now_ms: i64,
        command: Option<FlowCommand>,
    ) -> Result<(), StoreError> {
        let (flow_id, new_id) = (flow_id.to_owned(), new_id.to_owned());
        self.write(move |connection| {
            begin_copy(connection, &flow_id, &new_id, checkpoint, now_ms)?;
            check_checkpoint(connection, &flow_id, checkpoint)?;
            copy_rows(connection, &flow_id, &new_id, checkpoint)?;
            if let Some(command) = command {
                commands::insert(connection, &new_id, command)?;
            }
            Ok(())
        })
        .await
    }

    /// Makes a workflow that is all another is, commands and status included. Nobody has it yet.
    pub async fn copy_flow(
        &self,
        flow_id: &str,
        new_id: &str,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let (flow_id, new_id) = (flow_id.to_owned(), new_id.to_owned());
        self.write(move |connection| {
            let last = last_input(connection, &flow_id)?;
            begin_copy(connection, &flow_id, &new_id, last, now_ms)?;
            copy_rows(connection, &flow_id, &new_id, last)?;
            connection
                .prepare_cached(
                    "INSERT INTO flow_intents SELECT ?2, key, opened_seq, closed_seq, body,
                     body_blob FROM flow_intents WHERE flow_id = ?1",
                )?
                .execute((&flow_id, &new_id))?;
            connection
                .prepare_cached(
                    "INSERT INTO flow_commands SELECT ?2, seq, id, sender, at_ms, taken_seq,
                     answered_ms, body, body_blob, answer, answer_blob
                     FROM flow_commands WHERE flow_id = ?1",
                )?
                .execute((&flow_id, &new_id))?;
            connection
                .prepare_cached(
                    "UPDATE flows SET (status, due_ms, finished_ms) =
                     (SELECT status, due_ms, finished_ms FROM flows WHERE id = ?1) WHERE id = ?2",
                )?
                .execute((&flow_id, &new_id))?;
            Ok(())
        })
        .await
    }

    /// Drops what is not needed to go on with a workflow: the inputs and snapshots before its
    /// newest snapshot, and effects that were closed by then. Earlier checkpoints cannot be brought
    /// back any more. Events and commands stay. How many inputs were dropped comes back.
    pub async fn prune_flow(&self, flow_id: &str) -> Result<u64, StoreError> {
        let flow_id = flow_id.to_owned();
        self.write(move |connection| {
            require(connection, &flow_id)?;
            let newest = "(SELECT max(seq) FROM flow_snapshots WHERE flow_id = ?1)";
            for (table, column) in [("flow_intents", "closed_seq <="), ("flow_inputs", "seq <=")] {
                let condition = format!("flow_id = ?1 AND {column} {newest}");
                connection
                    .prepare_cached(&format!("DELETE FROM {table} WHERE {condition}"))?
                    .execute([&flow_id])?;
            }
            // The last statement was about the inputs.
            let dropped = connection.changes();
            connection
                .prepare_cached(&format!(
                    "DELETE FROM flow_snapshots WHERE flow_id = ?1 AND seq < {newest}"
                ))?
                .execute([&flow_id])?;
            Ok(dropped)
        })
        .await
    }

    /// Forgets a workflow that has ended and that nobody has, with the runs that are named and with
    /// the values nothing else refers to. What came from it stays.
    pub async fn forget_flow(
        &self,
        flow_id: &str,
        runs: Vec<String>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let flow_id = flow_id.to_owned();
        self.write(move |connection| {
            let row = require(connection, &flow_id)?;
            if row.finished_ms.is_none() || row.lease_until_ms > now_ms {
                let (owner, until_ms) = (row.owner, row.lease_until_ms);
                return Err(FlowError::Held { flow_id, owner, until_ms }.into());
            }
            for run in &runs {
                prune::remove_run(connection, run, prune::Extent::Everything)?;
            }
            forget(connection, &flow_id)
        })
        .await
    }

    /// The keys of a workflow's effects that are not under way.
    pub async fn settled_flow_intents(&self, flow_id: &str) -> Result<Vec<String>, StoreError> {
        let flow_id = flow_id.to_owned();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key FROM flow_intents WHERE flow_id = ?1 GROUP BY key
                 HAVING count(*) = count(closed_seq)",
            )?;
            let rows = statement.query_map([&flow_id], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// The keys of all effects of a workflow.
    pub async fn flow_intents(&self, flow_id: &str) -> Result<Vec<String>, StoreError> {
        let flow_id = flow_id.to_owned();
        self.read(move |connection| {
            let mut statement = connection
                .prepare_cached("SELECT DISTINCT key FROM flow_intents WHERE flow_id = ?1")?;
            let rows = statement.query_map([&flow_id], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Workflows that ended before a time, those that ended first coming first.
    pub async fn flows_over_since(
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

    /// Keeps bytes for as long as a workflow, and gives back their id.
    pub async fn put_flow_blob(
        &self,
        flow_id: &str,
        bytes: Vec<u8>,
        media_type: &str,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let (flow_id, media_type) = (flow_id.to_owned(), media_type.to_owned());
        self.write(move |connection| {
            require(connection, &flow_id)?;
            let id = blobs::keep(connection, &bytes, &media_type, now_ms)?;
            connection
                .prepare_cached(
                    "INSERT INTO flow_blobs (flow_id, blob_id) VALUES (?1, ?2)
                     ON CONFLICT DO NOTHING",
                )?
                .execute((&flow_id, &id))?;
            Ok(id)
        })
        .await
    }
}

fn begin_copy(
    connection: &Connection,
    flow_id: &str,
    new_id: &str,
    checkpoint: u64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let row = require(connection, flow_id)?;
    let (name, caller) = (row.name, row.caller);
    let (id, snapshot) = (new_id.to_owned(), Vec::new());
    let new = NewFlow { id, name, caller, snapshot, created_ms: now_ms };
    insert(connection, &new, Some((flow_id, signed(checkpoint))))
}

/// What a workflow was after an input, as another's.
fn copy_rows(
    connection: &Connection,
    flow_id: &str,
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
        // Which of them it needs is said in bytes this crate cannot read.
        "INSERT INTO flow_blobs SELECT ?2, blob_id FROM flow_blobs
         WHERE flow_id = ?1 AND ?3 IS ?3",
    ];
    for copy in copies {
        connection.prepare_cached(copy)?.execute((flow_id, new_id, signed(upto)))?;
    }
    Ok(())
}

fn forget(connection: &Connection, flow_id: &str) -> Result<(), StoreError> {
    let (value, mut values) = (Value::from(flow_id.to_owned()), BTreeSet::new());
    for (table, column) in BLOBS {
        let sql = format!(
            "SELECT DISTINCT {column} FROM {table} WHERE flow_id = ?1 AND {column} IS NOT NULL"
        );
        prune::collect(connection, &sql, &value, &mut values)?;
    }
    for table in TABLES {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE flow_id = ?1"))?
            .execute([flow_id])?;
    }
    connection.prepare_cached("DELETE FROM flows WHERE id = ?1")?.execute([flow_id])?;
    blobs::drop_unreferenced(connection, &values)?;
    Ok(())
}
