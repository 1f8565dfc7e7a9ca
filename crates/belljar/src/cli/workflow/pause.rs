//! A workflow that is paused starts nothing: whoever waits for it is told so, and how it goes on.

use std::time::{Duration, Instant};

use belljar_workflow::{Machine, WorkflowEvent, WorkflowEventKind, WorkflowStatus};

/// How long a pause lasts before it is told: a `continue` that was sent before is taken first.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// That a workflow is paused, and the command that lets it go on. Taking it up is not enough.
pub(super) fn paused(flow: &str) -> String {
    format!("it is paused; go on with it: belljar workflow command {flow} continue")
}

/// The same for one that nobody runs: the command is kept until somebody takes it up.
pub(super) fn paused_and_left(flow: &str) -> String {
    format!("{}, then belljar workflow resume {flow}", paused(flow))
}

/// A pause that the person who watches has not been told of yet.
#[derive(Debug, Default)]
pub(super) struct PauseNotice {
    unreported_since: Option<Instant>,
}

impl PauseNotice {
    /// As a workflow is now.
    pub(super) fn of(machine: &Machine) -> Self {
        let is_paused = machine.status() == WorkflowStatus::Paused;
        Self { unreported_since: is_paused.then(Instant::now) }
    }

    /// Hears what happens.
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

    /// Whether to tell of it now; it is told once.
    pub(super) fn is_due(&mut self) -> bool {
        self.unreported_since.take_if(|since| since.elapsed() >= SETTLE_TIME).is_some()
    }
}
