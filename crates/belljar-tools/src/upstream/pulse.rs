//! Whether a connection still lives, and if not, why.

use std::sync::OnceLock;

/// Beats until it is stopped, once.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    stopped: OnceLock<Stop>,
}

#[derive(Debug)]
struct Stop {
    why: String,
    is_ours: bool,
}

impl Pulse {
    /// The connection is over. The first reason counts.
    pub(super) fn stop(&self, why: impl Into<String>) {
        let _ = self.stopped.set(Stop { why: why.into(), is_ours: false });
    }

    /// The host ends the connection for what the server does. The first reason counts.
    pub(super) fn disconnect(&self, why: impl Into<String>) {
        let _ = self.stopped.set(Stop { why: why.into(), is_ours: true });
    }

    /// Why it stopped; `None` while it has not.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(|stop| stop.why.as_str())
    }

    /// Why the host ended it; `None` if it did not.
    pub(super) fn disconnected(&self) -> Option<&str> {
        self.stopped.get().filter(|stop| stop.is_ours).map(|stop| stop.why.as_str())
    }
}
