//! The port to the audit log: every connection and every refusal is reported to it.

use std::{fmt, fmt::Debug, future::Future, net::SocketAddr, pin::Pin};

use thiserror::Error;

use crate::{approval::RequestSummary, host::RemoteHost, policy::NetRefusal};

/// More of a path, or of a text that is no host, is not shown.
const MAX_SHOWN_CHARS: usize = 100;

/// A host and a port, as the guest asked for them, to be shown and recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host in its canonical form; the beginning of the text, with escapes, if it names no host.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Destination {
    pub(crate) fn new(host: &RemoteHost, port: u16) -> Self {
        Self { host: host.to_string(), port }
    }

    pub(crate) fn malformed(text: &[u8], port: u16) -> Self {
        let text = String::from_utf8_lossy(text);
        Self { host: text.escape_default().take(MAX_SHOWN_CHARS).collect(), port }
    }
}

/// One report about a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// The number of the connection; the reports of one connection have the same.
    pub connection: u64,
    /// The number of the fetch that it is for; `None` if a program of the guest made it.
    pub fetch: Option<u32>,
    /// Where it goes.
    pub destination: Destination,
    /// The request, if it is about one that the proxy has seen.
    pub request: Option<RequestSummary>,
    /// The rule that allowed it, as the operator wrote it; `None` if none did.
    pub rule: Option<String>,
    /// Whether the rule asks, and a person has approved it.
    pub is_approved: bool,
    /// A remark for the record. The proxy itself adds none.
    pub note: Option<String>,
    /// The outcome.
    pub outcome: ConnectionOutcome,
}

/// The outcome of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionOutcome {
    /// It is allowed. The report comes before the name is resolved.
    Allowed,
    /// It was refused, before or after it was allowed.
    Refused(NetRefusal),
    /// The host could not be reached.
    Failed {
        /// The error of the operating system.
        message: String,
    },
    /// It has ended.
    Closed {
        /// The address it went to.
        address: SocketAddr,
        /// Bytes from the guest.
        sent: u64,
        /// Bytes to the guest.
        received: u64,
    },
}

/// A report that could not be written down.
#[derive(Debug, Error)]
#[error("could not record a connection: {0}")]
pub struct LogFailure(pub String);

/// Receives the reports of one run's connections.
pub trait ConnectionLog: Debug + Send + Sync {
    /// Writes a report down. A connection whose [`ConnectionOutcome::Allowed`] cannot be written is not
    /// made.
    fn record<'a>(
        &'a self,
        event: &'a ConnectionEvent,
    ) -> Pin<Box<dyn Future<Output = Result<(), LogFailure>> + Send + 'a>>;
}

impl ConnectionEvent {
    /// The subject for people: `HOST:PORT`, or `METHOD HOST:PORT/PATH` if it is a request.
    pub fn subject(&self) -> String {
        let Some(RequestSummary { method, path, .. }) = &self.request else {
            return self.destination.to_string();
        };
        let path: String = path.escape_debug().take(MAX_SHOWN_CHARS).collect();
        format!("{method} {}{path}", self.destination)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}
