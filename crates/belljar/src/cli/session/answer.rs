//! The canonical result as it comes back over HTTP, read again.

use anyhow::Context as _;
use belljar_project::{
    Artifact, ErrorCode, ErrorKind, Metrics, RunError, RunResult, Status, Truncated, unrun,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// A result, as JSON.
#[derive(Debug)]
pub(super) struct Answer(pub(super) Value);

#[derive(Debug, Deserialize)]
struct Fields {
    id: String,
    status: String,
    success: bool,
    result: Box<RawValue>,
    stdout: String,
    stderr: String,
    logs: Vec<String>,
    exit_code: i32,
    error: Option<ErrorFields>,
    metrics: MetricFields,
    truncated: Truncated,
    #[serde(default)]
    artifacts: Vec<ArtifactFields>,
    session_id: Option<String>,
    state: Option<Box<RawValue>>,
    #[serde(default)]
    lossy: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ErrorFields {
    #[serde(rename = "type")]
    kind: ErrorKind,
    code: ErrorCode,
    message: String,
    stack: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    tool_name: Option<String>,
    hint: Option<String>,
}

#[derive(Debug, Deserialize)]
struct MetricFields {
    #[serde(rename = "startupTimeMs")]
    startup_ms: f64,
    #[serde(rename = "executionTimeMs")]
    execution_ms: f64,
    #[serde(rename = "cpuTimeMs")]
    cpu_ms: f64,
    #[serde(rename = "memoryUsedMB")]
    memory_mb: f64,
    #[serde(rename = "toolCalls")]
    tool_calls: u32,
}

#[derive(Debug, Deserialize)]
struct ArtifactFields {
    path: String,
    bytes: u64,
    data: String,
}

impl Answer {
    /// The result. What only tells how it was held is left as it is where nothing ran.
    pub(super) fn result(&self) -> anyhow::Result<RunResult> {
        // Through text: a raw value cannot be made of one that is not.
        let text = self.0.to_string();
        let found: Fields = serde_json::from_str(&text).context("the host's result is none")?;
        let error = found.error.map(|error| RunError {
            kind: error.kind,
            code: error.code,
            message: error.message,
            stack: error.stack,
            line: error.line,
            column: error.column,
            tool_name: error.tool_name,
            hint: error.hint,
            exit_code: None,
        });
        let blank = unrun(Status::Failed, RunError::new(ErrorCode::RunAborted, ""));
        let mut isolation = blank.isolation.clone();
        isolation.tier = "full";
        Ok(RunResult {
            id: found.id,
            status: status(&found.status),
            success: found.success,
            result: found.result,
            stdout: found.stdout,
            stderr: found.stderr,
            logs: found.logs,
            exit_code: found.exit_code,
            error,
            metrics: Metrics {
                startup_ms: found.metrics.startup_ms,
                execution_ms: found.metrics.execution_ms,
                cpu_ms: found.metrics.cpu_ms,
                memory_mb: found.metrics.memory_mb,
                tool_calls: found.metrics.tool_calls,
            },
            isolation,
            truncated: found.truncated,
            artifacts: found.artifacts.into_iter().map(artifact).collect(),
            session_id: found.session_id,
            state: found.state.unwrap_or_else(|| blank.state.clone()),
            lossy: found.lossy,
            ..blank
        })
    }
}

fn status(text: &str) -> Status {
    match text {
        "completed" => Status::Completed,
        "aborted" => Status::Aborted,
        "interrupted" => Status::Interrupted,
        "approval_required" => Status::ApprovalRequired,
        "in_doubt" => Status::InDoubt,
        _ => Status::Failed,
    }
}

fn artifact(found: ArtifactFields) -> Artifact {
    let ArtifactFields { path, bytes, data } = found;
    Artifact { path, media_type: "application/octet-stream", bytes, data }
}
