//! Whether a connection still lives, and if not, why.

use std::sync::OnceLock;

/// Whether a connection is alive. It stops once, with a reason.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    stopped: OnceLock<StopCause>,
}

#[derive(Debug)]
struct StopCause {
    why: String,
    is_ours: bool,
}

impl Liveness {
    /// The connection has ended. The first reason counts.
    pub(super) fn stop(&self, why: impl Into<String>) {
        let _ = self.stopped.set(StopCause { why: why.into(), is_ours: false });
    }

    /// The host ends the connection because of what the server does. The first reason counts.
    pub(super) fn disconnect(&self, why: impl Into<String>) {
        let _ = self.stopped.set(StopCause { why: why.into(), is_ours: true });
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
