//! Limits on the unsolicited messages of a server.
//!
//! The library answers each request of a server in a task of its own and logs each notification, both
//! without bound. So it gets requests only while few are unanswered, and only the notifications it
//! needs. A server that sends more than any honest one would is disconnected.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use super::{
    connection::ToolsChanged,
    window::{RateWindow, ServerLog, WINDOW, one_line},
};

/// With so many unanswered requests of a server, nothing more is read from it.
const MAX_UNANSWERED: u32 = 64;
/// How long it may leave the answers to them unread.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(5);
/// No honest server has more requests in a [`WINDOW`].
const MAX_REQUESTS: u32 = 1_000;
/// No honest server sends more unsolicited messages in a [`WINDOW`].
const MAX_MESSAGES: u32 = 50_000;
/// At most so many notifications reach the library in a [`WINDOW`].
const MAX_PASSED: u32 = 100;
/// A longer request or notification is not parsed.
pub(super) const MAX_UNASKED_BYTES: usize = 64 << 10;
/// A logged message of a server is cut after this many characters.
const MAX_LOGGED_CHARACTERS: usize = 2000;

/// Whether the library is to see a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    Pass,
    Drop,
}

/// Counts and filters the unsolicited messages of one server.
pub(super) struct Intake {
    unanswered: UnansweredCount,
    requests: RateWindow,
    messages: RateWindow,
    passed: RateWindow,
    log: ServerLog,
    tools_changed: ToolsChanged,
}

impl std::fmt::Debug for Intake {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Intake").field("unanswered", &self.unanswered).finish_non_exhaustive()
    }
}

impl Intake {
    pub(super) fn new(server: &str, tools_changed: ToolsChanged) -> Self {
        Self {
            unanswered: UnansweredCount::default(),
            requests: RateWindow::default(),
            messages: RateWindow::default(),
            passed: RateWindow::default(),
            log: ServerLog::new(server),
            tools_changed,
        }
    }

    /// Waits until few enough requests of the server are unanswered. The error says why it is to be
    /// disconnected.
    pub(super) async fn room(&self) -> Result<(), String> {
        if self.unanswered.has_room() {
            return Ok(());
        }
        timeout(UNREAD_TIMEOUT, self.unanswered.room())
            .await
            .map_err(|_| "it does not read the answers to its own requests".to_owned())
    }

    /// The counter of the server's unanswered requests.
    pub(super) fn unanswered(&self) -> UnansweredCount {
        self.unanswered.clone()
    }

    /// Takes a request of the server.
    pub(super) fn request(&mut self, bytes: usize) -> Result<Passage, String> {
        self.stray()?;
        if self.requests.count() > MAX_REQUESTS {
            return Err(flood(MAX_REQUESTS, "requests"));
        }
        if bytes > MAX_UNASKED_BYTES {
            return Err(format!("it sent a request over {} KiB", MAX_UNASKED_BYTES >> 10));
        }
        self.unanswered.add();
        Ok(Passage::Pass)
    }

    /// Takes a notification of the server.
    pub(super) fn notification(
        &mut self,
        method: &str,
        bytes: usize,
        params: impl FnOnce() -> String,
    ) -> Result<Passage, String> {
        self.stray()?;
        match method {
            "notifications/tools/list_changed" => (self.tools_changed)(),
            "notifications/message" => self.log.line(|| {
                let text: String = params().chars().take(MAX_LOGGED_CHARACTERS).collect();
                one_line(&text)
            }),
            "notifications/cancelled" | "notifications/subscriptions/acknowledged"
                if bytes <= MAX_UNASKED_BYTES && self.passed.count() <= MAX_PASSED =>
            {
                return Ok(Passage::Pass);
            }
            _ => {}
        }
        Ok(Passage::Drop)
    }

    /// Counts an unsolicited message, or a line that is no message.
    pub(super) fn stray(&mut self) -> Result<(), String> {
        if self.messages.count() > MAX_MESSAGES {
            return Err(flood(MAX_MESSAGES, "unsolicited messages"));
        }
        Ok(())
    }
}

fn flood(most: u32, what: &str) -> String {
    format!("it sent more than {most} {what} in {} s", WINDOW.as_secs())
}

/// How many requests of a server are unanswered.
#[derive(Debug, Clone, Default)]
pub(super) struct UnansweredCount(Arc<(AtomicU32, Notify)>);

impl UnansweredCount {
    fn add(&self) {
        self.0.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts one of them as answered when it is dropped.
    pub(super) fn answer_guard(&self) -> AnswerGuard {
        AnswerGuard(self.clone())
    }

    fn has_room(&self) -> bool {
        self.0.0.load(Ordering::Acquire) < MAX_UNANSWERED
    }

    async fn room(&self) {
        loop {
            let answered = self.0.1.notified();
            if self.has_room() {
                return;
            }
            answered.await;
        }
    }
}

/// An answer on its way to the server.
#[derive(Debug)]
pub(super) struct AnswerGuard(UnansweredCount);

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        let (count, answered) = &*self.0.0;
        let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        answered.notify_waiters();
    }
}
