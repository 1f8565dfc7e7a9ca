//! The workflow store over the project's own SQLite file.
//!
//! Hosts on one machine share the file; what one commits another sees.

use std::time::Duration;

use belljar_store::{Store, StoreError, WorkflowRecordError};

use crate::workflow_store::{
    CheckpointRow, CommandRow, GiveBack, LeaseRequest, LoadedWorkflow, NewWorkflowRow,
    QueuedCommand, ResumeExclusions, SentCommand, WorkflowBatch, WorkflowEventRow, WorkflowFilter,
    WorkflowLease, WorkflowRow, WorkflowStore, WorkflowStoreError,
};

/// The store records a media type with each blob; the files of a workflow have none of their own.
const MEDIA_TYPE: &str = "application/octet-stream";

/// Keeps workflows in the project's store. Clones share it.
#[derive(Debug, Clone)]
pub struct SqliteWorkflowStore {
    store: Store,
}

impl SqliteWorkflowStore {
    /// Keeps workflows in this store, beside whatever else is in it.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// The whole store, for callers that need more of it than workflows.
    pub fn project_store(&self) -> &Store {
        &self.store
    }
}

impl WorkflowStore for SqliteWorkflowStore {
    async fn create(&self, flow: NewWorkflowRow) -> Result<(), WorkflowStoreError> {
        Ok(self.store.create_workflow(flow).await?)
    }

    async fn claim(
        &self,
        flow: &str,
        request: LeaseRequest,
    ) -> Result<WorkflowLease, WorkflowStoreError> {
        Ok(self.store.claim_workflow(flow, request).await?)
    }

    async fn renew(&self, lease: &WorkflowLease, until_ms: i64) -> Result<(), WorkflowStoreError> {
        Ok(self.store.renew_workflow(lease, until_ms).await?)
    }

    async fn release(
        &self,
        lease: &WorkflowLease,
        how: GiveBack,
    ) -> Result<(), WorkflowStoreError> {
        Ok(self.store.release_workflow(lease, how).await?)
    }

    async fn commit(
        &self,
        lease: &WorkflowLease,
        batch: WorkflowBatch,
    ) -> Result<u64, WorkflowStoreError> {
        Ok(self.store.commit_workflow(lease, batch).await?)
    }

    async fn load(
        &self,
        flow: &str,
        checkpoint: Option<u64>,
    ) -> Result<LoadedWorkflow, WorkflowStoreError> {
        Ok(self.store.load_workflow(flow, checkpoint).await?)
    }

    async fn checkpoints(
        &self,
        flow: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, WorkflowStoreError> {
        Ok(self.store.workflow_checkpoints(flow, before, limit).await?)
    }

    async fn find(&self, flow: &str) -> Result<Option<WorkflowRow>, WorkflowStoreError> {
        Ok(self.store.workflow(flow).await?)
    }

    async fn list(
        &self,
        filter: WorkflowFilter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRow>, WorkflowStoreError> {
        Ok(self.store.workflows(filter, before, limit).await?)
    }

    async fn abandoned(
        &self,
        now_ms: i64,
        but: ResumeExclusions,
        limit: u32,
    ) -> Result<Vec<WorkflowRow>, WorkflowStoreError> {
        Ok(self.store.abandoned_workflows(now_ms, but, limit).await?)
    }

    async fn fork(
        &self,
        flow: &str,
        checkpoint: u64,
        new_id: &str,
        now_ms: i64,
        command: Option<QueuedCommand>,
    ) -> Result<(), WorkflowStoreError> {
        Ok(self.store.fork_workflow(flow, checkpoint, new_id, now_ms, command).await?)
    }

    async fn send(
        &self,
        flow: &str,
        command: QueuedCommand,
    ) -> Result<SentCommand, WorkflowStoreError> {
        Ok(self.store.send_workflow_command(flow, command).await?)
    }

    async fn commands(
        &self,
        flow: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> Result<Vec<CommandRow>, WorkflowStoreError> {
        Ok(self.store.wait_workflow_commands(flow, after, limit, timeout).await?)
    }

    async fn command(
        &self,
        flow: &str,
        id: &str,
        timeout: Duration,
    ) -> Result<Option<CommandRow>, WorkflowStoreError> {
        let answered = self.store.wait_workflow_answer(flow, id, timeout).await?;
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
        timeout: Duration,
    ) -> Result<Vec<WorkflowEventRow>, WorkflowStoreError> {
        Ok(self.store.wait_workflow_events(flow, after, limit, timeout).await?)
    }

    async fn put_blob(
        &self,
        flow: &str,
        bytes: Vec<u8>,
        now_ms: i64,
    ) -> Result<String, WorkflowStoreError> {
        Ok(self.store.put_workflow_blob(flow, bytes, MEDIA_TYPE, now_ms).await?)
    }

    async fn blob(&self, id: &str) -> Result<Option<Vec<u8>>, WorkflowStoreError> {
        Ok(self.store.blob(id).await?)
    }
}

impl From<StoreError> for WorkflowStoreError {
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

impl From<WorkflowRecordError> for WorkflowStoreError {
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
