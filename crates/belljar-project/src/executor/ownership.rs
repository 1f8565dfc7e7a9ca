//! The status of a durable run, considering whether its owner lives.

use belljar_contract::RunStatus;
use belljar_store::RunSummary;

use crate::owner::{is_owner_alive, is_owner_this_process};

/// The status of a run as clients see it. A killed host had no time to write `interrupted`.
pub fn run_status(run: &RunSummary) -> RunStatus {
    let has_host = is_owner_alive(&run.owner) || is_owner_this_process(&run.owner);
    if run.status == RunStatus::Running && !has_host { RunStatus::Interrupted } else { run.status }
}
