//! `/v1/workflows`: run, inspect, follow and command workflows.
//!
//! A client with the token acts for the operator and may decide the questions that a workflow puts
//! to a person.

pub(super) mod body;

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response, sse::Event},
};
use belljar_contract::{JsonValue, exact_json};
use tokio::time::Instant;

use self::body::{
    CommandRequest, WorkflowBody, WorkflowEventList, WorkflowEventsQuery, WorkflowForkBody,
    WorkflowList, WorkflowListQuery, WorkflowQuery,
};
use super::{
    Api,
    error::ApiError,
    input::{JsonBody, OptionalJsonBody, PathParams, QueryParams, bounded_count, bounded_wait},
    sse::{self, EventLog},
};
use crate::{
    backend::Backend,
    feed::HEARTBEAT,
    workflows::{
        CommandSender, EventEffect, WorkflowCommandAnswer, WorkflowCommandRequest,
        WorkflowEventInfo, WorkflowReport,
    },
};

/// Names the sender of commands in a workflow's events.
const BY: &str = "http";
/// Workflows in a list by default, and at most.
const DEFAULT_LISTED: u32 = 50;
const MOST_LISTED: u32 = 1_000;
/// Events in a list by default, and events read at once.
const DEFAULT_EVENTS: u32 = 100;
const PAGE: u32 = 500;
/// How long a request waits for the answer to its command.
const COMMAND_WAIT: Duration = Duration::from_secs(30);

pub(super) async fn create<B: Backend>(
    State(api): State<Api<B>>,
    JsonBody(body): JsonBody<WorkflowBody>,
) -> Result<(StatusCode, Json<JsonValue>), ApiError> {
    let (request, wait_ms) = body.into_request()?;
    let wait = bounded_wait(wait_ms)?;
    request.check_size()?;
    let id = api.backend().run_workflow(request).await?;
    let report = api.wait_for_attention(&id, 0, wait).await?;
    Ok((StatusCode::CREATED, Json(report.value)))
}

pub(super) async fn list<B: Backend>(
    State(api): State<Api<B>>,
    QueryParams(WorkflowListQuery { limit, before }): QueryParams<WorkflowListQuery>,
) -> Result<Json<WorkflowList>, ApiError> {
    let most = bounded_count("limit", limit, DEFAULT_LISTED, MOST_LISTED)?;
    let workflows = api.backend().workflows(most, before.as_deref()).await?;
    Ok(Json(WorkflowList { workflows }))
}

pub(super) async fn get<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<String>,
    QueryParams(WorkflowQuery { wait_ms }): QueryParams<WorkflowQuery>,
) -> Result<Json<JsonValue>, ApiError> {
    let wait = bounded_wait(wait_ms)?;
    let report = api.backend().workflow(&id).await?;
    if report.is_over || wait.is_zero() {
        return Ok(Json(report.value));
    }
    Ok(Json(api.wait_for_attention(&id, report.last_event, wait).await?.value))
}

pub(super) async fn fork<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<String>,
    OptionalJsonBody(asked): OptionalJsonBody<WorkflowForkBody>,
) -> Result<(StatusCode, Json<JsonValue>), ApiError> {
    let fork = api.backend().fork_workflow(&id, asked.into_fork()?).await?;
    let report = api.backend().workflow(&fork).await?;
    Ok((StatusCode::CREATED, Json(report.value)))
}

pub(super) async fn forget<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    api.backend().forget_workflow(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn command<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<String>,
    JsonBody(body): JsonBody<CommandRequest>,
) -> Result<(StatusCode, Json<WorkflowCommandAnswer>), ApiError> {
    let (command_id, command) = body.into_command()?;
    let command = WorkflowCommandRequest {
        id: command_id,
        command,
        by: CommandSender::Person(BY.to_owned()),
    };
    let answer = api.backend().command_workflow(&id, command, COMMAND_WAIT).await?;
    match (answer.accepted, &answer.reason) {
        (Some(true), _) => Ok((StatusCode::OK, Json(answer))),
        (None, _) => Ok((StatusCode::ACCEPTED, Json(answer))),
        (Some(false), reason) => {
            let why =
                reason.clone().unwrap_or_else(|| "the workflow refused the command".to_owned());
            Err(ApiError::new(StatusCode::CONFLICT, "command.refused", why))
        }
    }
}

pub(super) async fn events<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    QueryParams(WorkflowEventsQuery { after, limit, wait_ms }): QueryParams<WorkflowEventsQuery>,
) -> Result<Response, ApiError> {
    let limit = bounded_count("limit", limit, DEFAULT_EVENTS, MOST_LISTED)?;
    let wait = bounded_wait(wait_ms)?;
    let after = sse::last_seen(&headers, after)?;
    if !sse::is_wanted(&headers) {
        let events = api.backend().workflow_events(&id, after, limit, wait).await?;
        return Ok(Json(WorkflowEventList { events }).into_response());
    }
    let slot = api.stream_limit.acquire()?;
    let report = api.backend().workflow(&id).await?;
    if report.is_over && report.last_event <= after {
        // This status tells an SSE client not to reconnect.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(sse::follow(WorkflowEvents { api, id, after, is_over: false }, slot))
}

impl<B: Backend> Api<B> {
    /// The state of a workflow, once it has ended or needs attention after event `after`, or `wait`
    /// is over.
    async fn wait_for_attention(
        &self,
        id: &str,
        mut after: u64,
        wait: Duration,
    ) -> Result<WorkflowReport, ApiError> {
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let events = tokio::select! {
                () = self.stop.cancelled() => break,
                events = self.backend().workflow_events(id, after, PAGE, left) => events?,
            };
            if events.iter().any(|event| event.effect.ends_wait()) {
                break;
            }
            after = events.last().map_or(after, |event| event.seq);
        }
        Ok(self.backend().workflow(id).await?)
    }
}

/// The events of one workflow, until it has ended and all of them were shown.
struct WorkflowEvents<B> {
    api: Api<B>,
    id: String,
    after: u64,
    /// Whether the events shown so far end the workflow. It can resume after that.
    is_over: bool,
}

impl<B: Backend> EventLog for WorkflowEvents<B> {
    type Entry = WorkflowEventInfo;

    async fn next_page(&mut self) -> Option<Vec<WorkflowEventInfo>> {
        let wait = if self.is_over { Duration::ZERO } else { HEARTBEAT };
        let events = tokio::select! {
            () = self.api.stop.cancelled() => return None,
            events = self.api.backend().workflow_events(&self.id, self.after, PAGE, wait) => events,
        };
        events.ok().filter(|events| !(self.is_over && events.is_empty()))
    }

    fn show(&mut self, event: &WorkflowEventInfo) -> Event {
        let WorkflowEventInfo { seq, name, at_ms, data, effect, .. } = event;
        self.after = *seq;
        self.is_over = match effect {
            EventEffect::Ends => true,
            EventEffect::NeedsAttention | EventEffect::Resumes => false,
            EventEffect::Continues => self.is_over,
        };
        let id = &self.id;
        let text = exact_json!({"seq": seq, "workflow_id": id, "name": name, "at_ms": at_ms, "data": data});
        sse::event(*seq, name, &text.to_string())
    }
}
