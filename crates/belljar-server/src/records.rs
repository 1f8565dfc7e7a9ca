//! The port to the store: runs, approvals, events.

use std::future::Future;

use belljar_contract::{RecordedWork, RunId, RunStatus, StoreSizes};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::backend::ApprovalRequest;

/// Reads runs, approvals and events from the project's store.
pub trait Records: Send + Sync + 'static {
    /// The newest stored runs, newest first; only those older than the run `before`, if given.
    fn runs(
        &self,
        at_most: u32,
        before: Option<&RunId>,
    ) -> impl Future<Output = Result<Vec<RunInfo>, RecordsError>> + Send;

    /// Tool calls that wait for a person, oldest first, in the runs of any process.
    fn approvals(&self) -> impl Future<Output = Result<Vec<ApprovalRequest>, RecordsError>> + Send;

    /// Events after the one with this number, oldest first; only those of one run, if given.
    fn events(
        &self,
        after: u64,
        at_most: u32,
        run_id: Option<&RunId>,
    ) -> impl Future<Output = Result<Vec<EventInfo>, RecordsError>> + Send;

    /// A value or a file that a result names by its handle; `None` if none has this handle.
    fn blob(
        &self,
        _handle: &str,
    ) -> impl Future<Output = Result<Option<StoredBlob>, RecordsError>> + Send {
        std::future::ready(Ok(None))
    }

    /// The reason why the store takes no writes at the moment, if it takes none. Cheap and without
    /// paths, because it is answered without a token.
    fn storage_trouble(&self) -> Option<String> {
        None
    }

    /// The sizes of the store, if there is one.
    fn storage_sizes(&self) -> impl Future<Output = Option<StoreSizes>> + Send {
        std::future::ready(None)
    }
}

/// A stored value or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// The media type that it was stored with. Guest code may have chosen it.
    pub media_type: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A run in a list. The store's `RunSummary` is the row behind it: its seed, owner and fence belong to the
/// host, and its status is that of the last write, although its process may be gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunInfo {
    /// The id that requests name it by.
    pub id: RunId,
    /// The present status of the run.
    pub status: RunStatus,
    /// The language of its code; `tool` for one tool call without code.
    #[serde(rename = "language")]
    #[schemars(with = "String")]
    pub work: RecordedWork,
    /// Whether it survives its host.
    pub durable: bool,
    /// When it started, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended, in milliseconds since 1970; absent while it is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<u64>,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventInfo {
    /// Its number; later events have higher numbers.
    pub seq: u64,
    /// The run it is about.
    pub run_id: RunId,
    /// The kind of event.
    pub name: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Details, which depend on the kind.
    pub data: Value,
}

/// The store could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read the store: {message}")]
pub struct RecordsError {
    /// The cause, as the store reports it.
    pub message: String,
}
