//! How many calls a server gets in a minute.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);

/// The times of the last calls. No minute has more calls in it than are allowed, wherever it begins.
#[derive(Debug)]
pub(super) struct CallRate {
    per_minute: usize,
    calls: VecDeque<Instant>,
}

impl CallRate {
    pub(super) fn new(per_minute: u32) -> Self {
        Self {
            per_minute: usize::try_from(per_minute).unwrap_or(usize::MAX),
            calls: VecDeque::new(),
        }
    }

    /// Reserves the next possible time; reserves nothing and returns it as an error if it is after
    /// `latest`.
    pub(super) fn take(&mut self, now: Instant, latest: Instant) -> Result<Instant, Instant> {
        while self.calls.front().is_some_and(|call| *call + WINDOW <= now) {
            self.calls.pop_front();
        }
        let before = self.calls.len().checked_sub(self.per_minute);
        let at = before.and_then(|at| self.calls.get(at)).map_or(now, |call| *call + WINDOW);
        if at > latest {
            return Err(at);
        }
        self.calls.push_back(at);
        Ok(at)
    }
}
