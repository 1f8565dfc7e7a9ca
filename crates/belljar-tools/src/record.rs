//! The entries of a durable run's journal, as rows of the store.
//!
//! A call is `called` when the code asks for it, `sent` right before it leaves the host, `ended`
//! when its outcome is delivered. Between `sent` and `ended` it is unknown whether it
//! happened. Timers that fired are entries too: together with the outcomes, in this order, they
//! are all that ever reaches the code.

use belljar_store::JournalRow;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One entry of a journal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JournalEntry {
    Called(CallEntry),
    /// The call is about to leave the host.
    Sent {
        call: u32,
    },
    Ended(OutcomeEntry),
    /// A timer of the code was due.
    Timer {
        now_ms: f64,
    },
    /// A connection of the code is about to leave the host: what follows depends on it, and cannot be
    /// replayed.
    Connection,
}

/// The kind of a row about a connection.
const CONNECTION: &str = "connection";

/// The row that says that a run is about to open connections.
pub fn connection_row() -> JournalRow {
    JournalEntry::Connection.into_row()
}

/// The row that says that a call, or a request of a fetch, is about to leave the host.
pub fn sent_row(call: u32) -> JournalRow {
    JournalEntry::Sent { call }.into_row()
}

/// Whether a run has opened connections, so that it cannot be replayed.
pub fn has_connections<'a>(rows: impl IntoIterator<Item = &'a JournalRow>) -> bool {
    rows.into_iter().any(|row| row.kind == CONNECTION)
}

/// The call that the code asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallEntry {
    pub(crate) call: u32,
    pub(crate) server: Option<String>,
    pub(crate) tool: String,
    pub(crate) arguments: Vec<u8>,
}

/// The outcome that the code got.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutcomeEntry {
    pub(crate) call: u32,
    pub(crate) now_ms: f64,
    pub(crate) outcome: Result<Vec<u8>, Vec<u8>>,
}

/// A row that this version cannot read.
#[derive(Debug, Error)]
#[error("the journal has a row of kind `{kind}` that cannot be read")]
pub struct UnreadableRow {
    kind: String,
}

#[derive(Serialize, Deserialize)]
struct CallEntryHead {
    server: Option<String>,
    tool: String,
}

#[derive(Serialize, Deserialize)]
struct OutcomeEntryHead {
    ok: bool,
    now_ms: f64,
}

#[derive(Serialize, Deserialize)]
struct TimerEntryHead {
    now_ms: f64,
}

impl JournalEntry {
    /// The entry as a row.
    pub(crate) fn into_row(self) -> JournalRow {
        let row = |kind: &str, call, head: String, body| JournalRow {
            kind: kind.to_owned(),
            call,
            head,
            body,
        };
        match self {
            Self::Called(CallEntry { call, server, tool, arguments }) => {
                row("called", call, json(&CallEntryHead { server, tool }), Some(arguments))
            }
            Self::Sent { call } => row("sent", call, "{}".to_owned(), None),
            Self::Ended(OutcomeEntry { call, now_ms, outcome }) => {
                let ok = outcome.is_ok();
                let body = outcome.unwrap_or_else(|fault| fault);
                row("ended", call, json(&OutcomeEntryHead { ok, now_ms }), Some(body))
            }
            Self::Timer { now_ms } => row("timer", 0, json(&TimerEntryHead { now_ms }), None),
            Self::Connection => row(CONNECTION, 0, "{}".to_owned(), None),
        }
    }

    /// The entry a row is.
    pub(crate) fn from_row(row: JournalRow) -> Result<Self, UnreadableRow> {
        let JournalRow { kind, call, head, body } = row;
        let body = body.unwrap_or_default();
        let entry = match kind.as_str() {
            "called" => serde_json::from_str(&head).ok().map(|CallEntryHead { server, tool }| {
                Self::Called(CallEntry { call, server, tool, arguments: body })
            }),
            "sent" => Some(Self::Sent { call }),
            "ended" => serde_json::from_str(&head).ok().map(|OutcomeEntryHead { ok, now_ms }| {
                let outcome = if ok { Ok(body) } else { Err(body) };
                Self::Ended(OutcomeEntry { call, now_ms, outcome })
            }),
            "timer" => serde_json::from_str(&head)
                .ok()
                .map(|TimerEntryHead { now_ms }| Self::Timer { now_ms }),
            CONNECTION => Some(Self::Connection),
            _ => None,
        };
        entry.ok_or(UnreadableRow { kind })
    }
}

fn json(head: &impl Serialize) -> String {
    // Texts and numbers cannot fail to be JSON.
    serde_json::to_string(head).unwrap_or_default()
}

#[cfg(test)]
mod tests;
