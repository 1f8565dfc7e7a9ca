//! The durable engine inside the host: the project's own store.
//!
//! Hosts on one machine share the file; what one commits another sees.

use std::time::Duration;

use belljar_store::{Store, StoreError, WorkflowRecordError};

use crate::engine::{
    Batch, CheckpointRow, CommandRow, DurableEngine, EngineError, EventRow, Filter, FlowRow,
    GiveBack, Lease, LeaseRequest, LeftAlone, Loaded, NewFlow, QueuedCommand, Sent,
};

/// What a blob of a workflow is, as far as the store is told.
const MEDIA_TYPE: &str = "application/octet-stream";

/// An engine over a store. Clones share it.
#[derive(Debug, Clone)]
pub struct Embedded {
    store: Store,
}

impl Embedded {
    /// Keeps workflows in this store.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// The store beneath.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

impl DurableEngine for Embedded {
    async fn create(&self, flow: NewFlow) -> Result<(), EngineError> {
        Ok(self.store.create_workflow(flow).await?)
    }

    async fn claim(&self, flow: &str, request: LeaseRequest) -> Result<Lease, EngineError> {
        Ok(self.store.claim_workflow(flow, request).await?)
    }

    async fn renew(&self, lease: &Lease, until_ms: i64) -> Result<(), EngineError> {
        Ok(self.store.renew_workflow(lease, until_ms).await?)
    }

    async fn release(&self, lease: &Lease, how: GiveBack) -> Result<(), EngineError> {
        Ok(self.store.release_workflow(lease, how).await?)
    }

    async fn commit(&self, lease: &Lease, batch: Batch) -> Result<u64, EngineError> {
        Ok(self.store.commit_workflow(lease, batch).await?)
    }

    async fn load(&self, flow: &str, checkpoint: Option<u64>) -> Result<Loaded, EngineError> {
        Ok(self.store.load_workflow(flow, checkpoint).await?)
    }

    async fn checkpoints(
        &self,
        flow: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, EngineError> {
        Ok(self.store.workflow_checkpoints(flow, before, limit).await?)
    }

    async fn find(&self, flow: &str) -> Result<Option<FlowRow>, EngineError> {
        Ok(self.store.workflow(flow).await?)
    }

    async fn list(
        &self,
        filter: Filter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FlowRow>, EngineError> {
        Ok(self.store.workflows(filter, before, limit).await?)
    }

    async fn abandoned(
        &self,
        now_ms: i64,
        but: LeftAlone,
        limit: u32,
    ) -> Result<Vec<FlowRow>, EngineError> {
        Ok(self.store.abandoned_workflows(now_ms, but, limit).await?)
    }

    async fn fork(
        &self,
        flow: &str,
        checkpoint: u64,
        new_id: &str,
        now_ms: i64,
        command: Option<QueuedCommand>,
    ) -> Result<(), EngineError> {
        Ok(self.store.fork_workflow(flow, checkpoint, new_id, now_ms, command).await?)
    }

    async fn copy(&self, flow: &str, new_id: &str, now_ms: i64) -> Result<(), EngineError> {
        Ok(self.store.copy_workflow(flow, new_id, now_ms).await?)
    }

    async fn prune(&self, flow: &str) -> Result<u64, EngineError> {
        Ok(self.store.prune_workflow(flow).await?)
    }

    async fn forget(&self, flow: &str, now_ms: i64) -> Result<(), EngineError> {
        Ok(self.store.forget_workflow(flow, Vec::new(), now_ms).await?)
    }

    async fn send(&self, flow: &str, command: QueuedCommand) -> Result<Sent, EngineError> {
        Ok(self.store.send_workflow_command(flow, command).await?)
    }

    async fn commands(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> Result<Vec<CommandRow>, EngineError> {
        Ok(self.store.wait_workflow_commands(flow, after, limit, patience).await?)
    }

    async fn command(
        &self,
        flow: &str,
        id: &str,
        patience: Duration,
    ) -> Result<Option<CommandRow>, EngineError> {
        let answered = self.store.wait_workflow_answer(flow, id, patience).await?;
        match answered {
            Some(command) => Ok(Some(command)),
            None => Ok(self.store.workflow_command(flow, id).await?),
        }
    }

    async fn events(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> Result<Vec<EventRow>, EngineError> {
        Ok(self.store.wait_workflow_events(flow, after, limit, patience).await?)
    }

    async fn put_blob(
        &self,
        flow: &str,
        bytes: Vec<u8>,
        now_ms: i64,
    ) -> Result<String, EngineError> {
        Ok(self.store.put_workflow_blob(flow, bytes, MEDIA_TYPE, now_ms).await?)
    }

    async fn blob(&self, id: &str) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.store.blob(id).await?)
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced { run_id, held, current } => {
                Self::Superseded { flow: run_id, held, current }
            }
            StoreError::Workflow(error) => error.into(),
            StoreError::Open { .. }
            | StoreError::Newer { .. }
            | StoreError::Foreign { .. }
            | StoreError::Unusable { .. }
            | StoreError::Sqlite(_)
            | StoreError::Commit(_)
            | StoreError::UnknownRun(_)
            | StoreError::RunExists(_)
            | StoreError::UnknownApproval(_)
            | StoreError::AmbiguousId { .. }
            | StoreError::Damaged { .. }
            | StoreError::Closed => Self::Failed(Box::new(error)),
        }
    }
}

impl From<WorkflowRecordError> for EngineError {
    fn from(error: WorkflowRecordError) -> Self {
        match error {
            WorkflowRecordError::Unknown(flow) => Self::Unknown(flow),
            WorkflowRecordError::Exists(flow) => Self::Exists(flow),
            WorkflowRecordError::Held { workflow_id, owner, until_ms } => {
                Self::Held { flow: workflow_id, owner, until_ms }
            }
            WorkflowRecordError::NoCheckpoint { workflow_id, checkpoint } => {
                Self::NoCheckpoint { flow: workflow_id, checkpoint }
            }
            WorkflowRecordError::OutOfOrder { .. } | WorkflowRecordError::Differs { .. } => {
                Self::Conflict(error.to_string())
            }
        }
    }
}
