//! The project's stored runs, approvals and events, as clients see them.

use belljar_contract::{ApprovalKind, ConsentScope, RunId, StoreSizes, decision_command};
use belljar_server::{ApprovalRequest, EventInfo, Records, RecordsError, RunInfo, StoredBlob};
use belljar_store::{Approvals, NewApproval, RunSummary, StoreError, StoredEvent, Trouble};
use belljar_tools::Bridge;
use serde_json::{Map, Value};

use super::ProjectBackend;
use crate::{now_ms, run_status};

impl Records for ProjectBackend {
    async fn runs(
        &self,
        at_most: u32,
        before: Option<&RunId>,
    ) -> Result<Vec<RunInfo>, RecordsError> {
        let Some(store) = self.executor.store() else { return Ok(Vec::new()) };
        let runs = store.runs(at_most, before).await.map_err(records_error)?;
        Ok(runs.into_iter().map(run).collect())
    }

    async fn approvals(&self) -> Result<Vec<ApprovalRequest>, RecordsError> {
        let Some(store) = self.executor.store() else { return Ok(Vec::new()) };
        let pending = store.approvals(Approvals::Pending, now_ms()).await.map_err(records_error)?;
        let bridge = self.executor.bridge();
        Ok(pending.into_iter().map(|one| stored_request(one.asked, bridge)).collect())
    }

    async fn events(
        &self,
        after: u64,
        at_most: u32,
        run_id: Option<&RunId>,
    ) -> Result<Vec<EventInfo>, RecordsError> {
        let Some(store) = self.executor.store() else { return Ok(Vec::new()) };
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let events = store.events(after, at_most, run_id).await.map_err(records_error)?;
        Ok(events.into_iter().map(event).collect())
    }

    async fn blob(&self, handle: &str) -> Result<Option<StoredBlob>, RecordsError> {
        let Some(store) = self.executor.store() else { return Ok(None) };
        let media_type = store.blob_media_type(handle).await.map_err(records_error)?;
        let bytes = store.blob(handle).await.map_err(records_error)?;
        Ok(media_type.zip(bytes).map(|(media_type, bytes)| StoredBlob { media_type, bytes }))
    }

    fn storage_trouble(&self) -> Option<String> {
        let refused = self.executor.store()?.writable().err()?;
        // Without the path: the health endpoint needs no token.
        let is_moved = matches!(refused, StoreError::Unusable { trouble: Trouble::Moved, .. });
        Some(match is_moved {
            true => "the store was deleted or replaced; restart the host".to_owned(),
            false => "the store cannot be written".to_owned(),
        })
    }

    async fn storage_sizes(&self) -> Option<StoreSizes> {
        self.sizes.get(self.executor.store()?).await
    }
}

/// An approval as clients see it.
pub(super) fn stored_request(asked: NewApproval, bridge: Option<&Bridge>) -> ApprovalRequest {
    let scopes = bridge.map(|bridge| bridge.scopes(&asked)).unwrap_or_default();
    let place = bridge.map(|bridge| (bridge.project(), bridge.state_dir()));
    request(asked, scopes, place.unwrap_or_default())
}

/// An approval with the scopes that a yes may have, the root of its project and a state directory elsewhere.
pub(super) fn request(
    asked: NewApproval,
    scopes: Vec<ConsentScope>,
    (project, state_dir): (Option<String>, Option<String>),
) -> ApprovalRequest {
    let kind = asked.question.kind();
    let verb = match kind {
        ApprovalKind::Call => "approve",
        ApprovalKind::InDoubt => "retry",
    };
    ApprovalRequest {
        command: decision_command(verb, &asked.id, project.as_deref(), state_dir.as_deref()),
        scopes,
        project,
        state_dir,
        id: asked.id,
        kind,
        message: kind.message(),
        tool: asked.tool,
        arguments: arguments(&asked.arguments),
        run_id: asked.run_id,
        line: asked.line,
        code_line: asked.code_line,
        expires_ms: u64::try_from(asked.expires_ms).ok(),
    }
}

/// The arguments of a call as JSON. If they are not valid JSON, their whole text: the person who
/// decides must never see less than is sent.
fn arguments(text: &str) -> Value {
    let read = serde_json::from_str::<Map<String, Value>>(text);
    read.map_or_else(|_| Value::String(text.to_owned()), Value::Object)
}

pub(super) fn run(run: RunSummary) -> RunInfo {
    RunInfo {
        status: run_status(&run),
        id: run.id,
        work: run.work,
        durable: run.durable,
        started_ms: unsigned(run.started_ms),
        finished_ms: run.finished_ms.map(unsigned),
    }
}

fn event(event: StoredEvent) -> EventInfo {
    EventInfo {
        seq: unsigned(event.seq),
        run_id: event.run_id,
        name: event.name,
        at_ms: unsigned(event.at_ms),
        data: serde_json::from_str(&event.data_json).unwrap_or_default(),
    }
}

/// The store keeps signed numbers, none of them negative.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn records_error(error: StoreError) -> RecordsError {
    tracing::error!(error = &error as &dyn std::error::Error, "cannot read the store");
    RecordsError { message: error.to_string() }
}
