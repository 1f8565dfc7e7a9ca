//! Runs that nobody has: a host takes them up by itself, when it starts and while it lives.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::sleep};

use crate::{backend::Backend, gateway::Gateway, live::LiveRunState};

/// How many are taken up at once. One that waits for a person does not count.
const MAX_RESUMED: usize = 16;
/// How often it is looked for more: other processes die, and people decide in terminals.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long the answers of runs that were just ended may take to be written.
const ANSWER_GRACE: Duration = Duration::from_millis(100);

impl<B: Backend> Gateway<B> {
    /// Goes on with durable runs whose host died or stopped, and with those for which a person has
    /// decided, until [`stop_runs`](Self::stop_runs). Each is under way here like any other from then
    /// on.
    pub async fn resume_runs(&self) {
        let stop = &self.shared.stopping;
        let slots = Arc::new(Semaphore::new(MAX_RESUMED));
        loop {
            let resumable = tokio::select! {
                () = stop.cancelled() => return,
                resumable = self.shared.backend.resumable_runs() => resumable,
            };
            for run in resumable {
                if self.shared.runs.find(&run.id).is_some() {
                    continue;
                }
                let Ok(slot) = slots.clone().try_acquire_owned() else { break };
                let live = self.start_resumed(run);
                tokio::spawn(async move {
                    let mut state = live.watch();
                    let until = |state: &LiveRunState| {
                        state.finished.is_some() || !state.waiting.is_empty()
                    };
                    let _ = state.wait_for(until).await;
                    drop(slot);
                });
            }
            let is_full = slots.available_permits() == 0;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.shared.backend.more_resumable() => {}
                _ = slots.acquire(), if is_full => {}
                () = sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Ends every run, because the host does: those that survive it go on with the next, and whoever
    /// waits for one is told.
    pub async fn stop_runs(&self) {
        self.shared.stopping.cancel();
        self.shared.backend.prepare_to_stop();
        if self.shared.runs.end_all().await > 0 {
            sleep(ANSWER_GRACE).await;
        }
    }
}
