//! What the MCP server and the HTTP API ask for, answered by an [`Executor`].
//!
//! What a model asks for is within what the operator allows, or refused; nothing it sends can
//! approve a call.

mod records;
mod sessions;
mod terms;
mod told;
mod workflows;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_runtime::{Language, RunError, RunRequest, RunResult, Status, run_id, unrun};
use belljar_server::{
    ApprovalRequest, Backend, DecideError, ExecuteRequest, Observer, PassThrough, RunReport,
    SearchError, ToolMatch, Verdict,
};
use belljar_store::{ApprovalState, Approvals, RunSummary, Store};
use belljar_tools::{Glob, NoObserver, RunContext, Tool, ToolGrants, Wanted};
use serde_json::{Map, Value, json, value::to_raw_value};
use tokio::time::{Instant, sleep};

use crate::{
    Durability, Execution, Executor, Flows, SessionRegistry, executor::is_owner_this_process,
    is_owner_alive, now_ms,
};
pub use terms::Terms;
use told::{Prints, Told};
pub use workflows::WorkflowTerms;

/// How often a run of another process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Belljar behind its MCP server.
#[derive(Debug)]
pub struct ProjectBackend {
    executor: Executor,
    terms: Terms,
    passed_through: Vec<PassThrough>,
    /// Runs of hosts before this one that were started again here.
    revived: Mutex<BTreeSet<String>>,
    sessions: SessionRegistry,
    /// Workflows, unless the operator has switched them off.
    flows: Option<Flows>,
    warnings: workflows::Warnings,
}

impl ProjectBackend {
    /// Asks the servers whose tools are passed through for what these are.
    pub async fn new(executor: Executor, terms: Terms) -> Self {
        let mut passed_through = Vec::new();
        if let (Some(bridge), false) = (executor.bridge(), terms.pass_through.is_empty()) {
            let (catalogue, failures) = bridge.catalogue().await;
            for failure in failures {
                tracing::warn!(error = &failure as &dyn std::error::Error, "no tools to pass");
            }
            let is_chosen = |tool: &&Tool| {
                terms.pass_through.iter().any(|glob| glob.matches(&tool.qualified_name()))
            };
            passed_through = catalogue.tools().iter().filter(is_chosen).map(passed).collect();
        }
        let (sandbox, store) = (executor.sandbox().clone(), executor.store().cloned());
        let sessions = SessionRegistry::new(sandbox, store).await;
        let flows = Self::flows(&executor, &sessions, &terms).await;
        let (revived, warnings) = (Mutex::default(), workflows::Warnings::default());
        Self { executor, terms, passed_through, revived, sessions, flows, warnings }
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
                Some(false) | None => Durability::IfAsked,
            },
            max_output_tokens: Some(tokens.unwrap_or(self.terms.max_output_tokens)),
            cache: self.terms.cache,
            listener: Prints::listener(&observer),
            observer: Arc::new(Told { observer }),
            ..Execution::new(run, self.terms.caller.clone())
        })
    }
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
        observer.started(&id);
        let aborted = observer.aborted();
        let result = match self.execution(request, observer) {
            Ok(execution) => self.executor.execute_as(id, execution, aborted).await,
            Err(error) => RunResult { id, ..unrun(Status::Failed, error) },
        };
        RunReport::ended(serde_json::to_value(&result).unwrap_or_default())
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
        };
        match store.decide(approval_id, verdict, by, now_ms()).await {
            Ok(_) => Ok(()),
            Err(belljar_store::DecideError::Unknown(id)) => Err(DecideError::Unknown(id)),
            Err(
                belljar_store::DecideError::AlreadyDecided { id, .. }
                | belljar_store::DecideError::Expired { id, .. },
            ) => Err(DecideError::Settled(id)),
            Err(belljar_store::DecideError::Store(error)) => {
                Err(DecideError::Failed(error.to_string()))
            }
        }
    }

    async fn search_tools(&self, intent: &str, k: u32) -> Result<Vec<ToolMatch>, SearchError> {
        let Some(bridge) = self.executor.bridge() else { return Ok(Vec::new()) };
        let (catalogue, failures) = bridge.catalogue().await;
        if catalogue.tools().is_empty()
            && let Some(failure) = failures.first()
        {
            return Err(SearchError { message: failure.to_string() });
        }
        let hits = bridge.find(&catalogue, Wanted::new(intent, k as usize)).await;
        let mut found = Vec::new();
        for hit in hits {
            found.push(ToolMatch {
                name: hit.tool.qualified_name(),
                call: bridge.described(&hit.tool).await,
                description: String::new(),
            });
        }
        Ok(found)
    }

    async fn get_run(&self, run_id: &str, wait: Duration) -> Option<RunReport> {
        let store = self.executor.store()?;
        let until = Instant::now() + wait;
        loop {
            let record = store.run(run_id).await.ok().flatten()?;
            if let Some(result) = &record.result_json {
                return serde_json::from_str(result).ok().map(RunReport::ended);
            }
            let waiting = waiting(store, run_id).await;
            let goes_on = self.goes_on(store, &record.summary).await;
            if !waiting.is_empty() || !goes_on || Instant::now() >= until {
                return Some(unfinished(&record.summary, waiting, goes_on));
            }
            sleep(LOOK_EVERY).await;
        }
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

impl ProjectBackend {
    /// Whether somebody has a run under way, if need be this process from now on: a run whose host
    /// has died goes on, and so does one that was set aside with a question that a person has
    /// answered since. Nothing else brings back a run that its client gave up.
    async fn goes_on(&self, store: &Store, run: &RunSummary) -> bool {
        if run.status == "running" {
            if !is_owner_alive(&run.owner) && !is_owner_this_process(&run.owner) && run.durable {
                self.revive(&run.id);
            }
            return true;
        }
        if run.durable && was_answered(store, run).await {
            self.revive(&run.id);
        }
        self.revived.lock().unwrap_or_else(PoisonError::into_inner).contains(&run.id)
    }

    /// Starts a run again, once.
    fn revive(&self, run_id: &str) {
        let mut revived = self.revived.lock().unwrap_or_else(PoisonError::into_inner);
        if !revived.insert(run_id.to_owned()) {
            return;
        }
        let (executor, id) = (self.executor.clone(), run_id.to_owned());
        tokio::spawn(async move {
            let resumed = executor.resume(&id, Arc::new(NoObserver), std::future::pending()).await;
            if let Err(error) = resumed {
                tracing::warn!(error = &error as &dyn std::error::Error, id, "not resumed");
            }
        });
    }
}

/// The approvals a run waits for.
async fn waiting(store: &Store, run_id: &str) -> Vec<ApprovalRequest> {
    let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default();
    let of_run = pending.into_iter().filter(|approval| approval.asked.run_id == run_id);
    of_run.map(records::request).collect()
}

/// Whether a person decided about a call of a run after it was set aside.
async fn was_answered(store: &Store, run: &RunSummary) -> bool {
    let all = store.approvals(Approvals::All, now_ms()).await.unwrap_or_default();
    all.iter().any(|one| {
        let decided = matches!(one.state, ApprovalState::Approved | ApprovalState::Denied);
        one.asked.run_id == run.id && decided && one.decided_ms >= Some(run.updated_ms)
    })
}

/// How a run stands that has no result.
fn unfinished(run: &RunSummary, waiting: Vec<ApprovalRequest>, goes_on: bool) -> RunReport {
    let status = if waiting.is_empty() { run.status.as_str() } else { "approval_required" };
    let mut value = json!({ "id": run.id, "status": status, "success": false });
    if let (false, true, Some(fields)) = (goes_on, run.durable, value.as_object_mut()) {
        let message = format!("It was set aside; a person can run `belljar resume {}`.", run.id);
        fields.insert("message".to_owned(), message.into());
    }
    RunReport { value, waiting }
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
