//! Belljar as an MCP server (stdio and HTTP) and as a plain HTTP API: translate, call, translate
//! back.
//!
//! Running code, policy and stored approvals are behind the [`Backend`] port. This crate knows the
//! protocol (revisions 2025-11-25 and 2026-07-28), who may connect, and how little a model needs to
//! read. It stores nothing that must outlive the process: clients find a run again by its id.

mod answer;
mod api;
mod approval;
mod backend;
mod call;
mod clients;
pub mod conformance;
mod exact_json;
mod feed;
mod gateway;
mod guard;
mod http;
mod live;
mod mcp_sessions;
mod meter;
mod metrics;
mod names;
mod pictures;
mod recent;
mod records;
mod reported_questions;
mod request;
mod request_id;
mod resources;
mod resume;
mod sessions;
mod start;
mod stdio;
mod storage;
mod token;
mod tools;
mod traces;
mod unambiguous;
mod workflows;

pub use backend::{
    ApprovalRequest, Backend, DecisionFault, DecisionRefusal, DecisionReport, EndRun,
    MissingServer, PassThrough, PendingRun, RunReport, RunReporter, RunState, SearchError,
    ToolMatch, ToolsFound,
};
pub use gateway::{Gateway, ServerOptions};
pub use guard::{AllowedSources, Auth};
pub use http::{HttpConfig, HttpLimits, HttpServer, ServeError, serve_http};
pub use meter::{BackgroundMeter, ConnectionMeasurement, TaskMeasurement};
pub use names::{NameError, is_well_formed};
pub use records::{EventInfo, Records, RecordsError, RunInfo, StoredBlob};
pub use request::{RequestError, decode_execute};
pub use sessions::{
    CheckpointInfo, CheckpointTaken, FileContent, FileList, SessionError, Sessions,
};
pub use stdio::{StdioError, serve_stdio, serve_streams};
pub use token::{BearerToken, TokenError};
pub use traces::{TraceCollector, Traces};
pub use workflows::{
    CommandSender, EventEffect, WorkflowApiError, WorkflowBackend, WorkflowCommandAnswer,
    WorkflowCommandRequest, WorkflowEventInfo, WorkflowFork, WorkflowInfo, WorkflowQuestion,
    WorkflowReport, WorkflowRequest, WorkflowSource,
};
