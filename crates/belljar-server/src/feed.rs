//! The events of a run, in order, for one client that follows it.
//!
//! Sending never waits, so events that a client does not read are held here, up to a bound. Beyond
//! the bound, prints are dropped, and the client learns that they were. The result still has them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::mpsc;

use belljar_contract::{ApprovalId, RunId, Stream};

use crate::backend::ApprovalRequest;

/// A client that follows a run receives something at least this often, so that it knows that the
/// server is alive.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);
/// The most bytes of text held for a client that does not read them.
const MAX_HELD_BYTES: usize = 4 << 20;

/// An event of a run, as clients see it.
#[derive(Debug, Clone)]
pub(crate) enum RunEvent {
    Started {
        run_id: RunId,
    },
    Printed {
        stream: Stream,
        text: String,
    },
    /// Prints after this event were dropped, until the client caught up.
    LeftOut,
    CallBegan {
        tool: String,
    },
    CallEnded {
        tool: String,
        is_ok: bool,
        duration: Duration,
    },
    ApprovalRequested(Box<ApprovalRequest>),
    ApprovalSettled {
        approval_id: ApprovalId,
    },
}

impl RunEvent {
    fn held_bytes(&self) -> usize {
        match self {
            Self::Printed { text, .. } => text.len(),
            Self::Started { .. }
            | Self::LeftOut
            | Self::CallBegan { .. }
            | Self::CallEnded { .. }
            | Self::ApprovalRequested(_)
            | Self::ApprovalSettled { .. } => 0,
        }
    }
}

/// The sending end; the run has it.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    events: mpsc::UnboundedSender<RunEvent>,
    held: Arc<AtomicUsize>,
    leaves_out: Arc<AtomicBool>,
}

/// The receiving end; the client's stream has it.
#[derive(Debug)]
pub(crate) struct FeedReceiver {
    events: mpsc::UnboundedReceiver<RunEvent>,
    held: Arc<AtomicUsize>,
}

impl Feed {
    /// Both ends of a new feed.
    pub(crate) fn new() -> (Self, FeedReceiver) {
        let (sender, events) = mpsc::unbounded_channel();
        let held = Arc::new(AtomicUsize::new(0));
        let feed = Self { events: sender, held: held.clone(), leaves_out: Arc::default() };
        (feed, FeedReceiver { events, held })
    }

    pub(crate) fn send(&self, event: RunEvent) {
        let bytes = event.held_bytes();
        if bytes > 0 {
            let is_full = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_HELD_BYTES;
            let was_full = self.leaves_out.swap(is_full, Ordering::Relaxed);
            if is_full {
                self.held.fetch_sub(bytes, Ordering::Relaxed);
                if !was_full {
                    let _ = self.events.send(RunEvent::LeftOut);
                }
                return;
            }
        }
        // The client may be gone, and then needs no events.
        let _ = self.events.send(event);
    }
}

impl FeedReceiver {
    /// Waits for the next event; `None` when the run sends no more.
    pub(crate) async fn next(&mut self) -> Option<RunEvent> {
        let event = self.events.recv().await?;
        self.held.fetch_sub(event.held_bytes(), Ordering::Relaxed);
        Some(event)
    }
    /// The next event that has already been sent, if there is one.
    pub(crate) fn try_next(&mut self) -> Option<RunEvent> {
        let event = self.events.try_recv().ok()?;
        self.held.fetch_sub(event.held_bytes(), Ordering::Relaxed);
        Some(event)
    }
}
