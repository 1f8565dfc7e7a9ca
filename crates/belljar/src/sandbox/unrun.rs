//! The result of code that never ran, in the one result shape.

use std::{
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use belljar_runtime::{Isolation, Metrics, RunError, RunResult, Status, ToolReport, Truncated};
use serde_json::value::RawValue;

/// A result for code that was not run, or whose cell was ended before it could answer.
pub fn unrun(status: Status, error: RunError) -> RunResult {
    RunResult {
        id: run_id(),
        status,
        success: false,
        result: RawValue::NULL.to_owned(),
        stdout: String::new(),
        stderr: String::new(),
        logs: Vec::new(),
        exit_code: 1,
        error: Some(error),
        metrics: Metrics::default(),
        isolation: Isolation {
            tier: "refused",
            engine: "quickjs",
            layers: Vec::new(),
            memory: "none",
        },
        truncated: Truncated::default(),
        artifacts: Vec::new(),
        changes: Vec::new(),
        tools: ToolReport::default(),
        cached: false,
        session_id: None,
        state: serde_json::Map::new(),
        lossy: false,
    }
}

/// Unique enough among results that name no cell: moment and process.
fn run_id() -> String {
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("run_{:x}{:x}", moment.as_nanos(), process::id())
}
