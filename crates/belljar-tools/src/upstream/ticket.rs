//! The state of one request: whether it left the host, and its raw answer.
//!
//! A request is queued behind others that are being written. A caller that gives it up meanwhile must be
//! sure that it never happens, so giving up and beginning to write exclude each other.

use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use super::error::WasSent;

/// In the queue; no byte of it was written.
const QUEUED: u8 = 0;
/// Being written, or written.
const WRITING: u8 = 1;
/// Could not be written, not even its first byte.
const UNSENT: u8 = 2;
/// Given up; it will not be written.
const WITHDRAWN: u8 = 3;

/// Attached to a request: the transport reports through it.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    state: AtomicU8,
    answer: Mutex<Option<RawResult>>,
}

/// The result of a request within the line it came in.
#[derive(Debug)]
pub(super) struct RawResult {
    line: Vec<u8>,
    range: Range<usize>,
}

impl RawResult {
    pub(super) fn new(line: Vec<u8>, range: Range<usize>) -> Self {
        Self { line, range }
    }

    pub(super) fn json(&self) -> &[u8] {
        self.line.get(self.range.clone()).unwrap_or_default()
    }
}

impl Ticket {
    /// Begins to write. Not allowed once it is withdrawn.
    pub(super) fn begin(&self) -> bool {
        self.change(QUEUED, WRITING)
    }

    /// Notes that the write failed before its first byte left the host.
    pub(super) fn nothing_was_sent(&self) {
        self.state.store(UNSENT, Ordering::Release);
    }

    /// Gives up on it, and says whether it may have left the host by then.
    pub(super) fn give_up(&self) -> WasSent {
        if self.change(QUEUED, WITHDRAWN) || self.state.load(Ordering::Acquire) != WRITING {
            WasSent::No
        } else {
            WasSent::Perhaps
        }
    }

    pub(super) fn set_answer(&self, answer: RawResult) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }

    pub(super) fn take_answer(&self) -> Option<RawResult> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
