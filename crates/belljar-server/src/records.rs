//! The port to what is kept: runs, approvals, events.

use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{backend::ApprovalRequest, storage::StorageSizes};

/// Tells what is kept of runs.
pub trait Records: Send + Sync + 'static {
    /// The newest runs that are kept, newest first; those before `before`, a run's id, if given.
    fn runs(
        &self,
        at_most: u32,
        before: Option<&str>,
    ) -> impl Future<Output = Result<Vec<RunInfo>, RecordsError>> + Send;

    /// Calls that wait for a person, oldest first, of whatever process's runs.
    fn approvals(&self) -> impl Future<Output = Result<Vec<ApprovalRequest>, RecordsError>> + Send;

    /// What happened after the event with this number, oldest first; to one run, if given.
    fn events(
        &self,
        after: u64,
        at_most: u32,
        run_id: Option<&str>,
    ) -> impl Future<Output = Result<Vec<EventInfo>, RecordsError>> + Send;

    /// Why nothing can be kept at the moment, if that is so; cheap, and without a path, for anybody
    /// may ask.
    fn storage_trouble(&self) -> Option<String> {
        None
    }

    /// How large what is kept is, if anything is.
    fn storage_sizes(&self) -> impl Future<Output = Option<StorageSizes>> + Send {
        std::future::ready(None)
    }
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunInfo {
    /// Its id.
    pub id: String,
    /// How it stands: `running`, `completed`, `failed`, `aborted`, `interrupted` (its host stopped or
    /// died), `approval_required`, `in_doubt`.
    pub status: String,
    /// What its code is written in.
    pub language: String,
    /// Whether it survives its host.
    pub durable: bool,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<u64>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventInfo {
    /// Its number; later ones have higher ones.
    pub seq: u64,
    /// The run it is about.
    pub run_id: String,
    /// What happened.
    pub name: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The details.
    pub data: Value,
}

/// What is kept could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read the store: {message}")]
pub struct RecordsError {
    /// Why.
    pub message: String,
}
