//! The port to what runs code: the gateway asks, the `belljar` crate answers.
//!
//! One promise holds the whole together: dropping the future of [`Backend::execute`] or
//! [`Backend::call_tool`] ends the run. The gateway keeps a future alive for as long as somebody
//! may still want its answer, also after the request that started it was answered.

use std::{future::Future, time::Duration};

use belljar_contract::{ExecuteRequest, RunResult, RunStatus, Stream, Verdict};
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
    /// Runs code to its end. What goes wrong is in the report, as for any run.
    fn execute(
        &self,
        request: ExecuteRequest,
        observer: RunReporter,
    ) -> impl Future<Output = RunReport> + Send;

    /// Settles an approval in the name of the person who answered in the client.
    fn decide(
        &self,
        approval_id: &str,
        verdict: Verdict,
        by: &str,
    ) -> impl Future<Output = Result<(), DecisionError>> + Send;

    /// The `k` tools nearest to what is intended, best first, and the servers that did not say in time
    /// which tools they have.
    fn search_tools(
        &self,
        intent: &str,
        k: u32,
    ) -> impl Future<Output = Result<ToolsFound, SearchError>> + Send;

    /// The report of a run this gateway did not keep itself (another process started it, or this
    /// one before it was restarted), once it has ended, waits for a person, or `wait` has passed.
    /// `None` if there is no such run. What it waits for is in [`RunReport::waiting`].
    fn get_run(
        &self,
        run_id: &str,
        wait: Duration,
    ) -> impl Future<Output = Option<RunReport>> + Send;

    /// Told once, before anything is asked: where to note what is done without being asked for by a
    /// request.
    fn measure_with(&self, _meter: BackgroundMeter) {}

    /// Runs that nobody has and that can go on: their host died or stopped, or a person has decided
    /// what they waited for. Those that are to go on first come first.
    fn resumable_runs(&self) -> impl Future<Output = Vec<RunInfo>> + Send {
        std::future::ready(Vec::new())
    }

    /// Goes on with such a run, to its end. `None` if somebody else has it by now, or it cannot go on.
    fn resume(
        &self,
        _run_id: &str,
        _observer: RunReporter,
    ) -> impl Future<Output = Option<RunReport>> + Send {
        std::future::ready(None)
    }

    /// Completes when there may be more of them.
    fn more_resumable(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Ends a run that this gateway does not have under way. It is never started for that.
    fn end_run(&self, _run_id: &str) -> impl Future<Output = EndRun> + Send {
        std::future::ready(EndRun::Over)
    }

    /// The host is going to stop: runs that survive it are not given up when they are told to end.
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

/// How a run went, or how it stands.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// Its result, or as much as is known before there is one.
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
    /// It has ended, or stopped until a host resumes it. The value in it stays the text it is:
    /// unfolded it would take many times its size.
    Ended(Box<RunResult>),
    /// It has no result yet.
    Unfinished(PendingRun),
}

/// A run that has no result yet.
#[derive(Debug, Clone, Serialize)]
pub struct PendingRun {
    /// The id that requests name it by.
    pub id: String,
    /// How it stands.
    pub status: RunStatus,
    /// Always false: clients look at one field, whether or not the run has ended.
    pub success: bool,
    /// What to do next, where that needs saying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl RunReport {
    /// A run with its result.
    pub fn ended(result: RunResult) -> Self {
        Self { run: RunState::Ended(Box::new(result)), waiting: Vec::new() }
    }

    /// A run without a result yet.
    pub fn unfinished(id: &str, status: RunStatus, message: Option<String>) -> Self {
        let run = PendingRun { id: id.to_owned(), status, success: false, message };
        Self { run: RunState::Unfinished(run), waiting: Vec::new() }
    }

    /// The id that requests name it by.
    pub fn id(&self) -> &str {
        match &self.run {
            RunState::Ended(result) => &result.id,
            RunState::Unfinished(run) => &run.id,
        }
    }

    /// How it stands.
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

/// What became of a run that was to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndRun {
    /// It has ended, now or before, or there is none.
    Over,
    /// Another process has it, or something else it is part of: it is not this gateway's to end.
    Elsewhere,
}

/// A tool call that a person has to allow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ApprovalRequest {
    /// What the decision names.
    pub id: String,
    /// What is asked.
    pub kind: ApprovalKind,
    /// The same in words, with the answers there are.
    pub message: &'static str,
    /// `server__tool`.
    pub tool: String,
    /// What the tool would be called with.
    pub arguments: Value,
    /// The run that waits.
    pub run_id: String,
    /// 1-based line of the agent's code, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// That line as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_line: Option<String>,
    /// When it counts as denied, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// What is asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// Whether it may be made.
    Call,
    /// It may have happened, and nobody saw it end: what is to be made of that.
    InDoubt,
}

impl ApprovalKind {
    /// What is asked, in words, with the answers there are.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Call => "The call was not made yet. Answer `approve` or `deny`.",
            Self::InDoubt => {
                "The call may have happened: the host ended before it was answered. Look, then answer \
                 `retry` (make it again), `use` with its `result` (it happened), or `deny` (it fails \
                 in the code)."
            }
        }
    }
}

/// Why a decision did not count.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// No approval has this id.
    #[error("no approval is called {0}")]
    Unknown(String),
    /// That is no answer to what was asked.
    #[error("{0}")]
    NoAnswer(String),
    /// Somebody decided before, or it expired.
    #[error("approval {0} is no longer open")]
    Settled(String),
    /// The run it is about is over.
    #[error("approval {0} is closed: its run has ended; nothing waits for this answer")]
    RunEnded(String),
    /// It could not be stored.
    #[error("the decision could not be stored: {0}")]
    Failed(String),
}

/// A search that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SearchError {
    /// What went wrong, for the model.
    pub message: String,
}

/// Tools that fit, best first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ToolsFound {
    /// What was found.
    pub tools: Vec<ToolMatch>,
    /// Servers whose tools are not among these, because they do not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingServer>,
}

/// A server whose tools could not be looked through.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MissingServer {
    /// Its name.
    pub server: String,
    /// Why not.
    pub reason: String,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolMatch {
    /// `server__tool`.
    pub name: String,
    /// How code calls it, with types: `mcp.server.tool(args: {…}): Promise<…>`.
    pub call: String,
    /// What it does.
    pub description: String,
}

/// An upstream tool as clients see it.
#[derive(Debug, Clone)]
pub struct PassThrough {
    /// `server__tool`.
    pub name: String,
    /// The upstream's own title.
    pub title: Option<String>,
    /// The upstream's own description.
    pub description: Option<String>,
    /// What it takes.
    pub input_schema: Map<String, Value>,
    /// What it answers with, where declared.
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
    pub fn started(&self, run_id: &str) {
        self.live.update(|state| state.run_id = Some(run_id.to_owned()));
        if let Some(registration) = &self.registration {
            registration.announce(run_id, self.live.clone());
        }
        self.send(|| RunEvent::Started { run_id: run_id.to_owned() });
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
        self.send(|| RunEvent::ApprovalRequested(request.clone()));
        self.live.update(|state| {
            state.run_id.get_or_insert_with(|| request.run_id.clone());
            state.waiting.retain(|known| known.id != request.id);
            state.waiting.push(request);
        });
    }

    /// An approval was decided or expired: nobody needs to be asked any more.
    pub fn settled(&self, approval_id: &str) {
        self.live.update(|state| state.waiting.retain(|known| known.id != approval_id));
        self.send(|| RunEvent::ApprovalSettled { approval_id: approval_id.to_owned() });
    }

    fn send(&self, what: impl FnOnce() -> RunEvent) {
        if let Some(feed) = &self.feed {
            feed.send(what());
        }
    }
}
