//! The engine of the suite: native code that makes attempts, as an engine's exploit would.

use std::time::Duration;

use belljar_wire::{ErrorCode, Event, GuestError, RunCommand, Stream};
use belljar_worker::{Done, Engine, HostLink};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::{
    attempt::{self, Attempt},
    bait::Bait,
    outcome::{Conclusion, Outcome},
};

/// How long a probe looks for its neighbour.
const LOOK_FOR: Duration = Duration::from_millis(100);

/// Makes the attempt its "code" names.
#[derive(Debug)]
pub(crate) struct Probe;

/// What a probe answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    /// When it was about to try for the last time, or had planted something; nanoseconds of a
    /// clock all processes share.
    pub(crate) at: u64,
}

impl Engine for Probe {
    fn run(&mut self, run: RunCommand, host: &HostLink) -> Result<Done, GuestError> {
        let invalid = |what: &str| GuestError::new(ErrorCode::RequestInvalid, what);
        let bait: Bait = serde_json::from_slice(&run.context)
            .map_err(|error| invalid(&format!("no bait: {error}")))?;
        let report = match run.code.strip_prefix("plant ") {
            Some(name) => {
                let report = plant(find(name)?, &bait);
                let text = encode(&report)?;
                let _ = host.send(&Event::Print { stream: Stream::Stdout, text });
                // Stay until the host has had enough.
                let _ = host.receive();
                report
            }
            None => attempt(find(&run.code)?, &bait),
        };
        Ok(Done { lossy: false, cut: false, value: encode(&report)? })
    }
}

fn find(name: &str) -> Result<&'static Attempt, GuestError> {
    attempt::find(name)
        .ok_or_else(|| GuestError::new(ErrorCode::RequestInvalid, format!("no attempt {name}")))
}

fn encode(report: &Report) -> Result<Vec<u8>, GuestError> {
    serde_json::to_vec(report)
        .map_err(|error| GuestError::new(ErrorCode::RequestInvalid, error.to_string()))
}

/// Makes the attempt; one to find a neighbour, again and again for a while.
pub(crate) fn attempt(attempt: &Attempt, bait: &Bait) -> Report {
    let started = now();
    for looks in 1.. {
        let at = now();
        let outcome = (attempt.run)(bait);
        let again = attempt.plant.is_some() && outcome.outcome == Conclusion::Blocked;
        if !again || (looks > 2 && now() - started > LOOK_FOR.as_nanos() as u64) {
            return Report { outcome, at };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Report { outcome: Outcome::inconclusive("never looked"), at: 0 }
}

/// Does what a neighbour is to find.
pub(crate) fn plant(attempt: &Attempt, bait: &Bait) -> Report {
    let outcome = match attempt.plant {
        Some(plant) => plant(bait),
        None => Outcome::inconclusive("nothing to plant"),
    };
    Report { outcome, at: now() }
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    seconds * 1_000_000_000 + nanoseconds
}
