//! The wall clock of a run. While a person is asked it counts only the time the guest works.
//!
//! A guest that waits for the answer uses no CPU time, so its clock stands still. One that goes on
//! meanwhile, also against the rules of its library, pays for it as if nobody were asked.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The longest a run waits for people, all its calls taken together: its cell holds memory.
const MOST_WAITING: Duration = Duration::from_hours(24);

/// Time that runs out.
#[derive(Debug)]
pub(crate) struct Clock {
    left: Duration,
    /// How long people were waited for.
    waited: Duration,
    is_waiting: bool,
    /// What was known when the clock was looked at last.
    at: Instant,
    cpu: Duration,
    waits_for_person: Option<watch::Receiver<bool>>,
}

/// Why a clock wants to be looked at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// No time is left.
    OutOfTime,
    /// The run begins to wait for a person, or no longer does.
    Turned,
}

impl Clock {
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

    /// Completes when there is something to do; [`Self::advance`] comes next. May be dropped and
    /// called again.
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
            turned = waits.changed() => {
                if turned.is_err() {
                    // Nobody is left who could ask.
                    self.waits_for_person = None;
                }
                Tick::Turned
            }
        }
    }

    /// Counts what has passed since the last time, in which the guest came to this much CPU time
    /// in all. Says whether time is left.
    pub(crate) fn advance(&mut self, cpu: Duration) -> bool {
        let now = Instant::now();
        let passed = now.duration_since(self.at);
        // Of processes that have ended it may no longer be known: then it is less than before.
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
