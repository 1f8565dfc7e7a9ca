//! The wall clock of a run. While the run waits for a person, it counts only the time the guest works.
//!
//! A guest that waits for the answer uses no CPU time, so its clock stands still. A guest that works
//! meanwhile, even against the rules of its library, pays for the time as usual.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The longest a run waits for people, all its calls together: its cell holds memory.
const MOST_WAITING: Duration = Duration::from_hours(24);

/// The wall time that a run has left.
#[derive(Debug)]
pub(crate) struct RunClock {
    left: Duration,
    /// How long the run has waited for people.
    waited: Duration,
    is_waiting: bool,
    /// The time of the last [`advance`](Self::advance), and the guest's CPU time then.
    at: Instant,
    cpu: Duration,
    waits_for_person: Option<watch::Receiver<bool>>,
}

/// Why a clock has to be advanced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// No time is left.
    OutOfTime,
    /// The run begins to wait for a person, or no longer waits.
    WaitChanged,
}

impl RunClock {
    pub(crate) fn start(left: Duration, waits_for_person: Option<watch::Receiver<bool>>) -> Self {
        let is_waiting = waits_for_person.as_ref().is_some_and(|waits| *waits.borrow());
        Self {
            left,
            waited: Duration::ZERO,
            is_waiting,
            at: Instant::now(),
            cpu: Duration::ZERO,
            waits_for_person,
        }
    }

    /// Completes when the clock has to be advanced; call [`Self::advance`] next. Safe to drop and to call
    /// again.
    pub(crate) async fn tick(&mut self) -> Tick {
        let left =
            if self.is_waiting { MOST_WAITING.saturating_sub(self.waited) } else { self.left };
        let out = sleep_until(self.at + left);
        let Some(waits) = &mut self.waits_for_person else {
            out.await;
            return Tick::OutOfTime;
        };
        tokio::select! {
            () = out => Tick::OutOfTime,
            changed = waits.changed() => {
                if changed.is_err() {
                    // The bridge is gone, so no person is asked any more.
                    self.waits_for_person = None;
                }
                Tick::WaitChanged
            }
        }
    }

    /// Counts the time since the last call; `cpu` is the guest's CPU time in all. Returns whether time is
    /// left.
    pub(crate) fn advance(&mut self, cpu: Duration) -> bool {
        let now = Instant::now();
        let passed = now.duration_since(self.at);
        // Processes that have ended may no longer be counted, so this can be less than before.
        let worked = cpu.saturating_sub(self.cpu);
        (self.at, self.cpu) = (now, cpu);
        if self.is_waiting {
            self.waited += passed;
        }
        let spent = if self.is_waiting { worked.min(passed) } else { passed };
        self.left = self.left.saturating_sub(spent);
        let waits = self.waits_for_person.as_mut();
        self.is_waiting = waits.is_some_and(|waits| *waits.borrow_and_update());
        !self.left.is_zero() && self.waited < MOST_WAITING
    }
}

#[cfg(test)]
mod tests;
