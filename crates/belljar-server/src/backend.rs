//! The port to the part of Belljar that runs code. The gateway calls it; belljar-project implements
//! it.
//!
//! Every caller relies on one promise: dropping the future of [`Backend::execute`] or
//! [`Backend::call_tool`] ends the run. The gateway keeps a future alive as long as a client may
//! still ask for its answer, even after it has answered the request that started it.

use std::{future::Future, time::Duration};

use belljar_contract::{
    ApprovalId, ApprovalKind, ConsentScope, ExecuteRequest, RunId, RunResult, RunStatus, Stream,
    Verdict,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    feed::{Feed, RunEvent},
    live::{LiveRun, RunRegistration},
    meter::BackgroundMeter,
    records::{Records, RunInfo},
    sessions::Sessions,
    traces::{Span, SpanKind, TraceContext, Traces},
    workflows::WorkflowBackend,
};

/// Runs code, searches tools, decides approvals.
pub trait Backend: Sessions + Records + WorkflowBackend {
    /// Runs code to its end. Errors are in the report, as for any run.
    fn execute(
        &self,
        request: ExecuteRequest,
        observer: RunReporter,
    ) -> impl Future<Output = RunReport> + Send;

    /// Records the decision of the person who answered in the client.
    fn decide(
        &self,
        approval_id: &ApprovalId,
        verdict: Verdict,
        by: &str,
    ) -> impl Future<Output = Result<DecisionReport, DecisionRefusal>> + Send;

    /// The `k` tools nearest to the intent, best first, and the servers that did not list their
    /// tools in time.
    fn search_tools(
        &self,
        intent: &str,
        k: u32,
    ) -> impl Future<Output = Result<ToolsFound, SearchError>> + Send;

    /// The report of a run that this gateway does not have in memory, because another process
    /// started it or this one has restarted since. It returns when the run has ended or waits for a
    /// person, or after `wait`. `None` if there is no such run. [`RunReport::waiting`] lists the
    /// calls that wait for a person.
    fn get_run(
        &self,
        run_id: &RunId,
        wait: Duration,
    ) -> impl Future<Output = Option<RunReport>> + Send;

    /// Receives the meter for work that no request started. The gateway calls it once, before any
    /// other method.
    fn measure_with(&self, _meter: BackgroundMeter) {}

    /// Runs without a host that can resume: their host died or stopped, or a person has decided the
    /// call they waited for. The first in the list resumes first.
    fn resumable_runs(&self) -> impl Future<Output = Vec<RunInfo>> + Send {
        std::future::ready(Vec::new())
    }

    /// Resumes such a run and runs it to its end. `None` if another host has taken it meanwhile, or
    /// it cannot resume.
    fn resume(
        &self,
        _run_id: &RunId,
        _observer: RunReporter,
    ) -> impl Future<Output = Option<RunReport>> + Send {
        std::future::ready(None)
    }

    /// Completes when there may be more runs to resume.
    fn more_resumable(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Ends a run that this gateway does not run itself. It never starts a run in order to end it.
    fn end_run(&self, _run_id: &RunId) -> impl Future<Output = EndRun> + Send {
        std::future::ready(EndRun::Over)
    }

    /// The host is about to stop: a durable run that is ended from now on stays resumable.
    fn prepare_to_stop(&self) {}

    /// The upstream tools that clients see beside the gateway's own.
    fn pass_through(&self) -> Vec<PassThrough> {
        Vec::new()
    }

    /// Calls a tool of [`pass_through`](Self::pass_through) by its whole name, with policy and
    /// approvals as from code. The answer is an MCP `CallToolResult`, as JSON.
    fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        observer: RunReporter,
    ) -> impl Future<Output = Value> + Send;
}

/// The result of a run, or its state so far.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// The result; before there is one, the facts known so far.
    #[serde(flatten)]
    pub run: RunState,
    /// Calls that wait for a person; empty once the run has ended.
    #[serde(rename = "approvals", skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<ApprovalRequest>,
}

/// A run with its result, or without one yet.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum RunState {
    /// It has ended, or stopped until a host resumes it. The value stays JSON text: parsed, it
    /// would take many times its size.
    Ended(Box<RunResult>),
    /// It has no result yet.
    Unfinished(PendingRun),
}

/// A run that has no result yet.
#[derive(Debug, Clone, Serialize)]
pub struct PendingRun {
    /// The id that requests name it by.
    pub id: RunId,
    /// The present status, never a final one.
    pub status: RunStatus,
    /// Always false: clients look at one field, whether or not the run has ended.
    pub success: bool,
    /// The next step for the client, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl RunReport {
    /// A run with its result.
    pub fn ended(result: RunResult) -> Self {
        Self { run: RunState::Ended(Box::new(result)), waiting: Vec::new() }
    }

    /// A run without a result yet.
    pub fn unfinished(id: &RunId, status: RunStatus, message: Option<String>) -> Self {
        let run = PendingRun { id: id.clone(), status, success: false, message };
        Self { run: RunState::Unfinished(run), waiting: Vec::new() }
    }

    /// The id that requests name it by.
    pub fn id(&self) -> &RunId {
        match &self.run {
            RunState::Ended(result) => &result.id,
            RunState::Unfinished(run) => &run.id,
        }
    }

    /// The status of the result, or the present one before there is a result.
    pub fn status(&self) -> RunStatus {
        match &self.run {
            RunState::Ended(result) => result.status,
            RunState::Unfinished(run) => run.status,
        }
    }

    /// Its result, if there is one.
    pub fn result(&self) -> Option<&RunResult> {
        match &self.run {
            RunState::Ended(result) => Some(result),
            RunState::Unfinished(_) => None,
        }
    }

    /// The text that clients get.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The outcome of a request to end a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndRun {
    /// It has ended, now or before, or there is none.
    Over,
    /// Another process runs it, or it is part of a workflow: this gateway may not end it.
    Elsewhere,
}

/// A tool call that a person has to allow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ApprovalRequest {
    /// The id by which a decision refers to it.
    pub id: ApprovalId,
    /// The question, which decides the answers that count.
    pub kind: ApprovalKind,
    /// The question in words, with its possible answers.
    pub message: &'static str,
    /// The qualified name of the tool, `server__tool`.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Value,
    /// The run that waits.
    pub run_id: RunId,
    /// 1-based line of the agent's code, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// That line as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_line: Option<String>,
    /// The time from which it counts as denied, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// How long a yes may last, the shortest first; empty for a call that may have happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<ConsentScope>,
    /// The directory of the project that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The directory of the project's state, if it is not in its default place.
    #[serde(skip)]
    pub state_dir: Option<String>,
    /// The command by which a person decides, in any directory.
    pub command: String,
}

/// The effects of a decision beyond its call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionReport {
    /// The rule that was approved with the call, in words.
    pub rule: Option<String>,
    /// Other calls that waited, and that the rule has answered.
    pub also: Vec<ApprovalId>,
}

/// Why a decision did not count, in words for the client. The store's `DecideError` has the cause with its
/// data. This crate does not know the store, and a client acts on one of four faults.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct DecisionRefusal {
    /// The fault that a client can act on.
    pub fault: DecisionFault,
    /// The cause, with the id of the approval.
    pub message: String,
}

/// The fault of a decision that did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionFault {
    /// No approval has this id.
    Unknown,
    /// The answer does not fit the question.
    Answer,
    /// It was decided before, it expired, or its run is over.
    Settled,
    /// The decision could not be stored.
    Storage,
}

/// A search that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SearchError {
    /// The cause, for the model.
    pub message: String,
}

/// Tools that fit, best first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ToolsFound {
    /// The matches, best first.
    pub tools: Vec<ToolMatch>,
    /// Servers whose tools are not among these, because they do not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingServer>,
}

/// A server whose tools could not be looked through.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MissingServer {
    /// The server's name in the configuration.
    pub server: String,
    /// The reason it did not list its tools.
    pub reason: String,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolMatch {
    /// The qualified name, `server__tool`.
    pub name: String,
    /// How code calls it, with types: `mcp.server.tool(args: {…}): Promise<…>`.
    pub call: String,
    /// The description of the tool.
    pub description: String,
}

/// An upstream tool as clients see it.
#[derive(Debug, Clone)]
pub struct PassThrough {
    /// The qualified name, `server__tool`.
    pub name: String,
    /// The upstream's own title.
    pub title: Option<String>,
    /// The upstream's own description.
    pub description: Option<String>,
    /// The JSON schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// The JSON schema of its answer, if it declares one.
    pub output_schema: Option<Map<String, Value>>,
    /// The upstream's annotations, as it sent them.
    pub annotations: Option<Value>,
}

/// A backend reports the progress of a run through this. Cheap to clone; reporting never waits.
#[derive(Debug, Clone)]
pub struct RunReporter {
    live: LiveRun,
    feed: Option<Feed>,
    registration: Option<RunRegistration>,
    /// Where spans of its calls go, and the span they are part of.
    trace: Option<(Traces, TraceContext)>,
}

impl RunReporter {
    pub(crate) fn new(
        live: LiveRun,
        feed: Option<Feed>,
        registration: Option<RunRegistration>,
    ) -> Self {
        Self { live, feed, registration, trace: None }
    }

    pub(crate) fn trace(&mut self, trace: Option<(Traces, TraceContext)>) {
        self.trace = trace;
    }

    /// Completes when the run should end, with a report of how far it came.
    pub fn aborted(&self) -> impl Future<Output = ()> + Send + 'static {
        self.live.end_requested()
    }

    /// The run has an id.
    pub fn started(&self, run_id: &RunId) {
        self.live.update(|state| state.run_id = Some(run_id.clone()));
        if let Some(registration) = &self.registration {
            registration.announce(run_id, self.live.clone());
        }
        self.send(|| RunEvent::Started { run_id: run_id.clone() });
    }

    /// Whether a client receives prints as they happen.
    pub fn wants_prints(&self) -> bool {
        self.feed.is_some() || self.live.is_followed()
    }

    /// The code printed something. Clients that asked for progress receive its last line.
    pub fn printed(&self, stream: Stream, text: &str) {
        if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty())
            && self.live.is_followed()
        {
            self.line(line);
        }
        self.send(|| RunEvent::Printed { stream, text: text.to_owned() });
    }

    /// A tool call begins.
    pub fn call_began(&self, tool: &str) {
        self.line(&format!("calling {tool}"));
        self.send(|| RunEvent::CallBegan { tool: tool.to_owned() });
    }

    /// A tool call has ended.
    pub fn call_ended(&self, tool: &str, is_ok: bool, duration: Duration) {
        let how = if is_ok { "answered" } else { "failed" };
        self.line(&format!("{tool} {how} after {} ms", duration.as_millis()));
        self.send(|| RunEvent::CallEnded { tool: tool.to_owned(), is_ok, duration });
        if let Some((traces, run)) = &self.trace {
            let context = TraceContext::child_of(Some(*run));
            let span = Span::ended(format!("tool {tool}"), SpanKind::Client, context, duration);
            traces.send(span.with_parent(Some(*run)).ok(is_ok).with("belljar.tool", tool.into()));
        }
    }

    /// A line of progress. Followers receive only the latest one, so a flood costs nothing.
    pub fn line(&self, text: &str) {
        self.live.update(|state| state.say(text));
    }

    /// A call waits for a person.
    pub fn approval(&self, request: ApprovalRequest) {
        self.send(|| RunEvent::ApprovalRequested(Box::new(request.clone())));
        self.live.update(|state| {
            state.run_id.get_or_insert_with(|| request.run_id.clone());
            state.waiting.retain(|known| known.id != request.id);
            state.waiting.push(request);
        });
    }

    /// An approval was decided or expired: no person needs to answer it any more.
    pub fn settled(&self, approval_id: &ApprovalId) {
        self.live.update(|state| state.waiting.retain(|known| known.id != *approval_id));
        self.send(|| RunEvent::ApprovalSettled { approval_id: approval_id.clone() });
    }

    fn send(&self, what: impl FnOnce() -> RunEvent) {
        if let Some(feed) = &self.feed {
            feed.send(what());
        }
    }
}
