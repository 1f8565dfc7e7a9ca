//! What a workflow tells those who watch it: events by their number, and waiting for more.
//!
//! Another process may be the one that writes, so who waits looks again and again; what is written
//! through this store is seen at once.

use std::time::Duration;

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    CommandRow, FlowEvent, Store, StoreError,
    flows::{number, require, signed},
    spill,
};

/// Between the first two looks, and between the last ones.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Store {
    /// The events of a workflow after a number, oldest first.
    pub async fn flow_events(
        &self,
        flow_id: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<FlowEvent>, StoreError> {
        let flow_id = flow_id.to_owned();
        self.read(move |connection| {
            require(connection, &flow_id)?;
            let mut statement = connection.prepare_cached(
                "SELECT seq, cause_seq, body, body_blob FROM flow_events
                 WHERE flow_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
            )?;
            let mut rows = statement.query((&flow_id, signed(after), limit))?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let body = spill::bytes(connection, row, 2)?.unwrap_or_default();
                let (seq, cause) = (number(row.get(0)?), number(row.get(1)?));
                events.push(FlowEvent { seq, cause, body });
            }
            Ok(events)
        })
        .await
    }

    /// As [`flow_events`](Self::flow_events); when there are none, waits for some, at most this
    /// long.
    pub async fn wait_flow_events(
        &self,
        flow_id: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> Result<Vec<FlowEvent>, StoreError> {
        let look = || async move {
            let events = self.flow_events(flow_id, after, limit).await?;
            Ok((!events.is_empty()).then_some(events))
        };
        Ok(until_found(self.progressed(), patience, look).await?.unwrap_or_default())
    }

    /// The commands after a number; when there are none, waits for some, at most this long.
    pub async fn wait_flow_commands(
        &self,
        flow_id: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let look = || async move {
            let commands = self.flow_commands(flow_id, after, limit).await?;
            Ok((!commands.is_empty()).then_some(commands))
        };
        Ok(until_found(self.commanded(), patience, look).await?.unwrap_or_default())
    }

    /// Waits until a command is answered, at most this long. `None`: it is not, or there is none.
    pub async fn wait_flow_answer(
        &self,
        flow_id: &str,
        id: &str,
        patience: Duration,
    ) -> Result<Option<CommandRow>, StoreError> {
        let look = || async move {
            let command = self.flow_command(flow_id, id).await?;
            Ok(command.filter(|command| command.answer.is_some()))
        };
        until_found(self.progressed(), patience, look).await
    }
}

/// Looks until there is something, or patience has ended.
async fn until_found<T, F>(
    notified: &Notify,
    patience: Duration,
    look: impl Fn() -> F,
) -> Result<Option<T>, StoreError>
where
    F: Future<Output = Result<Option<T>, StoreError>>,
{
    let deadline = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    loop {
        // Listening begins before the look: what comes in between is not missed.
        let told = notified.notified();
        tokio::pin!(told);
        told.as_mut().enable();
        let found = look().await?;
        if found.is_some() || Instant::now() >= deadline {
            return Ok(found);
        }
        tokio::select! {
            () = sleep_until(deadline.min(Instant::now() + pause)) => {
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            () = told => {}
        }
    }
}
