//! The engine of the suite: native code that makes attempts, as an engine's exploit would.

use belljar_contract::{ErrorCode, Stream};
use belljar_wire::{Event, GuestError, RunCommand, RunValue};
use belljar_worker::{CodeRunner, HostLink};
use serde::{Deserialize, Serialize};

use super::{
    attempt::{self, Attempt},
    bait::Bait,
    outcome::Outcome,
};

/// Makes the attempt its "code" names.
#[derive(Debug)]
pub(crate) struct Probe;

/// The answer of a probe.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
}

impl CodeRunner for Probe {
    fn run(&mut self, run: RunCommand, host: &HostLink) -> Result<RunValue, GuestError> {
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
        Ok(RunValue { lossy: false, cut: false, value: encode(&report)? })
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

/// Makes the attempt. If a neighbour has something for it to find, it is there already.
pub(crate) fn attempt(attempt: &Attempt, bait: &Bait) -> Report {
    Report { outcome: (attempt.run)(bait) }
}

/// Does what a neighbour is to find.
pub(crate) fn plant(attempt: &Attempt, bait: &Bait) -> Report {
    let outcome = match attempt.plant {
        Some(plant) => plant(bait),
        None => Outcome::inconclusive("nothing to plant"),
    };
    Report { outcome }
}
