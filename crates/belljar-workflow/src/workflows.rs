//! Workflows from the outside: made, commanded, watched, looked at. No claim is needed for that.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    check::DagFaults,
    command::{Acknowledgement, WorkflowCommand},
    dag::Dag,
    driver::{DriveError, encode, rebuild},
    event::WorkflowEvent,
    machine::{Machine, WorkflowFiles},
    workflow_store::{CommandReceipt, NewFlow, QueuedCommand, WorkflowStore, WorkflowStoreError},
};

/// Checkpoints among which the newest that has not ended is looked for.
const NEWEST: u32 = 20;

/// A workflow that is asked for.
#[derive(Debug, Clone)]
pub struct NewWorkflow {
    /// Its id.
    pub id: String,
    /// Who asks.
    pub caller: String,
    /// What it is.
    pub dag: Dag,
    /// What it is given.
    pub inputs: Map<String, Value>,
    /// The files it begins with.
    pub files: WorkflowFiles,
    /// What it is allowed, in its performer's words: [`Machine::with_terms`].
    pub terms: Value,
}

/// Why something could not be done with a workflow.
#[derive(Debug, Error)]
pub enum WorkflowError {
    /// It is not well formed; nothing was made.
    #[error("the workflow is not well formed")]
    Faulty(DagFaults),
    /// The store failed or refused.
    #[error(transparent)]
    Store(#[from] WorkflowStoreError),
    /// What the store kept cannot be read.
    #[error(transparent)]
    Unreadable(#[from] DriveError),
}

/// The workflows an store keeps.
#[derive(Debug)]
pub struct Workflows<S> {
    store: Arc<S>,
}

impl<S> Clone for Workflows<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store) }
    }
}

impl<S: WorkflowStore> Workflows<S> {
    /// Those of this store.
    pub fn new(store: Arc<S>) -> Self {
        Self { store }
    }

    /// The store.
    pub fn store(&self) -> &Arc<S> {
        &self.store
    }

    /// Checks a workflow and makes it durable. It begins when somebody drives it.
    pub async fn create(&self, new: NewWorkflow, now_ms: i64) -> Result<(), WorkflowError> {
        let NewWorkflow { id, caller, dag, inputs, files, terms } = new;
        let name = dag.name.clone();
        let machine = Machine::begin(&id, dag, inputs).map_err(WorkflowError::Faulty)?;
        let machine = machine.made_at(now_ms);
        let snapshot = write(&id, &machine.with_files(files).with_terms(terms))?;
        Ok(self.store.create(NewFlow { id, name, caller, snapshot, created_ms: now_ms }).await?)
    }

    /// Sends a command. Its answer comes when somebody drives the workflow.
    pub async fn send(
        &self,
        flow: &str,
        id: &str,
        by: &str,
        command: &WorkflowCommand,
        now_ms: i64,
    ) -> Result<CommandReceipt, WorkflowError> {
        Ok(self.store.send(flow, queued(flow, id, by, command, now_ms)?).await?)
    }

    /// The answer to a command, waited for this long. `None`: there is none yet.
    pub async fn answer(
        &self,
        flow: &str,
        command: &str,
        timeout: Duration,
    ) -> Result<Option<Acknowledgement>, WorkflowError> {
        let row = self.store.command(flow, command, timeout).await?;
        let answer = row.and_then(|row| row.answer);
        answer.map(|(_, body)| read(flow, "an answer", &body)).transpose()
    }

    /// Events after a number, waited for this long if there are none.
    pub async fn events(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> Result<Vec<WorkflowEvent>, WorkflowError> {
        let rows = self.store.events(flow, after, limit, timeout).await?;
        rows.iter().map(|row| read(flow, "an event", &row.body)).collect()
    }

    /// Makes a workflow that is what another was at a checkpoint, and gives back which: if none is
    /// named, the newest at which it had not ended. What had ended by then is not done again, and its
    /// files are what they were; what was under way, the other does for itself. If it is to wait,
    /// `pause` says under which id and by whom: it never is without it.
    pub async fn fork(
        &self,
        flow: &str,
        at: Option<u64>,
        new_id: &str,
        now_ms: i64,
        pause: Option<(&str, &str)>,
    ) -> Result<u64, WorkflowError> {
        let pause = pause.map(|(id, by)| queued(new_id, id, by, &WorkflowCommand::Pause, now_ms));
        let pause = pause.transpose()?;
        let candidates = match at {
            Some(at) => vec![at],
            None => {
                let newest = self.store.checkpoints(flow, None, NEWEST).await?;
                newest.into_iter().map(|row| row.seq).collect()
            }
        };
        if candidates.is_empty() {
            let why = format!("workflow {flow} has no checkpoint yet; 0 is its beginning");
            return Err(WorkflowStoreError::Conflict(why).into());
        }
        let now = self.look(flow, None).await?;
        if let Some(at) = at.filter(|at| now.is_abandoned(*at)) {
            let why =
                format!("checkpoint {at} of workflow {flow} is on a branch that was rolled back");
            return Err(WorkflowStoreError::Conflict(why).into());
        }
        for at in candidates.into_iter().filter(|at| !now.is_abandoned(*at)) {
            if !self.look(flow, Some(at)).await?.status().is_over() {
                self.store.fork(flow, at, new_id, now_ms, pause).await?;
                return Ok(at);
            }
        }
        let why = format!("workflow {flow} had ended by then; an earlier checkpoint can be forked");
        Err(WorkflowStoreError::Conflict(why).into())
    }

    /// A workflow as it is, or as it was at a checkpoint.
    pub async fn look(
        &self,
        flow: &str,
        checkpoint: Option<u64>,
    ) -> Result<Machine, WorkflowError> {
        Ok(rebuild(&self.store.load(flow, checkpoint).await?)?)
    }
}

/// A command as it is sent.
fn queued(
    flow: &str,
    id: &str,
    by: &str,
    command: &WorkflowCommand,
    at_ms: i64,
) -> Result<QueuedCommand, WorkflowError> {
    let (id, sender, body) = (id.to_owned(), by.to_owned(), write(flow, command)?);
    Ok(QueuedCommand { seq: 0, id, sender, at_ms, body })
}

fn write(flow: &str, value: &impl serde::Serialize) -> Result<Vec<u8>, WorkflowError> {
    encode(value).map_err(|error| {
        let reason = format!("it cannot be written: {error}");
        DriveError::Damaged { flow: flow.to_owned(), reason }.into()
    })
}

fn read<T: serde::de::DeserializeOwned>(
    flow: &str,
    what: &str,
    body: &[u8],
) -> Result<T, WorkflowError> {
    serde_json::from_slice(body).map_err(|error| {
        let reason = format!("{what}: {error}");
        DriveError::Damaged { flow: flow.to_owned(), reason }.into()
    })
}
