//! The server's backend: runs, tools, approvals and workflows of a project, for MCP and HTTP
//! clients.
//!
//! A request beyond the operator's permissions is refused, and nothing a model sends can approve a
//! call.

mod client_observer;
mod durable;
mod permissions;
mod records;
mod sessions;
mod size_cache;
mod workflows;

use std::{sync::Arc, time::Duration};

use belljar_contract::{
    ApprovalId, ExecuteRequest, JsonText, RunError, RunId, RunRequest, Verdict,
};
use belljar_runtime::run_id;
use belljar_server::{
    Backend, BackgroundMeter, DecisionFault, DecisionRefusal, DecisionReport, EndRun,
    MissingServer, PassThrough, RunInfo, RunReport, RunReporter, SearchError, ToolMatch,
    ToolsFound, is_well_formed,
};
use belljar_store::DecideError;
use belljar_tools::{Bridge, Glob, RunContext, Tool, ToolGrants, ToolQuery, VerdictError};
use client_observer::{ClientObserver, PrintForwarder};
use serde_json::{Map, Value, json};

use crate::{Execution, Executor, ProjectWorkflows, RunDurability, SessionRegistry, now_ms};

pub use permissions::{ClientPermissions, ExecutablePermissions};
pub use workflows::{WorkflowServiceOptions, task_question, with_task};

/// How long servers may take to list the passed-through tools before the first client is served.
const PASSED_IN: Duration = Duration::from_secs(30);
/// Longest summary of a tool, in characters.
const SUMMARY: usize = 200;

/// A project as the MCP server and the HTTP API use it.
#[derive(Debug)]
pub struct ProjectBackend {
    executor: Executor,
    permissions: ClientPermissions,
    passed_through: Vec<PassThrough>,
    /// Durable runs without an owner that this host may resume.
    adoption: durable::Adoption,
    sessions: SessionRegistry,
    /// `None` if the operator has switched workflows off.
    workflows: Option<ProjectWorkflows>,
    warnings: workflows::Warnings,
    sizes: size_cache::SizeCache,
}

impl ProjectBackend {
    /// Lists the tools to pass through, which may start their servers.
    pub async fn new(executor: Executor, permissions: ClientPermissions) -> Self {
        let mut passed_through = Vec::new();
        if let (Some(bridge), false) = (executor.bridge(), permissions.pass_through.is_empty()) {
            let chosen = chosen_tools(bridge, &permissions.pass_through).await;
            passed_through = chosen.iter().map(pass_through_of).collect();
        }
        let (sandbox, store) = (executor.sandbox().clone(), executor.store().cloned());
        let sessions = SessionRegistry::new(sandbox, store).await;
        let workflows = Self::project_workflows(&executor, &sessions, &permissions).await;
        let (adoption, warnings) = Default::default();
        let sizes = size_cache::SizeCache::default();
        Self {
            executor,
            permissions,
            passed_through,
            adoption,
            sessions,
            workflows,
            warnings,
            sizes,
        }
    }

    /// The executor that runs the clients' code.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Ends every session because the host stops.
    pub async fn end_sessions(&self) {
        self.sessions.shutdown().await;
    }

    /// Turns a client's request into an execution within the operator's permissions.
    fn execution(
        &self,
        request: ExecuteRequest,
        observer: RunReporter,
    ) -> Result<Execution, RunError> {
        let language_left_out = request.language.is_none();
        let mut run = RunRequest::new(request.language(), request.code);
        run.engine = request.engine;
        run.limits = self.permissions.limits.with(&request.limits);
        run.grants = self.permissions.grants(&request.grants)?;
        run.workspace = self.permissions.workspace(request.workspace.as_ref())?;
        run.context = request.context.map(JsonText::into_raw);
        let only = request.grants.tools.map(|names| names.into_iter().map(Glob::new).collect());
        Ok(Execution {
            language_left_out,
            hosts: Some(self.permissions.host_flags()),
            tools: ToolGrants { only, given: Vec::new() },
            intent: request.intent,
            durability: match request.durable {
                Some(true) => RunDurability::Always,
                Some(false) => RunDurability::Never,
                None => RunDurability::IfAsked,
            },
            max_output_tokens: Some(
                request.max_output_tokens.unwrap_or(self.permissions.max_output_tokens),
            ),
            cache: self.permissions.cache,
            listener: PrintForwarder::listener(&observer),
            observer: Arc::new(ClientObserver { observer }),
            ..Execution::new(run, self.permissions.caller.clone())
        })
    }
}

impl Backend for ProjectBackend {
    async fn execute(&self, request: ExecuteRequest, observer: RunReporter) -> RunReport {
        let id = run_id();
        let aborted = observer.aborted();
        let language = request.language();
        let result = match self.execution(request, observer.clone()) {
            Ok(execution) => {
                self.permissions.reworded(self.executor.execute_as(id, execution, aborted).await)
            }
            Err(error) => {
                observer.started(&id);
                self.executor.refuse(id, language, error).await
            }
        };
        RunReport::ended(result)
    }

    async fn decide(
        &self,
        approval_id: &ApprovalId,
        verdict: Verdict,
        by: &str,
    ) -> Result<DecisionReport, DecisionRefusal> {
        let decisions = self.executor.decisions();
        let decisions =
            decisions.ok_or_else(|| not_decided(&DecideError::Unknown(approval_id.clone())))?;
        match decisions.decide(approval_id, verdict, by, now_ms()).await {
            Ok(recorded) => {
                self.adoption.notify();
                Ok(DecisionReport {
                    rule: recorded.rule.as_ref().map(|_| recorded.to_string()),
                    also: recorded.also.into_iter().map(|one| one.asked.id).collect(),
                })
            }
            Err(VerdictError::Decide(error)) => Err(not_decided(&error)),
            Err(error) => {
                let is_storage = matches!(error, VerdictError::NotKept(_));
                let fault = if is_storage { DecisionFault::Storage } else { DecisionFault::Answer };
                Err(DecisionRefusal { fault, message: chain(&error) })
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

    async fn get_run(&self, run_id: &RunId, wait: Duration) -> Option<RunReport> {
        self.stored_run(run_id, wait).await
    }

    async fn resumable_runs(&self) -> Vec<RunInfo> {
        self.runs_to_resume().await
    }

    async fn resume(&self, run_id: &RunId, observer: RunReporter) -> Option<RunReport> {
        self.resume_found(run_id, observer).await
    }

    async fn more_resumable(&self) {
        self.adoption.changed().await;
    }

    async fn end_run(&self, run_id: &RunId) -> EndRun {
        self.end_stored_run(run_id).await
    }

    fn prepare_to_stop(&self) {
        self.executor.prepare_to_stop();
    }

    fn measure_with(&self, meter: BackgroundMeter) {
        self.executor.measure_with(meter);
    }

    fn pass_through(&self) -> Vec<PassThrough> {
        self.passed_through.clone()
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        observer: RunReporter,
    ) -> Value {
        let id = run_id();
        observer.started(&id);
        let context = RunContext {
            session: None,
            run_id: id,
            caller: self.permissions.caller.clone(),
            grants: ToolGrants::default(),
            tool_timeout: self.permissions.limits.tool_timeout,
            code: String::new(),
            observer: Arc::new(ClientObserver { observer }),
        };
        match self.executor.call(&context, name, arguments.into()).await {
            Ok(value) => tool_result(value.into_value()),
            Err(error) => match error.hint {
                Some(hint) => tool_error(&format!("{} ({hint})", error.message)),
                None => tool_error(&error.message),
            },
        }
    }
}

/// Why a decision did not count, for a client.
fn not_decided(error: &DecideError) -> DecisionRefusal {
    let fault = match error {
        DecideError::Unknown(_) => DecisionFault::Unknown,
        DecideError::AlreadyDecided { .. }
        | DecideError::Expired { .. }
        | DecideError::RunEnded(_) => DecisionFault::Settled,
        DecideError::InDoubt(_) | DecideError::NotInDoubt(_) | DecideError::LargeResult(_) => {
            DecisionFault::Answer
        }
        DecideError::Store(_) => DecisionFault::Storage,
    };
    DecisionRefusal { fault, message: chain(error) }
}

/// An error with its cause.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The tools to pass through. If a remembered tool has an invalid name, its server is asked again
/// first: it may have been fixed since.
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
        tracing::warn!(
            error = &failure as &dyn std::error::Error,
            "cannot list the tools of a server to pass through"
        );
    }
    catalogue.tools().iter().filter(is_chosen).cloned().collect()
}

/// The first line of a tool's description. The whole description is part of `call`.
fn summary(tool: &Tool) -> String {
    let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    text.trim().lines().next().unwrap_or_default().chars().take(SUMMARY).collect()
}

fn pass_through_of(tool: &Tool) -> PassThrough {
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
fn tool_result(value: Value) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut answer = json!({ "content": [{ "type": "text", "text": text }] });
    if let (true, Some(fields)) = (value.is_object(), answer.as_object_mut()) {
        fields.insert("structuredContent".to_owned(), value);
    }
    answer
}

fn tool_error(message: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": message }], "isError": true })
}
