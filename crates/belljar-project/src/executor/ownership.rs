//! The status of a durable run, considering whether its owner lives.

use belljar_store::RunSummary;

use crate::owner::{is_owner_alive, is_owner_this_process};

/// The status of a run that a process works on.
pub(super) const RUNNING: &str = "running";
/// The status of a run that its host had to leave.
pub(super) const INTERRUPTED: &str = "interrupted";

/// The status of a run as clients see it. A killed host had no time to write `interrupted`.
pub fn run_status(run: &RunSummary) -> &str {
    let is_had = is_owner_alive(&run.owner) || is_owner_this_process(&run.owner);
    if run.status == RUNNING && !is_had { INTERRUPTED } else { &run.status }
}
