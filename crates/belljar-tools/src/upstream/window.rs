//! Counts events in a time window, so that what a server repeats stays bounded.

use std::time::Duration;

use tokio::time::Instant;

/// The length of a window.
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// At most so many lines of one server are logged in a [`WINDOW`].
const LOG_LINES: u32 = 200;

/// Counts within the current [`WINDOW`].
#[derive(Debug)]
pub(super) struct RateWindow {
    began: Instant,
    count: u32,
}

impl Default for RateWindow {
    fn default() -> Self {
        Self { began: Instant::now(), count: 0 }
    }
}

impl RateWindow {
    /// Counts one more, and says how many there are in this window.
    pub(super) fn count(&mut self) -> u32 {
        let now = Instant::now();
        if now.duration_since(self.began) > WINDOW {
            *self = Self { began: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count
    }
}

/// Logs what a server says, within bounds.
#[derive(Debug)]
pub(super) struct ServerLog {
    server: String,
    lines: RateWindow,
}

impl ServerLog {
    pub(super) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), lines: RateWindow::default() }
    }

    /// Logs a line, unless there have been too many of them; then it is not even made.
    pub(super) fn line(&mut self, line: impl FnOnce() -> String) {
        match self.lines.count() {
            ..=LOG_LINES => tracing::info!(server = %self.server, "{}", line()),
            count if count == LOG_LINES + 1 => {
                tracing::warn!(server = %self.server, "too many log lines; the rest is dropped");
            }
            _ => {}
        }
    }
}

/// A server's text as one line without control characters.
pub(super) fn one_line(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
