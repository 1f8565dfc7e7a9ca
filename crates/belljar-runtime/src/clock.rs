//! The wall clock of a run, which stands still while a person is asked.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// Time that runs out, except while the run waits for a person.
#[derive(Debug)]
pub(crate) struct Clock {
    left: Duration,
    waits_for_person: Option<watch::Receiver<bool>>,
}

impl Clock {
    pub(crate) fn start(left: Duration, waits_for_person: Option<watch::Receiver<bool>>) -> Self {
        Self { left, waits_for_person }
    }

    /// Completes when no time is left.
    pub(crate) async fn run_out(mut self) {
        loop {
            let Some(waits) = &mut self.waits_for_person else {
                return sleep(self.left).await;
            };
            if *waits.borrow_and_update() {
                if waits.changed().await.is_err() {
                    self.waits_for_person = None;
                }
                continue;
            }
            let began = Instant::now();
            let changed = tokio::select! {
                () = sleep(self.left) => return,
                changed = waits.changed() => changed,
            };
            self.left = self.left.saturating_sub(began.elapsed());
            if changed.is_err() {
                self.waits_for_person = None;
            }
        }
    }
}

#[cfg(test)]
mod tests;
