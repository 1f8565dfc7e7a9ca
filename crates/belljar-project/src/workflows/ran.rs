//! What a run gave, whether it ended here or before, and what that is to a task.

use belljar_runtime::RunResult;
use belljar_workflow::{ResultShape, TaskFailure, TaskOutcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{performer::cancelled, tools::Watch};

/// Lines of what code said that are kept with the workflow, and letters of each.
const LINES: usize = 100;
const LETTERS: usize = 2000;

/// The parts of a run's result that matter to a task.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Ran {
    pub(super) status: String,
    success: bool,
    result: Value,
    stdout: String,
    stderr: String,
    logs: Vec<String>,
    error: Option<Map<String, Value>>,
    metrics: Metrics,
    /// What the code put into `state`.
    pub(super) state: Map<String, Value>,
    truncated: Truncated,
}

/// What of a result was cut.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Truncated {
    stdout: bool,
    stderr: bool,
    result: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metrics {
    tool_calls: u64,
    execution_time_ms: f64,
}

impl Ran {
    /// A result that was just given.
    pub(super) fn of(result: &RunResult) -> Self {
        Self::read(&serde_json::to_string(result).unwrap_or_default())
    }

    /// A result as it was kept.
    pub(super) fn read(json: &str) -> Self {
        let read = serde_json::from_str(json);
        read.unwrap_or_else(|error| Self::failed("run.lost", error.to_string()))
    }

    /// No result, and why.
    pub(super) fn failed(code: &str, message: String) -> Self {
        Self::failed_with("", code, message)
    }

    /// The same, with the type of the error.
    pub(super) fn failed_with(kind: &str, code: &str, message: String) -> Self {
        let kind = (!kind.is_empty()).then(|| ("type", kind.to_owned()));
        let error = [("code", code.to_owned()), ("message", message)];
        let error =
            kind.into_iter().chain(error).map(|(key, value)| (key.to_owned(), Value::from(value)));
        Self { status: "failed".to_owned(), error: Some(error.collect()), ..Self::default() }
    }

    /// Whether nobody knows if its call happened: it stopped for that, or was told so by a host that
    /// ended before it could say so itself.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.status == "in_doubt" || self.text("code") == Some("tool.in_doubt")
    }

    /// The same, with its error one line further up, where its author wrote it.
    pub(super) fn a_line_up(mut self) -> Self {
        if let Some(error) = &mut self.error {
            if let Some(line) = error.get("line").and_then(Value::as_u64) {
                error.insert("line".to_owned(), Value::from(line.saturating_sub(1).max(1)));
            }
            error.remove("stack");
        }
        self
    }

    /// What it is to the task. `was_begun`: calls may have been made before this host.
    pub(super) fn outcome(
        mut self,
        shape: ResultShape,
        watch: &Watch,
        was_begun: bool,
    ) -> TaskOutcome {
        // Calls that were made before are not seen being made again.
        let has_acted = watch.has_acted() || (was_begun && self.metrics.tool_calls > 0);
        let logs = self.logs.iter().take(LINES);
        let logs: Vec<String> = logs.map(|line| line.chars().take(LETTERS).collect()).collect();
        let read_only = !has_acted;
        // The `state` of a node is the workflow's own, and its changes are in what it gives.
        let state = match shape {
            ResultShape::Value | ResultShape::Report => std::mem::take(&mut self.state),
            ResultShape::Node => Map::new(),
        };
        match self.status.as_str() {
            "aborted" | "interrupted" | "in_doubt" | "approval_required" => {
                TaskOutcome { logs, ..cancelled(has_acted) }
            }
            _ if shape == ResultShape::Report && !self.is_ours() => {
                TaskOutcome { logs, read_only, state, ..TaskOutcome::done(self.report()) }
            }
            "completed" => TaskOutcome { logs, read_only, state, ..TaskOutcome::done(self.result) },
            _ => {
                let failure = TaskFailure {
                    details: Some(self.details()),
                    may_have_acted: has_acted,
                    ..TaskFailure::new(self.text("code").unwrap_or("run.failed"), self.message())
                };
                TaskOutcome { logs, read_only, ..TaskOutcome::failed(failure) }
            }
        }
    }

    /// The shape of an agent's `code.execute`.
    pub(super) fn report(self) -> Value {
        let error = self.error.is_some().then(|| self.message());
        let Truncated { stdout, stderr, result } = self.truncated;
        json!({
            "success": self.success,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "return_value": self.result,
            "error": error,
            "error_type": self.text("type"),
            "error_code": self.text("code"),
            "truncated": { "stdout": stdout, "stderr": stderr, "return_value": result },
            "execution_time_ms": self.metrics.execution_time_ms,
        })
    }

    /// Whether the sandbox failed, and not the code.
    fn is_ours(&self) -> bool {
        self.text("type") == Some("SandboxError")
    }

    fn text(&self, part: &str) -> Option<&str> {
        self.error.as_ref()?.get(part)?.as_str()
    }

    fn message(&self) -> String {
        let text = in_files(self.text("message").unwrap_or("the code failed"));
        let line = self.error.as_ref().and_then(|error| error.get("line")?.as_u64());
        match line {
            Some(line) => format!("line {line}: {text}"),
            None => text,
        }
    }

    fn details(&self) -> Value {
        let parts = ["type", "line", "column", "stack", "toolName", "hint"];
        let error = self.error.as_ref();
        let kept = parts.into_iter().filter_map(|part| {
            let value = error?.get(part).filter(|value| !value.is_null())?;
            let told = value.as_str().filter(|_| part == "hint").map(|hint| in_files(hint).into());
            Some((part.to_owned(), told.unwrap_or_else(|| value.clone())))
        });
        Value::Object(kept.collect())
    }
}

/// What is granted on a command line elsewhere is granted in the file of a workflow.
fn in_files(text: &str) -> String {
    let Some((before, after)) = text.split_once("--module ") else { return text.to_owned() };
    let end = after.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')));
    let (name, rest) = after.split_at(end.unwrap_or(after.len()));
    let (name, stop) = match name.strip_suffix('.') {
        Some(name) => (name, "."),
        None => (name, ""),
    };
    format!("{before}`allowed_modules: [{name}]`{stop}{rest}")
}
