//! Whether a connection still lives, and if not, why.

use std::sync::OnceLock;

/// Beats until it is stopped, once.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    stopped: OnceLock<String>,
}

impl Pulse {
    /// Stops it. The first reason counts.
    pub(super) fn stop(&self, why: impl Into<String>) {
        let _ = self.stopped.set(why.into());
    }

    /// Why it stopped; `None` while it has not.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }
}
