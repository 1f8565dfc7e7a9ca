//! What a run tells while it goes on, in order, for one client that follows it.
//!
//! Telling never waits, so what a client does not take is held here, up to a bound: beyond it,
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
    Waits(ApprovalRequest),
    Settled {
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
            | Self::Waits(_)
            | Self::Settled { .. } => 0,
        }
    }
}

/// The end that tells.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    told: mpsc::UnboundedSender<RunEvent>,
    held: Arc<AtomicUsize>,
    leaves_out: Arc<AtomicBool>,
}

/// The end that hears.
#[derive(Debug)]
pub(crate) struct FeedReceiver {
    told: mpsc::UnboundedReceiver<RunEvent>,
    held: Arc<AtomicUsize>,
}

impl Feed {
    /// Both ends.
    pub(crate) fn new() -> (Self, FeedReceiver) {
        let (sender, told) = mpsc::unbounded_channel();
        let held = Arc::new(AtomicUsize::new(0));
        let feed = Self { told: sender, held: held.clone(), leaves_out: Arc::default() };
        (feed, FeedReceiver { told, held })
    }

    pub(crate) fn tell(&self, what: RunEvent) {
        let bytes = what.held_bytes();
        if bytes > 0 {
            let is_full = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_HELD_BYTES;
            let was_full = self.leaves_out.swap(is_full, Ordering::Relaxed);
            if is_full {
                self.held.fetch_sub(bytes, Ordering::Relaxed);
                if !was_full {
                    let _ = self.told.send(RunEvent::LeftOut);
                }
                return;
            }
        }
        // A client that is gone needs nothing any more.
        let _ = self.told.send(what);
    }
}

impl FeedReceiver {
    /// The next thing; `None` when the run tells nothing any more.
    pub(crate) async fn next(&mut self) -> Option<RunEvent> {
        let what = self.told.recv().await?;
        self.held.fetch_sub(what.held_bytes(), Ordering::Relaxed);
        Some(what)
    }
    /// The next thing that was told already.
    pub(crate) fn now(&mut self) -> Option<RunEvent> {
        let what = self.told.try_recv().ok()?;
        self.held.fetch_sub(what.held_bytes(), Ordering::Relaxed);
        Some(what)
    }
}
