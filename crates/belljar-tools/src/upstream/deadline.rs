//! Deadlines for servers. An error names the limit and who set it.

use std::time::Duration;

use tokio::time::Instant;

use super::error::{UpstreamError, WaitStage, WasSent};

/// How long a call may take, and how much of that is spent.
#[derive(Debug, Clone, Copy)]
pub struct CallTime {
    limit: Duration,
    spent: Duration,
}

impl CallTime {
    /// The same limit with more time spent, such as for looking up the tool.
    #[must_use]
    pub fn after(self, spent: Duration) -> Self {
        Self { spent: self.spent + spent, ..self }
    }

    /// The remaining time.
    pub(crate) fn left(self) -> Duration {
        self.limit.saturating_sub(self.spent)
    }
}

impl From<Duration> for CallTime {
    fn from(limit: Duration) -> Self {
        Self { limit, spent: Duration::ZERO }
    }
}

/// The party that set a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSource {
    /// The caller of the run or of the tool: `--tool-timeout`, `tool_timeout_ms`.
    Caller,
    /// The configuration of the server: its `timeout`.
    Server,
    /// A fixed limit of this program.
    Belljar,
}

/// A point in time, and the limit it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    limit: Duration,
    set_by: LimitSource,
}

impl Deadline {
    /// A limit of Belljar's own, counted from now.
    pub(super) fn in_time(limit: Duration) -> Self {
        Self::since(Instant::now(), limit)
    }

    /// The same, counted from a time in the past.
    pub(super) fn since(begun: Instant, limit: Duration) -> Self {
        Self { at: begun + limit, limit, set_by: LimitSource::Belljar }
    }

    /// The rest of a call's time, counted from now. The shorter of the call's limit and the server's
    /// applies.
    pub(super) fn of_call(time: CallTime, server_limit: Duration) -> Self {
        let (limit, set_by) = match time.limit <= server_limit {
            true => (time.limit, LimitSource::Caller),
            false => (server_limit, LimitSource::Server),
        };
        Self { at: Instant::now() + limit.saturating_sub(time.spent), limit, set_by }
    }

    /// The error for a deadline that has passed.
    pub(super) fn missed(self, server: &str, stage: WaitStage, sent: WasSent) -> UpstreamError {
        let (limit, set_by) = (self.limit, self.set_by);
        UpstreamError::TimedOut { server: server.to_owned(), limit, set_by, stage, sent }
    }
}
