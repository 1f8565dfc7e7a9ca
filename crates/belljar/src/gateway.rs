//! What the MCP server and the HTTP API ask for, answered by an [`Executor`].
//!
//! What a model asks for is within what the operator allows, or refused; nothing it sends can
//! approve a call.

mod durable;
mod records;
mod sessions;
mod storage;
mod terms;
mod told;
mod workflows;

use std::{sync::Arc, time::Duration};

use belljar_runtime::{Language, RunError, RunRequest, RunResult, Status, run_id, unrun};
use belljar_server::{
    Backend, DecideError, EndRun, ExecuteRequest, Meter, MissingServer, Observer, PassThrough,
    RunInfo, RunReport, SearchError, ToolMatch, ToolsFound, Verdict, is_well_formed,
};
use belljar_tools::{Bridge, Glob, RunContext, Tool, ToolGrants, ToolQuery};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{Durability, Execution, Executor, Flows, SessionRegistry, now_ms};
pub use terms::{ExecutableTerms, Terms};
use told::{Prints, Told};
pub use workflows::{WorkflowTerms, task_question, with_task};

/// How long servers may take to list the tools that are passed through, before any client is served.
const PASSED_IN: Duration = Duration::from_secs(30);
/// The most characters of a tool's summary.
const SUMMARY: usize = 200;

/// Belljar behind its MCP server.
#[derive(Debug)]
pub struct ProjectBackend {
    executor: Executor,
    terms: Terms,
    passed_through: Vec<PassThrough>,
    /// What is known of durable runs that nobody has.
    adoption: durable::Adoption,
    sessions: SessionRegistry,
    /// Workflows, unless the operator has switched them off.
    flows: Option<Flows>,
    warnings: workflows::Warnings,
    measured: storage::MeasuredSizes,
}

impl ProjectBackend {
    /// Asks the servers whose tools are passed through for what these are.
    pub async fn new(executor: Executor, terms: Terms) -> Self {
        let mut passed_through = Vec::new();
        if let (Some(bridge), false) = (executor.bridge(), terms.pass_through.is_empty()) {
            let chosen = chosen_tools(bridge, &terms.pass_through).await;
            passed_through = chosen.iter().map(passed).collect();
        }
        let (sandbox, store) = (executor.sandbox().clone(), executor.store().cloned());
        let sessions = SessionRegistry::new(sandbox, store).await;
        let flows = Self::flows(&executor, &sessions, &terms).await;
        let (adoption, warnings) = Default::default();
        let measured = storage::MeasuredSizes::default();
        Self { executor, terms, passed_through, adoption, sessions, flows, warnings, measured }
    }

    /// The executor behind it.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Ends every session, because the host does.
    pub async fn end_sessions(&self) {
        self.sessions.shutdown().await;
    }

    /// What a client asks for, within the operator's terms.
    fn execution(
        &self,
        request: ExecuteRequest,
        observer: Observer,
    ) -> Result<Execution, RunError> {
        let language = language(request.language);
        let mut run = RunRequest::new(language, request.code);
        run.limits = self.terms.limits(&request.limits);
        run.grants = self.terms.grants(&request.grants)?;
        run.workspace = self.terms.workspace(request.workspace.as_ref())?;
        run.context = request.context.as_ref().and_then(|context| to_raw_value(context).ok());
        let only = request.tools.map(|names| names.into_iter().map(Glob::new).collect());
        let tokens = request.max_output_tokens.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        Ok(Execution {
            tools: ToolGrants { only, given: Vec::new() },
            intent: request.intent,
            durability: match request.durable {
                Some(true) => Durability::Always,
                Some(false) => Durability::Never,
                None => Durability::IfAsked,
            },
            max_output_tokens: Some(tokens.unwrap_or(self.terms.max_output_tokens)),
            cache: self.terms.cache,
            listener: Prints::listener(&observer),
            observer: Arc::new(Told { observer }),
            ..Execution::new(run, self.terms.caller.clone())
        })
    }
}

/// The report of a run that has ended. Its value stays the text that it is.
fn report(mut result: RunResult) -> RunReport {
    let value = std::mem::replace(&mut result.result, RawValue::NULL.to_owned());
    let rest = serde_json::to_value(&result).unwrap_or_default();
    RunReport { result: Some(value), ..RunReport::ended(rest) }
}

/// What the rest of Belljar calls a language; TypeScript unless it is said.
fn language(asked: Option<belljar_server::Language>) -> Language {
    match asked {
        None | Some(belljar_server::Language::TypeScript) => Language::TypeScript,
        Some(belljar_server::Language::JavaScript) => Language::JavaScript,
        Some(belljar_server::Language::Python) => Language::Python,
        Some(belljar_server::Language::Bash) => Language::Bash,
    }
}

impl Backend for ProjectBackend {
    async fn execute(&self, request: ExecuteRequest, observer: Observer) -> RunReport {
        let id = run_id();
        let aborted = observer.aborted();
        let result = match self.execution(request, observer.clone()) {
            Ok(execution) => self.executor.execute_as(id, execution, aborted).await,
            Err(error) => {
                observer.started(&id);
                RunResult { id, ..unrun(Status::Failed, error) }
            }
        };
        report(result)
    }

    async fn decide(
        &self,
        approval_id: &str,
        verdict: Verdict,
        by: &str,
    ) -> Result<(), DecideError> {
        let store = self.executor.store();
        let store = store.ok_or_else(|| DecideError::Unknown(approval_id.to_owned()))?;
        let verdict = match verdict {
            Verdict::Approve => belljar_store::Verdict::Approve,
            Verdict::Deny => belljar_store::Verdict::Deny,
            Verdict::Retry => belljar_store::Verdict::Retry,
            Verdict::Use(result) => belljar_store::Verdict::Use(result.to_string()),
        };
        match store.decide(approval_id, verdict, by, now_ms()).await {
            Ok(_) => {
                self.adoption.look_again();
                Ok(())
            }
            Err(belljar_store::DecideError::Unknown(id)) => Err(DecideError::Unknown(id)),
            Err(
                belljar_store::DecideError::AlreadyDecided { id, .. }
                | belljar_store::DecideError::Expired { id, .. },
            ) => Err(DecideError::Settled(id)),
            Err(belljar_store::DecideError::RunEnded(id)) => Err(DecideError::RunEnded(id)),
            Err(
                error @ (belljar_store::DecideError::InDoubt(_)
                | belljar_store::DecideError::NotInDoubt(_)
                | belljar_store::DecideError::LargeResult(_)),
            ) => Err(DecideError::NoAnswer(error.to_string())),
            Err(belljar_store::DecideError::Store(error)) => {
                Err(DecideError::Failed(error.to_string()))
            }
        }
    }

    async fn search_tools(&self, intent: &str, k: u32) -> Result<ToolsFound, SearchError> {
        let Some(bridge) = self.executor.bridge() else { return Ok(ToolsFound::default()) };
        let (catalogue, failures) = bridge.catalogue().await;
        if catalogue.tools().is_empty()
            && let Some(failure) = failures.first()
        {
            return Err(SearchError { message: failure.to_string() });
        }
        let hits = bridge.find(&catalogue, ToolQuery::new(intent, k as usize)).await;
        let mut tools = Vec::new();
        for hit in hits {
            tools.push(ToolMatch {
                name: hit.tool.qualified_name(),
                call: bridge.describe_tool(&hit.tool).await,
                description: summary(&hit.tool),
            });
        }
        let missing = failures.iter().map(|failure| MissingServer {
            server: failure.server().to_owned(),
            reason: failure.to_string(),
        });
        Ok(ToolsFound { tools, missing: missing.collect() })
    }

    async fn get_run(&self, run_id: &str, wait: Duration) -> Option<RunReport> {
        self.stored_run(run_id, wait).await
    }

    async fn resumable_runs(&self) -> Vec<RunInfo> {
        self.runs_to_take_up().await
    }

    async fn resume(&self, run_id: &str, observer: Observer) -> Option<RunReport> {
        self.take_up(run_id, observer).await
    }

    async fn more_resumable(&self) {
        self.adoption.changed().await;
    }

    async fn end_run(&self, run_id: &str) -> EndRun {
        self.end_stored_run(run_id).await
    }

    fn prepare_to_stop(&self) {
        self.executor.prepare_to_stop();
    }

    fn measure_with(&self, meter: Meter) {
        self.executor.measure_with(meter);
    }

    fn pass_through(&self) -> Vec<PassThrough> {
        self.passed_through.clone()
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        observer: Observer,
    ) -> Value {
        let Some(bridge) = self.executor.bridge() else { return failure("there are no tools") };
        let id = run_id();
        observer.started(&id);
        let context = RunContext {
            run_id: id,
            caller: self.terms.caller.clone(),
            grants: ToolGrants::default(),
            tool_timeout: self.terms.limits.tool_timeout,
            code: String::new(),
            observer: Arc::new(Told { observer }),
        };
        let arguments = serde_json::to_vec(&arguments).unwrap_or_default();
        match bridge.call(&context, name, arguments).await {
            Ok(json) => answer(&json),
            Err(fault) => match fault.hint {
                Some(hint) => failure(&format!("{} ({hint})", fault.message)),
                None => failure(&fault.message),
            },
        }
    }
}

/// The tools that are to be passed through. Where one has a name that cannot be, its server is asked
/// again first: what is remembered of it may be long mended.
async fn chosen_tools(bridge: &Bridge, chosen: &[Glob]) -> Vec<Tool> {
    let is_chosen = |tool: &&Tool| chosen.iter().any(|glob| glob.matches(&tool.qualified_name()));
    let is_bad = |tool: &&Tool| is_chosen(tool) && !is_well_formed(&tool.qualified_name());
    let (mut catalogue, mut failures) = bridge.catalogue_within(PASSED_IN).await;
    let bad: Vec<Tool> = catalogue.tools().iter().filter(is_bad).cloned().collect();
    if !bad.is_empty() {
        bridge.refresh(&bad, PASSED_IN).await;
        (catalogue, failures) = bridge.catalogue_within(PASSED_IN).await;
    }
    for failure in failures {
        tracing::warn!(error = &failure as &dyn std::error::Error, "no tools to pass");
    }
    catalogue.tools().iter().filter(is_chosen).cloned().collect()
}

/// What a tool says of itself first; all of it is in how it is called.
fn summary(tool: &Tool) -> String {
    let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    text.trim().lines().next().unwrap_or_default().chars().take(SUMMARY).collect()
}

fn passed(tool: &Tool) -> PassThrough {
    let object = |schema: &Value| schema.as_object().cloned();
    let hints = &tool.annotations;
    PassThrough {
        name: tool.qualified_name(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        input_schema: object(&tool.input_schema).unwrap_or_default(),
        output_schema: tool.output_schema.as_ref().and_then(object),
        annotations: Some(json!({
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": hints.open_world,
        })),
    }
}

/// A tool's value as a `CallToolResult`.
fn answer(json: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut answer = json!({ "content": [{ "type": "text", "text": text }] });
    if let (true, Some(fields)) = (value.is_object(), answer.as_object_mut()) {
        fields.insert("structuredContent".to_owned(), value);
    }
    answer
}

fn failure(message: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": message }], "isError": true })
}
