//! What a server sends without being asked: few things are of use, and all of it is bounded.
//!
//! The library answers each request of a server in a task of its own and logs each notification, both
//! without bound. So it only sees requests while few are unanswered, and only the notifications it
//! needs. A server that sends more than any honest one does is disconnected.

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
    window::{ServerLog, WINDOW, Window, one_line},
};

/// A server may have so many requests unanswered; nothing more is read of it meanwhile.
const UNANSWERED: u32 = 64;
/// How long it may leave the answers to them unread.
const UNREAD: Duration = Duration::from_secs(5);
/// No honest server has more requests in a [`WINDOW`].
const REQUESTS: u32 = 1_000;
/// No honest server sends more messages in a [`WINDOW`] that nobody asked for.
const MESSAGES: u32 = 50_000;
/// At most so many notifications reach the library in a [`WINDOW`].
const PASSED: u32 = 100;
/// A longer request or notification is not looked at.
pub(super) const MAX_UNASKED_BYTES: usize = 64 << 10;
/// A logged message of a server is cut after this many characters.
const LOGGED: usize = 2000;

/// Whether the library is to see a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    Pass,
    Drop,
}

/// Judges what one server sends unasked.
pub(super) struct Intake {
    unanswered: Unanswered,
    requests: Window,
    messages: Window,
    passed: Window,
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
            unanswered: Unanswered::default(),
            requests: Window::default(),
            messages: Window::default(),
            passed: Window::default(),
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
        timeout(UNREAD, self.unanswered.room())
            .await
            .map_err(|_| "it does not read the answers to its own requests".to_owned())
    }

    /// Those requests of the server that are to be answered.
    pub(super) fn unanswered(&self) -> Unanswered {
        self.unanswered.clone()
    }

    /// The server asks something, in so many bytes.
    pub(super) fn request(&mut self, bytes: usize) -> Result<Passage, String> {
        self.stray()?;
        if self.requests.count() > REQUESTS {
            return Err(flood(REQUESTS, "requests"));
        }
        if bytes > MAX_UNASKED_BYTES {
            return Err(format!("it sent a request over {} KiB", MAX_UNASKED_BYTES >> 10));
        }
        self.unanswered.add();
        Ok(Passage::Pass)
    }

    /// The server says something, in so many bytes.
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
                let text: String = params().chars().take(LOGGED).collect();
                one_line(&text)
            }),
            "notifications/cancelled" | "notifications/subscriptions/acknowledged"
                if bytes <= MAX_UNASKED_BYTES && self.passed.count() <= PASSED =>
            {
                return Ok(Passage::Pass);
            }
            _ => {}
        }
        Ok(Passage::Drop)
    }

    /// A message nobody asked for, or none at all.
    pub(super) fn stray(&mut self) -> Result<(), String> {
        if self.messages.count() > MESSAGES {
            return Err(flood(MESSAGES, "messages that nobody asked for"));
        }
        Ok(())
    }
}

fn flood(most: u32, what: &str) -> String {
    format!("it sent more than {most} {what} in {} s", WINDOW.as_secs())
}

/// How many requests of a server are unanswered.
#[derive(Debug, Clone, Default)]
pub(super) struct Unanswered(Arc<(AtomicU32, Notify)>);

impl Unanswered {
    fn add(&self) {
        self.0.0.fetch_add(1, Ordering::AcqRel);
    }

    /// One of them is answered when what this gives is dropped.
    pub(super) fn answering(&self) -> Answering {
        Answering(self.clone())
    }

    fn has_room(&self) -> bool {
        self.0.0.load(Ordering::Acquire) < UNANSWERED
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
pub(super) struct Answering(Unanswered);

impl Drop for Answering {
    fn drop(&mut self) {
        let (count, answered) = &*self.0.0;
        let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        answered.notify_waiters();
    }
}
