//! Resumes durable runs that no host has, at start and from then on.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::sleep};

use crate::{backend::Backend, gateway::Gateway, live::LiveRunState};

/// How many runs are resumed at once. A run that waits for a person does not count.
const MAX_RESUMED: usize = 16;
/// How often to look for more: other hosts die, and people decide in terminals.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long requests may take to answer after their runs were ended.
const ANSWER_GRACE: Duration = Duration::from_millis(100);

impl<B: Backend> Gateway<B> {
    /// Resumes durable runs whose host died or stopped, and runs about which a person has decided,
    /// until [`stop_runs`](Self::stop_runs). A resumed run is under way here like any other.
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

    /// Ends every run because the host stops. Durable runs resume on the next host, and requests
    /// that wait for a run are answered.
    pub async fn stop_runs(&self) {
        self.shared.stopping.cancel();
        self.shared.backend.prepare_to_stop();
        if self.shared.runs.end_all().await > 0 {
            sleep(ANSWER_GRACE).await;
        }
    }
}
