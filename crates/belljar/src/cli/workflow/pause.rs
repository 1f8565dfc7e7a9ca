//! Notices for a paused workflow, which starts no tasks until it is continued.

use std::time::{Duration, Instant};

use belljar_contract::WorkflowStatus;
use belljar_workflow::{Machine, WorkflowEvent, WorkflowEventKind};

/// How long a pause lasts before it is reported: a `continue` may be under way.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Says that a workflow is paused, and which command continues it. Resuming alone is not enough.
pub(super) fn paused(flow: &str) -> String {
    format!("the workflow is paused; to continue: belljar workflow command {flow} continue")
}

/// The same for a workflow that no host drives: the command is stored until one does.
pub(super) fn paused_and_left(flow: &str) -> String {
    format!("{}, then belljar workflow resume {flow}", paused(flow))
}

/// A pause that has not been reported yet.
#[derive(Debug, Default)]
pub(super) struct PauseNotice {
    unreported_since: Option<Instant>,
}

impl PauseNotice {
    /// The pause of a workflow in its current state.
    pub(super) fn of(machine: &Machine) -> Self {
        let is_paused = machine.status() == WorkflowStatus::Paused;
        Self { unreported_since: is_paused.then(Instant::now) }
    }

    /// Notes events that pause or continue the workflow.
    pub(super) fn observe(&mut self, event: &WorkflowEvent) {
        let happened = &event.happened;
        if matches!(
            happened,
            WorkflowEventKind::WorkflowPaused | WorkflowEventKind::RolledBack { .. }
        ) {
            self.unreported_since = Some(Instant::now());
        }
        if matches!(
            happened,
            WorkflowEventKind::WorkflowContinued | WorkflowEventKind::WorkflowEnded { .. }
        ) {
            self.unreported_since = None;
        }
    }

    /// Whether to report the pause now; true once per pause.
    pub(super) fn is_due(&mut self) -> bool {
        self.unreported_since.take_if(|since| since.elapsed() >= SETTLE_TIME).is_some()
    }
}
