//! Whose a durable run is: this executor's, another process's that lives, or nobody's.

use belljar_store::RunSummary;

use crate::owner::{is_owner_alive, is_owner_this_process};

/// The status of a run that some process is at.
pub(super) const RUNNING: &str = "running";
/// The status of a run that its host could not go on with.
pub(super) const INTERRUPTED: &str = "interrupted";

/// Where a run is, for those who look on. A host that was killed had no time to write that down.
pub fn run_status(run: &RunSummary) -> &str {
    let is_had = is_owner_alive(&run.owner) || is_owner_this_process(&run.owner);
    if run.status == RUNNING && !is_had { INTERRUPTED } else { &run.status }
}
