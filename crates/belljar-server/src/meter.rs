//! Measures work that no request asked for directly: runs, tasks and checkpoints of workflows, and
//! tool searches inside a run.

use std::{sync::Arc, time::Duration};

use belljar_contract::RunResult;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    metrics::ServerMetrics,
    start,
    traces::{Span, SpanKind, TraceContext, Traces},
};

/// Records measurements of a backend. Clones share one set of counters.
#[derive(Debug, Clone)]
pub struct BackgroundMeter {
    metrics: Arc<ServerMetrics>,
    traces: Option<Traces>,
}

/// A workflow task that was performed: how it went, nothing of its data.
#[derive(Debug, Clone, Copy)]
pub struct TaskMeasurement<'a> {
    /// The id of the workflow.
    pub workflow: &'a str,
    /// The id of the task's instance.
    pub task: &'a str,
    /// `mcp_tool`, `code_execution` or `sandbox`.
    pub kind: &'static str,
    /// The number of the attempt.
    pub attempt: u32,
    /// The code of its failure, if it failed.
    pub failure: Option<&'a str>,
    /// How long the attempt took.
    pub took: Duration,
}

/// A connection of guest code to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionMeasurement {
    /// It was allowed.
    Allowed,
    /// It was refused.
    Refused,
    /// The host could not be reached.
    Failed,
    /// It has ended.
    Closed {
        /// Bytes from the code.
        sent: u64,
        /// Bytes to the code.
        received: u64,
    },
}

impl BackgroundMeter {
    pub(crate) fn new(metrics: Arc<ServerMetrics>, traces: Option<Traces>) -> Self {
        Self { metrics, traces }
    }

    /// A run ended with this canonical result. `of` is the workflow it is part of.
    pub fn ran(&self, result: &RunResult, took: Duration, of: &str) {
        self.metrics.run_ended(result.status, Some(result), took);
        if let Some(traces) = &self.traces {
            let workflow = TraceContext::from_text(of);
            let context = TraceContext::child_of(Some(workflow));
            traces.send(start::span(result, context, took).with_parent(Some(workflow)));
        }
    }

    /// A run that no host had under way was given up.
    pub fn given_up(&self) {
        self.metrics.given_up();
    }

    /// A search for tools took this long.
    pub fn discovered(&self, took: Duration) {
        self.metrics.discovered(took);
    }

    /// Writing a checkpoint took this long.
    pub fn checkpointed(&self, took: Duration) {
        self.metrics.checkpointed(took);
    }

    /// Guest code connected to a host, or was refused.
    pub fn connected(&self, connection: ConnectionMeasurement) {
        self.metrics.connected(connection);
    }

    /// A task was performed. All tasks of one workflow are in one trace, also those that other
    /// hosts performed.
    pub fn performed(&self, task: TaskMeasurement<'_>) {
        let Some(traces) = &self.traces else { return };
        let TaskMeasurement { workflow, task, kind, attempt, failure, took } = task;
        let of = TraceContext::from_text(workflow);
        let span = Span::ended(
            "task".to_owned(),
            SpanKind::Internal,
            TraceContext::child_of(Some(of)),
            took,
        )
        .with_parent(Some(of))
        .ok(failure.is_none())
        .with("belljar.workflow.id", workflow.into())
        .with("belljar.task", task.into())
        .with("belljar.task.kind", kind.into())
        .with("belljar.task.attempt", attempt.into())
        .with("error.type", failure.map_or(Value::Null, Value::from));
        traces.send(span);
    }
}

impl TraceContext {
    /// A context that is always the same for the same text.
    fn from_text(text: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        Self::from_bytes(&digest)
    }
}
