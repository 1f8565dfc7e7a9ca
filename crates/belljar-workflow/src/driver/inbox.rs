//! Commands on their way from the store's queue to the driver.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, task::JoinHandle};

use crate::workflow_store::{QueuedCommand, WorkflowStore, WorkflowStoreError};

/// How long one request for commands waits; the next follows at once.
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// Commands fetched with one request.
const PAGE: u32 = 64;

/// Fetches commands in the background until it is dropped.
#[derive(Debug)]
pub(super) struct Inbox {
    received: mpsc::Receiver<Result<QueuedCommand, WorkflowStoreError>>,
    fetching: JoinHandle<()>,
}

impl Inbox {
    /// Fetches commands after a number that were not taken yet.
    pub(super) fn open<S: WorkflowStore + 'static>(
        store: Arc<S>,
        flow: String,
        after: u64,
    ) -> Self {
        let (sender, received) = mpsc::channel(PAGE as usize);
        let fetching = tokio::spawn(async move { fetch(&*store, &flow, after, &sender).await });
        Self { received, fetching }
    }

    /// Waits for the next command. `None`: fetching has ended.
    pub(super) async fn next(&mut self) -> Option<Result<QueuedCommand, WorkflowStoreError>> {
        self.received.recv().await
    }

    /// A command that is here already.
    pub(super) fn try_next(&mut self) -> Option<Result<QueuedCommand, WorkflowStoreError>> {
        self.received.try_recv().ok()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.fetching.abort();
    }
}

async fn fetch(
    store: &impl WorkflowStore,
    flow: &str,
    mut after: u64,
    sender: &mpsc::Sender<Result<QueuedCommand, WorkflowStoreError>>,
) {
    loop {
        match store.commands(flow, after, PAGE, POLL_TIMEOUT).await {
            Ok(rows) => {
                for row in rows {
                    after = after.max(row.command.seq);
                    if row.taken.is_none() && sender.send(Ok(row.command)).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                // The driver ends with this error, or has ended already.
                let _ = sender.send(Err(error)).await;
                return;
            }
        }
    }
}
