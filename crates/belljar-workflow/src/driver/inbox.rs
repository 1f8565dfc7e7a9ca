//! Commands on their way from the engine's queue to the driver.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, task::JoinHandle};

use crate::engine::{DurableEngine, EngineError, QueuedCommand};

/// How long one look waits. Looks follow each other without pause.
const PATIENCE: Duration = Duration::from_secs(30);
/// Commands that are fetched at once.
const PAGE: u32 = 64;

/// Fetches commands while it lives.
#[derive(Debug)]
pub(super) struct Inbox {
    received: mpsc::Receiver<Result<QueuedCommand, EngineError>>,
    fetching: JoinHandle<()>,
}

impl Inbox {
    /// Fetches those after a number which nobody took.
    pub(super) fn open<E: DurableEngine + 'static>(
        engine: Arc<E>,
        flow: String,
        after: u64,
    ) -> Self {
        let (sender, received) = mpsc::channel(PAGE as usize);
        let fetching = tokio::spawn(async move { fetch(&*engine, &flow, after, &sender).await });
        Self { received, fetching }
    }

    /// The next one. `None`: there will be none.
    pub(super) async fn next(&mut self) -> Option<Result<QueuedCommand, EngineError>> {
        self.received.recv().await
    }

    /// One that is there already.
    pub(super) fn try_next(&mut self) -> Option<Result<QueuedCommand, EngineError>> {
        self.received.try_recv().ok()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.fetching.abort();
    }
}

async fn fetch(
    engine: &impl DurableEngine,
    flow: &str,
    mut after: u64,
    sender: &mpsc::Sender<Result<QueuedCommand, EngineError>>,
) {
    loop {
        match engine.commands(flow, after, PAGE, PATIENCE).await {
            Ok(rows) => {
                for row in rows {
                    after = after.max(row.command.seq);
                    if row.taken.is_none() && sender.send(Ok(row.command)).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                // The driver ends with it, or has ended.
                let _ = sender.send(Err(error)).await;
                return;
            }
        }
    }
}
