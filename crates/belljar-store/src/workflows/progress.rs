//! Following a workflow: its events by number, and waiting for more.
//!
//! Another process may write them, so waiting polls; writes through this store are seen at once.

use std::time::Duration;

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    CommandRow, Store, StoreError, WorkflowEventRow, spill,
    workflows::{number, require, signed},
};

/// The delay between the first two polls, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Store {
    /// The events of a workflow after a number, oldest first.
    pub async fn workflow_events(
        &self,
        workflow_id: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<WorkflowEventRow>, StoreError> {
        let workflow_id = workflow_id.to_owned();
        self.read(move |connection| {
            require(connection, &workflow_id)?;
            let mut statement = connection.prepare_cached(
                "SELECT seq, cause_seq, body, body_blob FROM flow_events
                 WHERE flow_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
            )?;
            let mut rows = statement.query((&workflow_id, signed(after), limit))?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let body = spill::bytes(connection, row, 2)?.unwrap_or_default();
                let (seq, cause) = (number(row.get(0)?), number(row.get(1)?));
                events.push(WorkflowEventRow { seq, cause, body });
            }
            Ok(events)
        })
        .await
    }

    /// As [`workflow_events`](Self::workflow_events); when there are none, waits for some until the
    /// timeout.
    pub async fn wait_workflow_events(
        &self,
        workflow_id: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> Result<Vec<WorkflowEventRow>, StoreError> {
        let poll = || async move {
            let events = self.workflow_events(workflow_id, after, limit).await?;
            Ok((!events.is_empty()).then_some(events))
        };
        Ok(until_found(self.progressed(), timeout, poll).await?.unwrap_or_default())
    }

    /// The commands after a number; when there are none, waits for some until the timeout.
    pub async fn wait_workflow_commands(
        &self,
        workflow_id: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let poll = || async move {
            let commands = self.workflow_commands(workflow_id, after, limit).await?;
            Ok((!commands.is_empty()).then_some(commands))
        };
        Ok(until_found(self.commanded(), timeout, poll).await?.unwrap_or_default())
    }

    /// Waits for the answer to a command. `None` after the timeout, or if there is no such command.
    pub async fn wait_workflow_answer(
        &self,
        workflow_id: &str,
        id: &str,
        timeout: Duration,
    ) -> Result<Option<CommandRow>, StoreError> {
        let poll = || async move {
            let command = self.workflow_command(workflow_id, id).await?;
            Ok(command.filter(|command| command.answer.is_some()))
        };
        until_found(self.progressed(), timeout, poll).await
    }
}

/// Polls until there is something, or the timeout is over.
async fn until_found<T, F>(
    notify: &Notify,
    timeout: Duration,
    poll: impl Fn() -> F,
) -> Result<Option<T>, StoreError>
where
    F: Future<Output = Result<Option<T>, StoreError>>,
{
    let deadline = Instant::now() + timeout;
    let mut pause = FIRST_PAUSE;
    loop {
        // Listening begins before the poll, so that no event in between is missed.
        let notification = notify.notified();
        tokio::pin!(notification);
        notification.as_mut().enable();
        let found = poll().await?;
        if found.is_some() || Instant::now() >= deadline {
            return Ok(found);
        }
        tokio::select! {
            () = sleep_until(deadline.min(Instant::now() + pause)) => {
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            () = notification => {}
        }
    }
}
