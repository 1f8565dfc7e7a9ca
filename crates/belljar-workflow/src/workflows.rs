//! Workflows from the outside: create, command, watch, fork, inspect. None of it needs a claim.

use belljar_contract::json_value;
use std::{sync::Arc, time::Duration};

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonMap, JsonValue};
use thiserror::Error;

use crate::{
    check::DagFaults,
    command::{Acknowledgement, WorkflowCommand},
    dag::Dag,
    driver::{DriveError, encode, rebuild},
    effect::{InputKind, MachineInput},
    event::WorkflowEvent,
    machine::{Machine, WorkflowFiles},
    workflow_store::{
        NewWorkflowRow, QueuedCommand, SentCommand, WorkflowStore, WorkflowStoreError,
    },
};

/// How many checkpoints are searched for the newest one at which the workflow had not ended.
const NEWEST: u32 = 20;

/// A workflow to create.
#[derive(Debug, Clone)]
pub struct NewWorkflow {
    /// The id, chosen by the caller; it must be new in the store.
    pub id: String,
    /// Recorded as the creator, and the filter by which workflows are listed.
    pub caller: String,
    /// The tasks and their dependencies.
    pub dag: Dag,
    /// Values for the workflow's inputs.
    pub inputs: JsonMap,
    /// The initial files of the workflow.
    pub files: WorkflowFiles,
    /// The permissions of the workflow, in a form that only its performer reads: [`Machine::with_terms`].
    pub terms: JsonValue,
}

/// Why an operation on a workflow failed.
#[derive(Debug, Error)]
pub enum WorkflowError {
    /// The workflow has faults; nothing was created.
    #[error("the workflow has faults")]
    Faulty(DagFaults),
    /// The store failed or refused.
    #[error(transparent)]
    Store(#[from] WorkflowStoreError),
    /// The stored workflow cannot be read.
    #[error(transparent)]
    Unreadable(#[from] DriveError),
}

/// All workflows in a store.
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
    /// The workflows in this store.
    pub fn new(store: Arc<S>) -> Self {
        Self { store }
    }

    /// The store that holds the workflows.
    pub fn store(&self) -> &Arc<S> {
        &self.store
    }

    /// Checks a workflow and stores it. It begins when a driver claims it.
    pub async fn create(&self, new: NewWorkflow, now_ms: i64) -> Result<(), WorkflowError> {
        let NewWorkflow { id, caller, dag, inputs, files, terms } = new;
        let name = dag.name.clone();
        let machine = Machine::begin(&id, dag, inputs).map_err(WorkflowError::Faulty)?;
        let machine = machine.made_at(now_ms);
        let snapshot = write(&id, &machine.with_files(files).with_terms(terms))?;
        Ok(self
            .store
            .create(NewWorkflowRow { id, name, caller, snapshot, created_ms: now_ms })
            .await?)
    }

    /// Sends a command. The answer comes when a driver takes the command.
    pub async fn send(
        &self,
        flow: &str,
        id: &str,
        by: &str,
        command: &WorkflowCommand,
        now_ms: i64,
    ) -> Result<SentCommand, WorkflowError> {
        Ok(self.store.send(flow, queued(flow, id, by, command, now_ms)?).await?)
    }

    /// Why the next driver of a workflow that nothing drives would refuse a command: applied as that
    /// driver would apply it, after the commands that wait. `None` if it would accept the command, or if
    /// that cannot be said in advance. Nothing is stored.
    pub async fn refusal(
        &self,
        flow: &str,
        (id, by): (&str, &str),
        command: &WorkflowCommand,
        now_ms: i64,
    ) -> Result<Option<String>, WorkflowError> {
        let loaded = self.store.load(flow, None).await?;
        let mut machine = rebuild(&loaded)?;
        let now_ms = u64::try_from(now_ms).unwrap_or_default();
        let mut apply = |what| machine.apply(MachineInput { now_ms, what }).map(drop);
        if loaded.workflow.status == WorkflowStatus::New {
            let _ = apply(InputKind::Begin);
        }
        for waiting in loaded.commands {
            let QueuedCommand { id, sender, body, .. } = waiting;
            match json_value::from_slice(&body) {
                // The state after it is another one.
                Ok(WorkflowCommand::RollBack { .. }) => return Ok(None),
                Ok(command) => drop(apply(InputKind::Command { id, by: sender, command })),
                Err(_) => {}
            }
        }
        if let WorkflowCommand::RollBack { .. } = command {
            return Ok(None);
        }
        let (id, by, command) = (id.to_owned(), by.to_owned(), command.clone());
        let what = InputKind::Command { id: id.clone(), by, command };
        if let Err(refusal) = apply(what) {
            return Ok(Some(refusal.to_string()));
        }
        Ok(machine.acknowledgement(&id).and_then(|answer| answer.refused.clone()))
    }

    /// The answer to a command; waits up to `timeout` for it. `None`: there is no answer yet.
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

    /// Events after a number; waits up to `timeout` for the first.
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

    /// Forks a workflow at a checkpoint and returns the checkpoint: the one given, or the newest at
    /// which the workflow had not ended. Tasks that had ended by then keep their results and files;
    /// tasks under way start anew in the fork. `pause`, the id and sender of a command, lets the
    /// fork begin paused, with no moment at which it is not.
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
            let why =
                format!("workflow {flow} has no checkpoint yet; checkpoint 0 is its beginning");
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
        let why = format!("workflow {flow} had ended at that checkpoint; fork an earlier one");
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

/// A command as the store queues it.
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
        let reason = format!("cannot be written as JSON: {error}");
        DriveError::Damaged { flow: flow.to_owned(), reason }.into()
    })
}

fn read<T: serde::de::DeserializeOwned>(
    flow: &str,
    what: &str,
    body: &[u8],
) -> Result<T, WorkflowError> {
    json_value::from_slice(body).map_err(|error| {
        let reason = format!("cannot read {what}: {error}");
        DriveError::Damaged { flow: flow.to_owned(), reason }.into()
    })
}
