//! Errors of upstreams, and whether the call may have happened all the same.

use std::time::Duration;

use belljar_contract::{Audience, Limit};
use thiserror::Error;

use super::deadline::LimitSource;

/// Whether any byte of a request had left the host when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WasSent {
    /// Nothing of it was written, and nothing will be: the call did not happen.
    No,
    /// It may have reached the server: whether the call happened is in doubt.
    Perhaps,
}

/// Why there is no answer from an upstream.
///
/// Messages name the server and what failed, never a variable, header, argument or address.
#[derive(Debug, Clone, Error)]
pub enum UpstreamError {
    /// No server of that name is configured.
    #[error("no server `{server}` is configured")]
    UnknownServer {
        /// The name that was asked for.
        server: String,
        /// The servers that are configured.
        known: Vec<String>,
    },
    /// The server could not be started or reached.
    #[error("server `{server}` is not available: {why}")]
    NotStarted {
        /// The server that is missing.
        server: String,
        /// The failure, as a sentence without a subject.
        why: String,
        /// The remedy, if there is one.
        hint: Option<String>,
        /// The last lines it wrote to its standard error; for operators only.
        log: String,
    },
    /// The server failed recently and is not tried again yet.
    #[error("server `{server}` failed ({why}); the next attempt is in {} ms", retry_in.as_millis())]
    BackingOff {
        /// The server that failed.
        server: String,
        /// When it is tried again.
        retry_in: Duration,
        /// The last failure.
        why: String,
    },
    /// It took too long.
    #[error("no answer from server `{server}` within {} ms, {stage}", limit.as_millis())]
    TimedOut {
        /// The server that did not answer.
        server: String,
        /// The limit that was reached.
        limit: Duration,
        /// The party that set the limit, so that a hint can name the setting.
        set_by: LimitSource,
        /// The awaited event.
        stage: WaitStage,
        /// Whether the call may have happened.
        sent: WasSent,
    },
    /// The server has had all the calls it may have in a minute.
    #[error(
        "server `{server}` may be called {per_minute} times a minute; the next call is possible in \
         {} ms, which is longer than this call may take", retry_in.as_millis()
    )]
    RateLimited {
        /// The server that is called too often.
        server: String,
        /// The server's setting `rate_per_minute`.
        per_minute: u32,
        /// When it may be called again.
        retry_in: Duration,
    },
    /// The connection broke before the answer came.
    #[error("the connection to server `{server}` was lost: {why}")]
    Lost {
        /// The server whose connection broke.
        server: String,
        /// The failure, as a sentence without a subject.
        why: String,
        /// Whether the call may have happened.
        sent: WasSent,
    },
    /// The server answered that it will not do it.
    #[error("server `{server}` refused: {message}")]
    Refused {
        /// The server that refused.
        server: String,
        /// The code of the protocol.
        code: i64,
        /// The server's own words, shortened.
        message: String,
    },
    /// The server sent something that is not an answer. The call happened; its outcome is unknown.
    #[error("server `{server}` broke the protocol: {why}")]
    Protocol {
        /// The server that broke the protocol.
        server: String,
        /// The fault of the message that it sent.
        why: String,
    },
    /// The upstreams have been shut down.
    #[error("server `{server}` has been shut down")]
    ShutDown {
        /// The server that was to be called.
        server: String,
    },
}

/// The event that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStage {
    /// A free place among the calls a server gets at once.
    Turn,
    /// The server to start.
    Start,
    /// The list of the server's tools.
    List,
    /// The server to show that it still answers, after a call that it did not answer.
    Health,
    /// The server to answer the call.
    Answer,
}

impl std::fmt::Display for WaitStage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Turn => "waiting behind other calls",
            Self::Start => "waiting for it to start",
            Self::List => "waiting for the list of its tools",
            Self::Health => "waiting for a health check",
            Self::Answer => "waiting for its answer",
        })
    }
}

impl UpstreamError {
    /// The server it is about.
    pub fn server(&self) -> &str {
        match self {
            Self::UnknownServer { server, .. }
            | Self::NotStarted { server, .. }
            | Self::BackingOff { server, .. }
            | Self::TimedOut { server, .. }
            | Self::RateLimited { server, .. }
            | Self::Lost { server, .. }
            | Self::Refused { server, .. }
            | Self::Protocol { server, .. }
            | Self::ShutDown { server } => server,
        }
    }

    /// Whether the call may have happened although there is no answer: then it must not simply be
    /// made again.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::TimedOut { sent, .. } | Self::Lost { sent, .. } => *sent == WasSent::Perhaps,
            Self::Protocol { .. } => true,
            Self::UnknownServer { .. }
            | Self::NotStarted { .. }
            | Self::BackingOff { .. }
            | Self::RateLimited { .. }
            | Self::Refused { .. }
            | Self::ShutDown { .. } => false,
        }
    }

    /// The remedy, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotStarted { hint, .. } => hint.clone(),
            Self::UnknownServer { known, .. } if !known.is_empty() => {
                Some(format!("configured servers: {}", known.join(", ")))
            }
            Self::UnknownServer { .. } => {
                Some("no MCP server is configured: see `[mcp_servers]` and `.mcp.json`".to_owned())
            }
            Self::TimedOut { stage: WaitStage::Turn, .. } => {
                Some("raise `max_concurrent` of the server to allow more parallel calls".to_owned())
            }
            Self::TimedOut { set_by: LimitSource::Caller, .. } => {
                let advice = Limit::ToolTimeout.advice(Audience::CommandLine);
                Some(format!("Make smaller calls. {advice}"))
            }
            Self::TimedOut { set_by: LimitSource::Server, .. } => {
                Some("raise `timeout` of the server".to_owned())
            }
            Self::RateLimited { .. } => Some("raise `rate_per_minute` of the server".to_owned()),
            Self::TimedOut { set_by: LimitSource::Belljar, .. }
            | Self::BackingOff { .. }
            | Self::Lost { .. }
            | Self::Refused { .. }
            | Self::Protocol { .. }
            | Self::ShutDown { .. } => None,
        }
    }
}

/// Why no connection came about.
#[derive(Debug, Clone)]
pub(super) struct StartError {
    pub(super) why: String,
    pub(super) hint: Option<String>,
    pub(super) log: String,
    /// Whether the other handshake might work.
    pub(super) is_handshake: bool,
}

impl StartError {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None, log: String::new(), is_handshake: false }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn of(self, server: &str) -> UpstreamError {
        let Self { why, hint, log, .. } = self;
        UpstreamError::NotStarted { server: server.to_owned(), why, hint, log }
    }
}

/// Shortens an untrusted text for a message.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 500;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}
