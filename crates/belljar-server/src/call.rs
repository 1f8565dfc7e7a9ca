//! One tool call, from arguments to answer.
//!
//! Calls that run code start a run of their own and then follow it ([`follow`]). The rest is the
//! same for `execute_code` and for upstream tools that are passed through.

mod follow;
pub(crate) mod sandbox;
pub(crate) mod workflow;

use std::{sync::Arc, time::Duration};

use belljar_contract::{ApprovalId, ErrorCode, ExecuteRequest, RunId, Verdict};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitResult, InputRequest,
        InputRequiredResult, InputResponses, JsonObject, SealOptions,
    },
    service::RequestContext,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use self::{
    follow::{FollowResult, Follower, OnCancel},
    sandbox::SandboxRequest,
};
use crate::{
    answer,
    approval::{self, Channel, QuestionExtent, QuestionForm},
    backend::{ApprovalRequest, Backend, DecisionFault, RunReport},
    clients::StructuredUse,
    exact_json,
    gateway::Gateway,
    live::{ABORTED, LOST, LiveRun, ProgressUpdates, RunOutcome},
    request::{ArgumentFields, RequestError, decode_execute},
    tools,
};

/// How long `get_run` waits by default.
const DEFAULT_WAIT: Duration = Duration::from_secs(10);
/// How often a run of another process that waits for a person is read from the store.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How many tools a search finds by default, and at most.
const DEFAULT_FOUND: u64 = 5;
const MOST_FOUND: u64 = 50;

/// Which shape of answer the caller expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerShape {
    /// The shape of `execute_code` and `get_run`.
    Run,
    /// The output schema of an upstream tool.
    Tool,
}

/// The state that a client sends back when it repeats a request. It is sealed, and valid only for
/// the same tool with the same arguments.
#[derive(Debug, Serialize, Deserialize)]
struct RetryState {
    /// A run or a workflow, as `of` says.
    run_id: String,
    asked: Vec<String>,
    /// Ids of questions that were not shown in full; their answers cannot approve.
    #[serde(default)]
    in_part: Vec<String>,
    #[serde(default)]
    of: RetrySubject,
}

impl RetryState {
    /// The verdict that an answer to one of the questions stands for.
    fn verdict(&self, id: &str, answer: &ElicitResult) -> Option<Verdict> {
        let is_in_part = self.in_part.iter().any(|known| known == id);
        let extent = if is_in_part { QuestionExtent::InPart } else { QuestionExtent::Whole };
        approval::verdict(answer, extent)
    }
}

/// The subject of a repeated request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum RetrySubject {
    /// `run_id` is the id of a run.
    #[default]
    Run,
    /// `run_id` is the id of a workflow.
    Workflow,
}

/// One tool call, with everything needed to answer it.
struct McpCall {
    context: RequestContext<RoleServer>,
    channel: Channel,
    shape: AnswerShape,
    structured: StructuredUse,
    /// Digest of the tool and its arguments, which `requestState` is bound to.
    binding: Vec<u8>,
    /// Questions that the person saw in this call and did not decide.
    dismissed: Vec<String>,
}

impl<B: Backend> Gateway<B> {
    /// Decodes the arguments, and hands the call to its tool.
    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let call = McpCall {
            channel: Channel::of(&context),
            shape: if tools::NAMES.contains(&&*request.name) {
                AnswerShape::Run
            } else {
                AnswerShape::Tool
            },
            binding: binding(&request.name, &arguments),
            dismissed: Vec::new(),
            structured: StructuredUse::of(&context),
            context,
        };
        if let Some(sealed) = &request.request_state {
            let answers = request.input_responses.unwrap_or_default();
            return self.retry(call, sealed, &answers).await;
        }
        let refused = |error: RequestError| Ok(answer::refused(&error).into());
        match &*request.name {
            tools::EXECUTE => match decode_execute(arguments) {
                Ok(request) => self.execute(call, request).await,
                Err(error) => refused(error),
            },
            tools::SEARCH => self.search(arguments).await.or_else(refused),
            tools::GET_RUN => match decode_get_run(arguments) {
                Ok((run_id, wait)) => {
                    let wait = wait.unwrap_or(DEFAULT_WAIT).min(self.shared.answer_within);
                    self.answer_run(call, &run_id, wait, OnCancel::Leave).await
                }
                Err(error) => refused(error),
            },
            tools::SANDBOX => match SandboxRequest::decode(arguments) {
                Ok(asked) => self.sandbox(call, asked).await,
                Err(error) => refused(error),
            },
            tools::RUN_WORKFLOW if self.offers_workflows() => {
                match workflow::decode_run(arguments) {
                    Ok(asked) => self.run_workflow(call, asked).await,
                    Err(error) => refused(error),
                }
            }
            tools::WORKFLOW_COMMAND if self.offers_workflows() => {
                match workflow::decode_command(arguments) {
                    Ok(asked) => self.command_workflow(asked).await,
                    Err(error) => refused(error),
                }
            }
            tools::GET_WORKFLOW if self.offers_workflows() => {
                match workflow::decode_get(arguments) {
                    Ok(asked) => self.get_workflow(call, asked).await,
                    Err(error) => refused(error),
                }
            }
            name if self.is_passed_through(name) => self.call_upstream(call, name, arguments).await,
            name => Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
        }
    }

    fn offers_workflows(&self) -> bool {
        self.shared.backend.offers_workflows()
    }

    fn is_passed_through(&self, name: &str) -> bool {
        let (shown, _) = crate::names::sort_out(self.shared.backend.pass_through());
        shown.iter().any(|tool| tool.name == name)
    }

    async fn execute(
        &self,
        call: McpCall,
        request: ExecuteRequest,
    ) -> Result<CallToolResponse, ErrorData> {
        let followed = match follow::ProgressSender::of(&call.context) {
            Some(_) => ProgressUpdates::On,
            None => ProgressUpdates::Off,
        };
        let live = self.start_run(request, None, followed, None);
        self.follow(call, live, self.shared.answer_within, OnCancel::Abort).await
    }

    async fn call_upstream(
        &self,
        call: McpCall,
        name: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResponse, ErrorData> {
        let (backend, name) = (self.shared.backend.clone(), name.to_owned());
        let live = self.shared.runs.start(|reporter| async move {
            RunOutcome::Tool(Arc::new(backend.call_tool(&name, arguments, reporter).await))
        });
        self.follow(call, live, self.shared.answer_within, OnCancel::Abort).await
    }

    async fn search(&self, arguments: JsonObject) -> Result<CallToolResponse, RequestError> {
        let mut fields = ArgumentFields::new("", SEARCH_FIELDS, arguments)?;
        let intent = fields.text("intent")?.unwrap_or_default();
        if intent.trim().is_empty() {
            return Ok(answer::manual().into());
        }
        let k = fields.count("k")?.unwrap_or(DEFAULT_FOUND).clamp(1, MOST_FOUND);
        let k = u32::try_from(k).unwrap_or(u32::MAX);
        let began = Instant::now();
        let found = self.shared.backend.search_tools(&intent, k).await;
        self.shared.metrics.discovered(began.elapsed());
        Ok(match found {
            Ok(found) => answer::matches(&found).into(),
            Err(error) => answer::search_failed(&error.message).into(),
        })
    }

    /// Answers a repeated request that brings the person's answers (2026-07-28).
    async fn retry(
        &self,
        mut call: McpCall,
        sealed: &str,
        answers: &InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let state: RetryState =
            self.shared.states.open_json_with(sealed, &call.binding).map_err(|error| {
                tracing::warn!(%error, "a requestState was refused");
                ErrorData::invalid_params("requestState is not valid for this request", None)
            })?;
        if state.of == RetrySubject::Workflow {
            return self.retry_workflow(call, &state, answers).await;
        }
        let run_id = RunId::from(state.run_id.as_str());
        let live = self.shared.runs.find(&run_id);
        for id in &state.asked {
            let Some(said) = answers.get(id) else { continue };
            let said: ElicitResult = serde_json::from_value(said.clone()).map_err(|error| {
                ErrorData::invalid_params(format!("inputResponses.{id}: {error}"), None)
            })?;
            self.record_decision(
                &mut call,
                live.as_ref(),
                &id.as_str().into(),
                state.verdict(id, &said),
            )
            .await;
        }
        self.answer_run(call, &run_id, self.shared.answer_within, OnCancel::Abort).await
    }

    /// Passes a person's decision on. Without a decision, the person is not asked again in this
    /// call. A decision that comes too late changes nothing.
    async fn record_decision(
        &self,
        call: &mut McpCall,
        live: Option<&LiveRun>,
        id: &ApprovalId,
        verdict: Option<Verdict>,
    ) {
        let Some(verdict) = verdict else { return call.dismissed.push(id.to_string()) };
        let decided = self.shared.backend.decide(id, verdict, &call.client()).await;
        if let Err(error) = &decided {
            tracing::warn!(%error, "the backend refused a decision");
        }
        // After such a fault the approval is still open, and asking again now would not help.
        let is_open = decided.is_err_and(|error| {
            matches!(error.fault, DecisionFault::Storage | DecisionFault::Answer)
        });
        match live {
            _ if is_open => call.dismissed.push(id.to_string()),
            Some(live) => live.settled(id),
            None => {}
        }
    }

    /// Answers with the state of a run that another request started.
    async fn answer_run(
        &self,
        call: McpCall,
        run_id: &RunId,
        wait: Duration,
        on_cancel: OnCancel,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.shared.runs.find(run_id) {
            Some(live) => self.follow(call, live, wait, on_cancel).await,
            None => self.answer_stored_run(call, run_id, wait).await,
        }
    }

    /// The same for a run of another process, or of this one before it was restarted.
    async fn answer_stored_run(
        &self,
        mut call: McpCall,
        run_id: &RunId,
        wait: Duration,
    ) -> Result<CallToolResponse, ErrorData> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let report = tokio::select! {
                () = call.context.ct.cancelled() => return Err(cancelled()),
                report = self.shared.backend.get_run(run_id, left) => report,
            };
            let Some(report) = report else {
                let message = format!("no run has the id {run_id}");
                return Ok(answer::no_report(None, ErrorCode::SandboxFailed, &message).into());
            };
            let open = report.waiting.iter().filter(|one| !call.is_dismissed(&one.id));
            let open: Vec<&ApprovalRequest> = open.collect();
            match (open.first(), call.channel) {
                (Some(_), Channel::Elicit) => {
                    let (ids, verdict) = follow::ask(&call.context, &open).await;
                    for id in ids {
                        self.record_decision(&mut call, None, &id, verdict.clone()).await;
                    }
                }
                (Some(_), Channel::InputRequired) => {
                    return self.ask_for_approvals(&call, run_id, &report.waiting);
                }
                // A person may decide elsewhere in the meantime.
                (Some(_), Channel::None)
                    if !left.is_zero() && self.shared.told.are_known(&report.waiting) =>
                {
                    sleep(POLL_INTERVAL).await;
                }
                (Some(_), Channel::None) | (None, _) => {
                    self.shared.told.remember(&report.waiting);
                    return Ok(stored_answer(&call, run_id, &report));
                }
            }
        }
    }

    async fn follow(
        &self,
        mut call: McpCall,
        live: LiveRun,
        wait: Duration,
        on_cancel: OnCancel,
    ) -> Result<CallToolResponse, ErrorData> {
        let result = Follower::new(self, &live, &mut call).run(wait, on_cancel).await;
        match result {
            // It stopped, and its question is in the store.
            FollowResult::Finished { run_id: Some(run_id), finished } if finished.is_in_doubt() => {
                self.answer_stored_run(call, &run_id, Duration::ZERO).await
            }
            FollowResult::Finished { run_id, finished } => {
                Ok(finished_answer(&call, run_id.as_ref(), &finished))
            }
            FollowResult::Waiting { run_id, waiting } => {
                self.shared.runs.keep_findable(&run_id, &live);
                self.shared.told.remember(&waiting);
                let all_dismissed = waiting.iter().all(|one| call.is_dismissed(&one.id));
                if call.channel == Channel::InputRequired && !all_dismissed {
                    return self.ask_for_approvals(&call, &run_id, &waiting);
                }
                Ok(match call.shape {
                    AnswerShape::Run => answer::waiting(&run_id, &waiting).into(),
                    AnswerShape::Tool => answer::tool_waiting(&run_id, &waiting).into(),
                })
            }
            FollowResult::Running { run_id } => {
                self.shared.runs.keep_findable(&run_id, &live);
                Ok(match call.shape {
                    AnswerShape::Run => answer::running(&run_id).into(),
                    AnswerShape::Tool => answer::tool_running(&run_id).into(),
                })
            }
            FollowResult::Cancelled => Err(cancelled()),
        }
    }

    /// Asks the client to repeat the request with decisions on these approvals (2026-07-28).
    fn ask_for_approvals(
        &self,
        call: &McpCall,
        run_id: &RunId,
        waiting: &[ApprovalRequest],
    ) -> Result<CallToolResponse, ErrorData> {
        let open = waiting.iter().filter(|one| !call.is_dismissed(&one.id));
        let questions = open.map(|one| (one.id.to_string(), approval::form(one)));
        self.require_input(call, run_id, questions.collect(), RetrySubject::Run)
    }

    /// The answer that asks the client to repeat the request with these questions answered.
    fn require_input(
        &self,
        call: &McpCall,
        id: &str,
        questions: Vec<(String, QuestionForm)>,
        of: RetrySubject,
    ) -> Result<CallToolResponse, ErrorData> {
        let in_part = questions.iter().filter(|(_, form)| form.extent == QuestionExtent::InPart);
        let in_part = in_part.map(|(id, _)| id.clone()).collect();
        let questions = questions
            .into_iter()
            .map(|(id, form)| (id, InputRequest::Elicitation(ElicitRequest::new(form.params))))
            .collect::<std::collections::BTreeMap<_, _>>();
        let asked = questions.keys().cloned().collect();
        let state = RetryState { run_id: id.to_owned(), asked, in_part, of };
        let options = SealOptions::new().associated_data(&call.binding);
        let sealed = self.shared.states.seal_json_with(&state, &options).map_err(|error| {
            ErrorData::internal_error(format!("cannot seal requestState: {error}"), None)
        })?;
        Ok(InputRequiredResult::new(Some(questions), Some(sealed)).into())
    }
}

impl McpCall {
    /// Whether the person saw this question in this call and did not decide.
    fn is_dismissed(&self, id: &str) -> bool {
        self.dismissed.iter().any(|dismissed| dismissed == id)
    }

    /// The client's name for the record of decisions.
    fn client(&self) -> String {
        self.context.client_info().map_or_else(
            || "an MCP client".to_owned(),
            |client| format!("{} {}", client.name, client.version),
        )
    }
}

fn finished_answer(
    call: &McpCall,
    run_id: Option<&RunId>,
    finished: &RunOutcome,
) -> CallToolResponse {
    match (finished, call.shape) {
        (RunOutcome::Run(report, _), _) => answer::run(report, call.structured),
        (RunOutcome::Refused(error), _) => answer::not_in_session(error),
        (RunOutcome::Tool(value), AnswerShape::Tool) => answer::tool(value),
        (RunOutcome::Tool(value), AnswerShape::Run) => {
            answer::tool_as_run(&run_id.cloned().unwrap_or_default(), value)
        }
        (RunOutcome::Aborted, _) => answer::no_report(run_id, ErrorCode::RunAborted, ABORTED),
        (RunOutcome::Lost, _) => answer::no_report(run_id, ErrorCode::SandboxFailed, LOST),
    }
    .into()
}

/// The answer for a stored run, in the shape that the caller expects.
fn stored_answer(call: &McpCall, run_id: &RunId, report: &RunReport) -> CallToolResponse {
    match call.shape {
        AnswerShape::Tool if !report.waiting.is_empty() => {
            answer::tool_waiting(run_id, &report.waiting).into()
        }
        AnswerShape::Tool => answer::tool(&serde_json::json!(report)).into(),
        AnswerShape::Run => answer::run(report, call.structured).into(),
    }
}

/// The arguments of `search_tools`.
pub(crate) const SEARCH_FIELDS: &[&str] = &["intent", "k"];
/// The arguments of `get_run`.
pub(crate) const GET_RUN_FIELDS: &[&str] = &["run_id", "wait_ms"];

fn decode_get_run(arguments: JsonObject) -> Result<(RunId, Option<Duration>), RequestError> {
    let mut fields = ArgumentFields::new("", GET_RUN_FIELDS, arguments)?;
    let missing = || RequestError::Missing { field: "run_id".to_owned() };
    let run_id = fields.text("run_id")?.ok_or_else(missing)?.into();
    Ok((run_id, fields.count("wait_ms")?.map(Duration::from_millis)))
}

fn binding(name: &str, arguments: &JsonObject) -> Vec<u8> {
    // The mark is another one after a restart, so the digest is that of the tree it stands for.
    let text = serde_json::to_vec(arguments).unwrap_or_default();
    let restored = exact_json::restored(&text);
    let tree = serde_json::from_slice::<Value>(&restored).ok();
    let arguments =
        tree.and_then(|tree| serde_json::to_vec(&tree).ok()).unwrap_or(restored.into_owned());
    Sha256::new().chain_update(name).chain_update([0]).chain_update(arguments).finalize().to_vec()
}

/// Never sent: a cancelled request gets no answer.
fn cancelled() -> ErrorData {
    ErrorData::internal_error("the request was cancelled", None)
}
