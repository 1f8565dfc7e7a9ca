//! How long a server is waited for, and who set that limit: an error has to name both.

use std::time::Duration;

use tokio::time::Instant;

use super::error::{Sent, Stage, UpstreamError};

/// How long a call may take, and how much of that is over.
#[derive(Debug, Clone, Copy)]
pub struct CallTime {
    limit: Duration,
    spent: Duration,
}

impl CallTime {
    /// The same limit, of which so much is over: the tool had to be looked up first.
    #[must_use]
    pub fn after(self, spent: Duration) -> Self {
        Self { spent: self.spent + spent, ..self }
    }

    /// What is left of it.
    pub(crate) fn left(self) -> Duration {
        self.limit.saturating_sub(self.spent)
    }
}

impl From<Duration> for CallTime {
    fn from(limit: Duration) -> Self {
        Self { limit, spent: Duration::ZERO }
    }
}

/// Who set a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSource {
    /// Whoever asked for the run or the call: `--tool-timeout`, `tool_timeout_ms`.
    Caller,
    /// The configuration of the server: its `timeout`.
    Server,
    /// A fixed limit of this program.
    Belljar,
}

/// Until when something is waited for, and which limit that is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    limit: Duration,
    set_by: LimitSource,
}

impl Deadline {
    /// A limit of Belljar's own, from now on.
    pub(super) fn in_time(limit: Duration) -> Self {
        Self::since(Instant::now(), limit)
    }

    /// The same, from a time in the past on.
    pub(super) fn since(begun: Instant, limit: Duration) -> Self {
        Self { at: begun + limit, limit, set_by: LimitSource::Belljar }
    }

    /// What is left of a call's time, from now on. Of the call's limit and that of its server the
    /// shorter counts.
    pub(super) fn of_call(time: CallTime, server_limit: Duration) -> Self {
        let (limit, set_by) = match time.limit <= server_limit {
            true => (time.limit, LimitSource::Caller),
            false => (server_limit, LimitSource::Server),
        };
        Self { at: Instant::now() + limit.saturating_sub(time.spent), limit, set_by }
    }

    /// The error of who waited in vain.
    pub(super) fn missed(self, server: &str, stage: Stage, sent: Sent) -> UpstreamError {
        let (limit, set_by) = (self.limit, self.set_by);
        UpstreamError::TimedOut { server: server.to_owned(), limit, set_by, stage, sent }
    }
}
