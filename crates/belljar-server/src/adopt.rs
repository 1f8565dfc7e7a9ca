//! Runs that nobody has: a host takes them up by itself, when it starts and while it lives.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::sleep};

use crate::{backend::Backend, gateway::Gateway, live::LiveRunState};

/// How many are taken up at once. One that waits for a person does not count.
const MOST_AT_ONCE: usize = 16;
/// How often it is looked for more: other processes die, and people decide in terminals.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the answers of runs that were just ended may take to be written.
const LAST_ANSWERS: Duration = Duration::from_millis(100);

impl<B: Backend> Gateway<B> {
    /// Goes on with durable runs whose host died or stopped, and with those for which a person has
    /// decided, until [`leave_runs`](Self::leave_runs). Each is under way here like any other from then
    /// on.
    pub async fn adopt_runs(&self) {
        let stop = &self.shared.leaving;
        let places = Arc::new(Semaphore::new(MOST_AT_ONCE));
        loop {
            let resumable = tokio::select! {
                () = stop.cancelled() => return,
                resumable = self.shared.backend.resumable_runs() => resumable,
            };
            for run in resumable {
                if self.shared.runs.find(&run.id).is_some() {
                    continue;
                }
                let Ok(place) = places.clone().try_acquire_owned() else { break };
                let live = self.start_resumed(run);
                tokio::spawn(async move {
                    let mut state = live.watch();
                    let until = |state: &LiveRunState| {
                        state.finished.is_some() || !state.waiting.is_empty()
                    };
                    let _ = state.wait_for(until).await;
                    drop(place);
                });
            }
            let is_full = places.available_permits() == 0;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.shared.backend.more_resumable() => {}
                _ = places.acquire(), if is_full => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Ends every run, because the host does: those that survive it go on with the next, and whoever
    /// waits for one is told.
    pub async fn leave_runs(&self) {
        self.shared.leaving.cancel();
        self.shared.backend.prepare_to_stop();
        if self.shared.runs.end_all().await > 0 {
            sleep(LAST_ANSWERS).await;
        }
    }
}
