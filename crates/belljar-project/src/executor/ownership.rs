//! Whose a durable run is: this executor's, another process's that lives, or nobody's.

use belljar_contract::RunStatus;
use belljar_store::RunSummary;

use crate::owner::{is_owner_alive, is_owner_this_process};

/// Where a run is, for those who look on. A host that was killed had no time to write that down.
pub fn run_status(run: &RunSummary) -> RunStatus {
    let has_host = is_owner_alive(&run.owner) || is_owner_this_process(&run.owner);
    if run.status == RunStatus::Running && !has_host { RunStatus::Interrupted } else { run.status }
}
