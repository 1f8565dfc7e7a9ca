//! What a run tells while it goes on, in order, for one client that follows it.
//!
//! Telling never waits, so events that a client does not take are held here, up to a bound: beyond it,
//! prints are left out, and the client is told that they were. The result has them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::mpsc;

use crate::backend::{ApprovalRequest, Stream};

/// A client that follows a run hears something at least this often, so that it knows that the server
/// is there.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);
/// Texts held for a client that does not take them.
const MAX_HELD_BYTES: usize = 4 << 20;

/// Something a run tells.
#[derive(Debug, Clone)]
pub(crate) enum RunEvent {
    Started {
        run_id: String,
    },
    Printed {
        stream: Stream,
        text: String,
    },
    /// Prints were left out from here on, for a while.
    LeftOut,
    CallBegan {
        tool: String,
    },
    CallEnded {
        tool: String,
        is_ok: bool,
        duration: Duration,
    },
    ApprovalRequested(ApprovalRequest),
    ApprovalSettled {
        approval_id: String,
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

/// The end that tells.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    events: mpsc::UnboundedSender<RunEvent>,
    held: Arc<AtomicUsize>,
    leaves_out: Arc<AtomicBool>,
}

/// The end that hears.
#[derive(Debug)]
pub(crate) struct FeedReceiver {
    events: mpsc::UnboundedReceiver<RunEvent>,
    held: Arc<AtomicUsize>,
}

impl Feed {
    /// Both ends.
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
        // A client that is gone needs nothing any more.
        let _ = self.events.send(event);
    }
}

impl FeedReceiver {
    /// The next thing; `None` when the run tells nothing any more.
    pub(crate) async fn next(&mut self) -> Option<RunEvent> {
        let event = self.events.recv().await?;
        self.held.fetch_sub(event.held_bytes(), Ordering::Relaxed);
        Some(event)
    }
    /// The next thing that was told already.
    pub(crate) fn try_next(&mut self) -> Option<RunEvent> {
        let event = self.events.try_recv().ok()?;
        self.held.fetch_sub(event.held_bytes(), Ordering::Relaxed);
        Some(event)
    }
}
