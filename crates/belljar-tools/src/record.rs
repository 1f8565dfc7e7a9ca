//! What a durable run's journal says, as rows of the store.
//!
//! A call is `called` when the code asks for it, `sent` right before it leaves the host, `ended`
//! when the code can have its outcome. Between `sent` and `ended` nobody knows whether it
//! happened. Timers that fired are entries too: together with the outcomes, in this order, they
//! are all that ever reaches the code.

use belljar_store::JournalRow;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One entry of a journal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Called(Called),
    /// The call is about to leave the host.
    Sent {
        call: u32,
    },
    Ended(Ended),
    /// A time the code waited for has come.
    Timer {
        now_ms: f64,
    },
}

/// What the code asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) call: u32,
    pub(crate) server: Option<String>,
    pub(crate) tool: String,
    pub(crate) arguments: Vec<u8>,
}

/// What the code got.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub(crate) call: u32,
    pub(crate) now_ms: f64,
    pub(crate) outcome: Result<Vec<u8>, Vec<u8>>,
}

/// A row that no version of this program has written.
#[derive(Debug, Error)]
#[error("the journal has a row of kind `{kind}` that cannot be read")]
pub struct UnreadableRow {
    kind: String,
}

#[derive(Serialize, Deserialize)]
struct CalledHead {
    server: Option<String>,
    tool: String,
}

#[derive(Serialize, Deserialize)]
struct EndedHead {
    ok: bool,
    now_ms: f64,
}

#[derive(Serialize, Deserialize)]
struct TimerHead {
    now_ms: f64,
}

impl Entry {
    /// The entry as a row.
    pub(crate) fn into_row(self) -> JournalRow {
        let row = |kind: &str, call, head: String, body| JournalRow {
            kind: kind.to_owned(),
            call,
            head,
            body,
        };
        match self {
            Self::Called(Called { call, server, tool, arguments }) => {
                row("called", call, json(&CalledHead { server, tool }), Some(arguments))
            }
            Self::Sent { call } => row("sent", call, "{}".to_owned(), None),
            Self::Ended(Ended { call, now_ms, outcome }) => {
                let ok = outcome.is_ok();
                let body = outcome.unwrap_or_else(|fault| fault);
                row("ended", call, json(&EndedHead { ok, now_ms }), Some(body))
            }
            Self::Timer { now_ms } => row("timer", 0, json(&TimerHead { now_ms }), None),
        }
    }

    /// The entry a row is.
    pub(crate) fn from_row(row: JournalRow) -> Result<Self, UnreadableRow> {
        let JournalRow { kind, call, head, body } = row;
        let body = body.unwrap_or_default();
        let entry = match kind.as_str() {
            "called" => serde_json::from_str(&head).ok().map(|CalledHead { server, tool }| {
                Self::Called(Called { call, server, tool, arguments: body })
            }),
            "sent" => Some(Self::Sent { call }),
            "ended" => serde_json::from_str(&head).ok().map(|EndedHead { ok, now_ms }| {
                let outcome = if ok { Ok(body) } else { Err(body) };
                Self::Ended(Ended { call, now_ms, outcome })
            }),
            "timer" => {
                serde_json::from_str(&head).ok().map(|TimerHead { now_ms }| Self::Timer { now_ms })
            }
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
