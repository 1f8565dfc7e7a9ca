//! The tools `run_workflow`, `workflow_command` and `get_workflow`, for a model.
//!
//! A workflow runs by itself: a call follows it for a while and answers with its state. If the
//! client can ask its user, the person decides there; nothing that a model sends decides for a
//! person. Every answer about a workflow that has not ended lists the commands it takes.

mod answers;

use std::{sync::LazyLock, time::Duration};

use belljar_contract::{
    JsonMap, JsonValue, MAX_WORKFLOW_ID, Verdict, exact_json, is_workflow_id, json_value,
};
use belljar_wire::json::check_keys;
use rmcp::{
    ErrorData,
    model::{CallToolResponse, ElicitResult, InputResponses, JsonObject},
};
use tokio::time::Instant;

use super::{DEFAULT_WAIT, McpCall, RetryState, cancelled, follow::ProgressSender};
use crate::{
    answer,
    approval::{self, Channel},
    backend::Backend,
    exact_json,
    feed::HEARTBEAT,
    gateway::Gateway,
    request::{ArgumentFields, RequestError, nearest},
    workflows::{
        CommandSender, WorkflowApiError, WorkflowCommandRequest, WorkflowQuestion, WorkflowReport,
        WorkflowRequest, WorkflowSource,
    },
};

/// Events read at once.
const PAGE: u32 = 200;
/// The most workflows in a list.
const LISTED: u32 = 20;
/// How long a call waits for the answer to its command.
const COMMAND_WAIT: Duration = Duration::from_secs(20);

/// The arguments of `run_workflow`.
pub(crate) const RUN_FIELDS: &[&str] = &["workflow", "inputs", "id", "wait_ms"];
/// The arguments of `get_workflow`.
pub(crate) const GET_FIELDS: &[&str] = &["id", "wait_ms", "after"];

/// The arguments of `get_workflow`, decoded.
#[derive(Debug, PartialEq)]
pub(super) struct GetWorkflowRequest {
    id: Option<String>,
    wait: Duration,
    /// If given, the answer is the list of events after this number.
    after: Option<u64>,
}

/// Decodes the arguments of `run_workflow`.
pub(super) fn decode_run(
    arguments: JsonObject,
) -> Result<(WorkflowRequest, Option<Duration>), RequestError> {
    let mut fields = ArgumentFields::new("", RUN_FIELDS, with_id(arguments)?)?;
    let missing = || RequestError::Missing { field: "workflow".to_owned() };
    let workflow = fields.take("workflow").map(exact_json::tree).ok_or_else(missing)?;
    let workflow = WorkflowSource::from_value(workflow)
        .map_err(|other| kind("workflow", "a workflow, or the text of one", &other))?;
    let id = fields.text("id")?;
    if let Some(odd) = id.as_deref().filter(|id| !is_workflow_id(id)) {
        static WANTED: LazyLock<String> =
            LazyLock::new(|| format!("up to {MAX_WORKFLOW_ID} letters, digits, `_`, `-` or `.`"));
        return Err(kind("id", &WANTED, &exact_json!(odd)));
    }
    let wait = fields.count("wait_ms")?.map(Duration::from_millis);
    let inputs = fields
        .take("inputs")
        .map(exact_json::tree)
        .map(|inputs| object(&inputs).ok_or_else(|| kind("inputs", "an object", &inputs)));
    let inputs = inputs.transpose()?.unwrap_or_default();
    Ok((WorkflowRequest { workflow, inputs, id }, wait))
}

/// Decodes the arguments of `get_workflow`.
pub(super) fn decode_get(arguments: JsonObject) -> Result<GetWorkflowRequest, RequestError> {
    let mut fields = ArgumentFields::new("", GET_FIELDS, with_id(arguments)?)?;
    let wait = fields.count("wait_ms")?.map_or(DEFAULT_WAIT, Duration::from_millis);
    Ok(GetWorkflowRequest { id: fields.text("id")?, wait, after: fields.count("after")? })
}

/// Decodes the arguments of `workflow_command`: the command's name with its fields beside it, or
/// all of it as one object.
pub(super) fn decode_command(
    arguments: JsonObject,
) -> Result<(String, WorkflowCommandRequest), RequestError> {
    let arguments = with_id(arguments)?.into_iter();
    let mut arguments: JsonMap =
        arguments.map(|(name, value)| (name, exact_json::tree(value))).collect();
    let missing = |field: &str| RequestError::Missing { field: field.to_owned() };
    let text = |name: &'static str, given: Option<JsonValue>| match given {
        Some(JsonValue::String(text)) => Ok(Some(text)),
        None | Some(JsonValue::Null) => Ok(None),
        Some(other) => Err(kind(name, "a string", &other)),
    };
    let id = text("id", arguments.remove("id"))?.ok_or_else(|| missing("id"))?;
    let command_id = text("command_id", arguments.remove("command_id"))?;
    let mut command = match arguments.remove("command") {
        Some(JsonValue::Object(whole)) => whole,
        Some(whole) if whole.as_str().is_some_and(|text| text.trim_start().starts_with('{')) => {
            object(&whole).ok_or_else(|| kind("command", answers::COMMANDS, &whole))?
        }
        Some(JsonValue::String(name)) => {
            JsonMap::from_iter([("command".to_owned(), JsonValue::String(name))])
        }
        Some(other) => return Err(kind("command", answers::COMMANDS, &other)),
        None => return Err(missing("command")),
    };
    command.extend(arguments.into_iter().filter(|(_, value)| !value.is_null()));
    let named = command.get("command").and_then(JsonValue::as_str).unwrap_or_default();
    if !answers::NAMES.contains(&named) {
        let near = nearest(named, answers::NAMES).map(|near| format!("; did you mean {near}?"));
        let found = format!("{named:?}{}", near.unwrap_or_default());
        let (field, wanted) = ("command".to_owned(), answers::COMMANDS);
        return Err(RequestError::Kind { field, wanted, found });
    }
    Ok((id, WorkflowCommandRequest { id: command_id, command, by: CommandSender::Agent }))
}

/// An object, or the one that a text is: a key in it twice is refused.
fn object(value: &JsonValue) -> Option<JsonMap> {
    let read = value.as_str().map(|text| {
        check_keys(text.as_bytes()).ok()?;
        json_value::parse(text).ok()
    });
    match read {
        Some(read) => read?.as_object().cloned(),
        None => value.as_object().cloned(),
    }
}

/// Accepts `workflow_id` for `id`, because answers use that name.
fn with_id(mut arguments: JsonObject) -> Result<JsonObject, RequestError> {
    let other = ["workflow_id", "workflowId"].into_iter().find_map(|name| arguments.remove(name));
    match other.filter(|other| !other.is_null()) {
        Some(other) if arguments.get("id").is_some_and(|id| *id != other) => {
            Err(RequestError::Twice { field: "id".to_owned() })
        }
        Some(other) => {
            arguments.insert("id".to_owned(), other);
            Ok(arguments)
        }
        None => Ok(arguments),
    }
}

fn kind(field: &str, wanted: &'static str, found: &JsonValue) -> RequestError {
    RequestError::Kind { field: field.to_owned(), wanted, found: found.to_string() }
}

impl<B: Backend> Gateway<B> {
    /// Starts a workflow, and follows it for a while.
    pub(super) async fn run_workflow(
        &self,
        mut call: McpCall,
        (request, wait): (WorkflowRequest, Option<Duration>),
    ) -> Result<CallToolResponse, ErrorData> {
        let most = self.shared.answer_within;
        if let Err(error) = request.check_size() {
            return Ok(answers::failed(&error).into());
        }
        match self.shared.backend.run_workflow(request).await {
            Ok(id) => self.follow_workflow(&mut call, &id, 0, wait.unwrap_or(most).min(most)).await,
            Err(error) => Ok(answers::failed(&error).into()),
        }
    }

    /// Answers with the state of a workflow, or with the list of workflows.
    pub(super) async fn get_workflow(
        &self,
        mut call: McpCall,
        GetWorkflowRequest { id, wait, after }: GetWorkflowRequest,
    ) -> Result<CallToolResponse, ErrorData> {
        let backend = &self.shared.backend;
        let Some(id) = id else {
            return Ok(match backend.workflows(LISTED, None).await {
                Ok(all) => answer::structured_tree(&exact_json!({"workflows": all}), false).into(),
                Err(error) => answers::failed(&error).into(),
            });
        };
        if let Some(after) = after {
            let events = backend.workflow_events(&id, after, PAGE, Duration::ZERO).await;
            return Ok(match events {
                Ok(events) => answers::events(&id, &events).into(),
                Err(error) => answers::failed(&error).into(),
            });
        }
        let report = match backend.workflow(&id).await {
            Ok(report) => report,
            Err(error) => return Ok(answers::failed(&error).into()),
        };
        if report.is_over || wait.is_zero() {
            return Ok(answers::report(&report).into());
        }
        let wait = wait.min(self.shared.answer_within);
        if call.channel != Channel::None && !report.questions.is_empty() {
            return self.answer_workflow(&mut call, &id, report, Instant::now() + wait).await;
        }
        self.follow_workflow(&mut call, &id, report.last_event, wait).await
    }

    /// Passes a model's command on.
    pub(super) async fn command_workflow(
        &self,
        (id, command): (String, WorkflowCommandRequest),
    ) -> Result<CallToolResponse, ErrorData> {
        let answered = self.shared.backend.command_workflow(&id, command, COMMAND_WAIT).await;
        Ok(match answered {
            Ok(answer) => answers::command(&id, &answer).into(),
            Err(error) => answers::failed(&error).into(),
        })
    }

    /// Answers a repeated request that brings the person's answers (2026-07-28).
    pub(super) async fn retry_workflow(
        &self,
        mut call: McpCall,
        state: &RetryState,
        answers: &InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        for decision in &state.asked {
            let Some(said) = answers.get(decision) else { continue };
            let said: ElicitResult = serde_json::from_value(said.clone()).map_err(|error| {
                ErrorData::invalid_params(format!("inputResponses.{decision}: {error}"), None)
            })?;
            self.decide(&mut call, &state.run_id, decision, state.verdict(decision, &said)).await;
        }
        match self.shared.backend.workflow(&state.run_id).await {
            Ok(report) => {
                let deadline = Instant::now() + self.shared.answer_within;
                self.answer_workflow(&mut call, &state.run_id, report, deadline).await
            }
            Err(error) => Ok(answers::failed(&error).into()),
        }
    }

    /// Follows a workflow until there is something to answer.
    async fn follow_workflow(
        &self,
        call: &mut McpCall,
        id: &str,
        after: u64,
        wait: Duration,
    ) -> Result<CallToolResponse, ErrorData> {
        let deadline = Instant::now() + wait;
        if let Err(error) = self.wait_for_attention(call, id, after, deadline).await? {
            return Ok(answers::failed(&error).into());
        }
        match self.shared.backend.workflow(id).await {
            Ok(report) => self.answer_workflow(call, id, report, deadline).await,
            Err(error) => Ok(answers::failed(&error).into()),
        }
    }

    /// Sends progress until the workflow has ended, needs attention, or time is up.
    async fn wait_for_attention(
        &self,
        call: &McpCall,
        id: &str,
        mut after: u64,
        deadline: Instant,
    ) -> Result<Result<(), WorkflowApiError>, ErrorData> {
        let mut progress = ProgressSender::of(&call.context);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = left.min(HEARTBEAT);
            let events = tokio::select! {
                () = call.context.ct.cancelled() => return Err(cancelled()),
                events = self.shared.backend.workflow_events(id, after, PAGE, timeout) => events,
            };
            let events = match events {
                Ok(events) => events,
                Err(error) => return Ok(Err(error)),
            };
            after = events.last().map_or(after, |event| event.seq);
            if let Some(progress) = &mut progress {
                match events.last() {
                    Some(event) => progress.send(&call.context, &event.line).await,
                    None => progress.send_heartbeat(&call.context).await,
                }
            }
            let needs_attention = events.iter().any(|event| event.effect.ends_wait());
            if needs_attention || Instant::now() >= deadline {
                return Ok(Ok(()));
            }
        }
    }

    /// Answers with the state of the workflow, after asking the person if the client can.
    async fn answer_workflow(
        &self,
        call: &mut McpCall,
        id: &str,
        mut report: WorkflowReport,
        deadline: Instant,
    ) -> Result<CallToolResponse, ErrorData> {
        loop {
            let open = |one: &&WorkflowQuestion| !call.dismissed.contains(&one.decision);
            let open: Vec<_> = report.questions.iter().filter(open).cloned().collect();
            match (open.first(), call.channel) {
                (Some(first), Channel::Elicit) => {
                    let verdict = ask(call, id, first).await;
                    let is_decided = verdict.is_some();
                    self.decide(call, id, &first.decision, verdict).await;
                    // The person may have used up the time that was left.
                    let deadline = deadline.max(Instant::now() + DEFAULT_WAIT);
                    if is_decided
                        && let Err(error) =
                            self.wait_for_attention(call, id, report.last_event, deadline).await?
                    {
                        return Ok(answers::failed(&error).into());
                    }
                }
                (Some(_), Channel::InputRequired) => {
                    let questions =
                        open.iter().map(|one| (one.decision.clone(), answers::question(id, one)));
                    return self.require_input(
                        call,
                        id,
                        questions.collect(),
                        super::RetrySubject::Workflow,
                    );
                }
                (Some(_), Channel::None) | (None, _) => return Ok(answers::report(&report).into()),
            }
            report = match self.shared.backend.workflow(id).await {
                Ok(report) => report,
                Err(error) => return Ok(answers::failed(&error).into()),
            };
        }
    }

    /// Passes a person's decision on. Without a decision, the person is not asked again in this
    /// call.
    async fn decide(&self, call: &mut McpCall, id: &str, decision: &str, verdict: Option<Verdict>) {
        // The question was answered: a decision that is still open needs another call.
        call.dismissed.push(decision.to_owned());
        let name = match verdict {
            Some(Verdict::Approve) => "approve",
            Some(Verdict::Deny) => "reject",
            // Questions of workflows only have the answers yes and no.
            Some(Verdict::ApproveRule(_) | Verdict::Retry | Verdict::Use(_)) | None => return,
        };
        let fields = [("command", name), ("decision", decision)];
        let fields = fields.map(|(field, text)| (field.to_owned(), JsonValue::from(text)));
        let by = CommandSender::Person(call.client());
        let command = WorkflowCommandRequest { id: None, command: JsonMap::from_iter(fields), by };
        let decided = self.shared.backend.command_workflow(id, command, COMMAND_WAIT).await;
        if let Err(error) = decided {
            tracing::warn!(%error, "the backend refused a decision");
        }
    }
}

/// Asks the person at the client (up to 2025-11-25). `None` if they did not decide.
async fn ask(call: &McpCall, id: &str, question: &WorkflowQuestion) -> Option<Verdict> {
    let form = answers::question(id, question);
    let left = approval::time_left(question.expires_ms);
    super::follow::ask_form(&call.context, form, left).await
}
