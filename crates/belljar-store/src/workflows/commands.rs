//! The command queue of a workflow: anyone may send a command, its owner takes and answers it.

use rusqlite::{Connection, Row};

use crate::{
    Store, StoreError, WorkflowRecordError,
    spill::{self, spill},
    workflows::{number, require, signed},
};

const COLUMNS: &str =
    "seq, id, sender, at_ms, taken_seq, answered_ms, body, body_blob, answer, answer_blob";

/// A command in the queue of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedCommand {
    /// Its number in the queue, from 1 without gap; ignored when the command is sent.
    pub seq: u64,
    /// Identifies the command: sending the same id twice queues it once.
    pub id: String,
    /// The caller who sent it.
    pub sender: String,
    /// When it was sent, in milliseconds since 1970.
    pub at_ms: i64,
    /// The command itself, which only the workflow's driver can read.
    pub body: Vec<u8>,
}

/// A command, and its answer if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// The command as it was sent.
    pub command: QueuedCommand,
    /// The number of the input it became; `None` until a driver takes it.
    pub taken: Option<u64>,
    /// When it was answered, and the answer.
    pub answer: Option<(i64, Vec<u8>)>,
}

/// The place a command got in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentCommand {
    /// Its number in the queue.
    pub seq: u64,
    /// Whether a command with this id was in the queue already.
    pub repeated: bool,
}

impl Store {
    /// Queues a command. It is on disk when this returns. A different command with the same id is
    /// refused.
    pub async fn send_workflow_command(
        &self,
        workflow_id: &str,
        command: QueuedCommand,
    ) -> Result<SentCommand, StoreError> {
        let workflow_id = workflow_id.to_owned();
        let sent = self.write(move |connection| insert(connection, &workflow_id, command));
        let sent = sent.await?;
        self.commanded().notify_waiters();
        Ok(sent)
    }

    /// The commands after a number, oldest first, with their answers.
    pub async fn workflow_commands(
        &self,
        workflow_id: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let workflow_id = workflow_id.to_owned();
        self.read(move |connection| {
            require(connection, &workflow_id)?;
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM flow_commands WHERE flow_id = ?1 AND seq > ?2
                 ORDER BY seq LIMIT ?3"
            ))?;
            let mut rows = statement.query((&workflow_id, signed(after), limit))?;
            let mut commands = Vec::new();
            while let Some(row) = rows.next()? {
                commands.push(from_row(connection, row)?);
            }
            Ok(commands)
        })
        .await
    }

    /// A command by its id.
    pub async fn workflow_command(
        &self,
        workflow_id: &str,
        id: &str,
    ) -> Result<Option<CommandRow>, StoreError> {
        let (workflow_id, id) = (workflow_id.to_owned(), id.to_owned());
        self.read(move |connection| {
            require(connection, &workflow_id)?;
            by_id(connection, &workflow_id, &id)
        })
        .await
    }
}

pub(super) fn insert(
    connection: &Connection,
    workflow_id: &str,
    command: QueuedCommand,
) -> Result<SentCommand, StoreError> {
    require(connection, workflow_id)?;
    if let Some(there) = by_id(connection, workflow_id, &command.id)? {
        if there.command.body == command.body {
            return Ok(SentCommand { seq: there.command.seq, repeated: true });
        }
        let (workflow_id, which) = (workflow_id.to_owned(), command.id);
        return Err(WorkflowRecordError::Differs { workflow_id, what: "command", which }.into());
    }
    let body = spill(connection, command.body, command.at_ms)?;
    let seq: i64 = connection
        .prepare_cached(
            "INSERT INTO flow_commands (flow_id, seq, id, sender, at_ms, body, body_blob)
             SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3, ?4, ?5, ?6 FROM flow_commands
             WHERE flow_id = ?1 RETURNING seq",
        )?
        .query_row(
            (workflow_id, &command.id, &command.sender, command.at_ms, body.inline, body.blob),
            |row| row.get(0),
        )?;
    Ok(SentCommand { seq: number(seq), repeated: false })
}

/// Notes which input a command became.
pub(super) fn mark_taken(
    connection: &Connection,
    workflow_id: &str,
    command: u64,
    input: u64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE flow_commands SET taken_seq = ?3
             WHERE flow_id = ?1 AND seq = ?2 AND taken_seq IS NULL",
        )?
        .execute((workflow_id, signed(command), signed(input)))?;
    Ok(())
}

/// Saves the answer to a command; the first one stays.
pub(super) fn save_answer(
    connection: &Connection,
    workflow_id: &str,
    id: &str,
    answer: Vec<u8>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let answer = spill(connection, answer, now_ms)?;
    connection
        .prepare_cached(
            "UPDATE flow_commands SET answered_ms = ?3, answer = ?4, answer_blob = ?5
             WHERE flow_id = ?1 AND id = ?2 AND answered_ms IS NULL",
        )?
        .execute((workflow_id, id, now_ms, answer.inline, answer.blob))?;
    Ok(())
}

/// Commands that meet an SQL condition, oldest first.
pub(super) fn list(
    connection: &Connection,
    workflow_id: &str,
    condition: &str,
) -> Result<Vec<QueuedCommand>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM flow_commands WHERE flow_id = ?1 AND {condition} ORDER BY seq"
    ))?;
    let mut rows = statement.query([workflow_id])?;
    let mut commands = Vec::new();
    while let Some(row) = rows.next()? {
        commands.push(from_row(connection, row)?.command);
    }
    Ok(commands)
}

fn by_id(
    connection: &Connection,
    workflow_id: &str,
    id: &str,
) -> Result<Option<CommandRow>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM flow_commands WHERE flow_id = ?1 AND id = ?2"
    ))?;
    let mut rows = statement.query((workflow_id, id))?;
    rows.next()?.map(|row| from_row(connection, row)).transpose()
}

fn from_row(connection: &Connection, row: &Row<'_>) -> Result<CommandRow, StoreError> {
    let command = QueuedCommand {
        seq: number(row.get(0)?),
        id: row.get(1)?,
        sender: row.get(2)?,
        at_ms: row.get(3)?,
        body: spill::bytes(connection, row, 6)?.unwrap_or_default(),
    };
    let taken: Option<i64> = row.get(4)?;
    let answered: Option<i64> = row.get(5)?;
    let answer = match answered {
        Some(at_ms) => Some((at_ms, spill::bytes(connection, row, 8)?.unwrap_or_default())),
        None => None,
    };
    Ok(CommandRow { command, taken: taken.map(number), answer })
}
