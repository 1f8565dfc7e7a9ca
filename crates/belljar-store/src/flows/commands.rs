//! The queue of a workflow: commands that anybody sends and its owner takes and answers.

use rusqlite::{Connection, Row};

use crate::{
    FlowError, Store, StoreError,
    flows::{number, require, signed},
    spill::{self, spill},
};

const COLUMNS: &str =
    "seq, id, sender, at_ms, taken_seq, answered_ms, body, body_blob, answer, answer_blob";

/// A command that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowCommand {
    /// Its number in the queue, from 1 without gap; what is sent has none yet.
    pub seq: u64,
    /// What tells it from others. The same one twice is one command.
    pub id: String,
    /// The caller who sent it.
    pub sender: String,
    /// When it was sent, in milliseconds since 1970.
    pub at_ms: i64,
    /// The command itself, which only the workflow's driver can read.
    pub body: Vec<u8>,
}

/// A command and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// The command as it was sent.
    pub command: FlowCommand,
    /// The input it became.
    pub taken: Option<u64>,
    /// When it was answered, and the answer.
    pub answer: Option<(i64, Vec<u8>)>,
}

/// What became of sending a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentCommand {
    /// Its number in the queue.
    pub seq: u64,
    /// Whether it was there already.
    pub repeated: bool,
}

impl Store {
    /// Queues a command. It is on disk when this returns. One with the same id that says something
    /// else is refused.
    pub async fn send_flow_command(
        &self,
        flow_id: &str,
        command: FlowCommand,
    ) -> Result<SentCommand, StoreError> {
        let flow_id = flow_id.to_owned();
        let sent = self.write(move |connection| insert(connection, &flow_id, command));
        let sent = sent.await?;
        self.commanded().notify_waiters();
        Ok(sent)
    }

    /// The commands after a number, oldest first, with what became of them.
    pub async fn flow_commands(
        &self,
        flow_id: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let flow_id = flow_id.to_owned();
        self.read(move |connection| {
            require(connection, &flow_id)?;
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM flow_commands WHERE flow_id = ?1 AND seq > ?2
                 ORDER BY seq LIMIT ?3"
            ))?;
            let mut rows = statement.query((&flow_id, signed(after), limit))?;
            let mut commands = Vec::new();
            while let Some(row) = rows.next()? {
                commands.push(from_row(connection, row)?);
            }
            Ok(commands)
        })
        .await
    }

    /// A command by its id.
    pub async fn flow_command(
        &self,
        flow_id: &str,
        id: &str,
    ) -> Result<Option<CommandRow>, StoreError> {
        let (flow_id, id) = (flow_id.to_owned(), id.to_owned());
        self.read(move |connection| {
            require(connection, &flow_id)?;
            by_id(connection, &flow_id, &id)
        })
        .await
    }
}

pub(super) fn insert(
    connection: &Connection,
    flow_id: &str,
    command: FlowCommand,
) -> Result<SentCommand, StoreError> {
    require(connection, flow_id)?;
    if let Some(there) = by_id(connection, flow_id, &command.id)? {
        if there.command.body == command.body {
            return Ok(SentCommand { seq: there.command.seq, repeated: true });
        }
        let (flow_id, which) = (flow_id.to_owned(), command.id);
        return Err(FlowError::Differs { flow_id, what: "command", which }.into());
    }
    let body = spill(connection, command.body, command.at_ms)?;
    let seq: i64 = connection
        .prepare_cached(
            "INSERT INTO flow_commands (flow_id, seq, id, sender, at_ms, body, body_blob)
             SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3, ?4, ?5, ?6 FROM flow_commands
             WHERE flow_id = ?1 RETURNING seq",
        )?
        .query_row(
            (flow_id, &command.id, &command.sender, command.at_ms, body.inline, body.blob),
            |row| row.get(0),
        )?;
    Ok(SentCommand { seq: number(seq), repeated: false })
}

/// Notes which input a command became.
pub(super) fn take(
    connection: &Connection,
    flow_id: &str,
    command: u64,
    input: u64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE flow_commands SET taken_seq = ?3
             WHERE flow_id = ?1 AND seq = ?2 AND taken_seq IS NULL",
        )?
        .execute((flow_id, signed(command), signed(input)))?;
    Ok(())
}

/// Keeps the answer to a command; the first one stays.
pub(super) fn answer(
    connection: &Connection,
    flow_id: &str,
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
        .execute((flow_id, id, now_ms, answer.inline, answer.blob))?;
    Ok(())
}

/// Commands of which something holds, oldest first.
pub(super) fn list(
    connection: &Connection,
    flow_id: &str,
    condition: &str,
) -> Result<Vec<FlowCommand>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM flow_commands WHERE flow_id = ?1 AND {condition} ORDER BY seq"
    ))?;
    let mut rows = statement.query([flow_id])?;
    let mut commands = Vec::new();
    while let Some(row) = rows.next()? {
        commands.push(from_row(connection, row)?.command);
    }
    Ok(commands)
}

fn by_id(
    connection: &Connection,
    flow_id: &str,
    id: &str,
) -> Result<Option<CommandRow>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM flow_commands WHERE flow_id = ?1 AND id = ?2"
    ))?;
    let mut rows = statement.query((flow_id, id))?;
    rows.next()?.map(|row| from_row(connection, row)).transpose()
}

fn from_row(connection: &Connection, row: &Row<'_>) -> Result<CommandRow, StoreError> {
    let command = FlowCommand {
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
