//! `/v1/workflows`: run them, look at them, follow what happens, command them.
//!
//! Whoever has the token is the operator: what a person is asked to decide is theirs to decide.

pub(super) mod body;

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, stream::unfold};
use serde_json::{Value, json};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use self::body::{
    CommandRequest, WorkflowBody, WorkflowEventList, WorkflowEventsQuery, WorkflowForkBody,
    WorkflowList, WorkflowListQuery, WorkflowQuery,
};
use super::{
    Api,
    error::ApiError,
    events::last_seen,
    input::{JsonBody, OptionalJsonBody, PathParams, QueryParams},
    runs::wants_events,
    stream::HEARTBEAT,
};
use crate::{
    backend::Backend,
    request::MAX_INTEGER,
    workflows::{
        CommandSender, EventEffect, WorkflowCommandAnswer, WorkflowCommandRequest,
        WorkflowEventInfo, WorkflowReport,
    },
};

/// Who commands, as events name them.
const BY: &str = "http";
/// Workflows in a list unless told, and at most.
const DEFAULT_LISTED: u32 = 50;
const MOST_LISTED: u32 = 1_000;
/// Events in a list unless told, and read at once.
const DEFAULT_EVENTS: u32 = 100;
const PAGE: u32 = 500;
/// The longest that is waited for something.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// How long the answer to a command is waited for.
const COMMAND_WAIT: Duration = Duration::from_secs(30);

pub(super) async fn create<B: Backend>(
    State(api): State<Api<B>>,
    JsonBody(body): JsonBody<WorkflowBody>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let (request, wait_ms) = body.into_request()?;
    let wait = bounded(wait_ms)?;
    request.check_size()?;
    let id = api.backend().run_workflow(request).await?;
    let report = api.wait_for_attention(&id, 0, wait).await?;
    Ok((StatusCode::CREATED, Json(report.value)))
}

pub(super) async fn list<B: Backend>(
    State(api): State<Api<B>>,
    QueryParams(WorkflowListQuery { limit, before }): QueryParams<WorkflowListQuery>,
) -> Result<Json<WorkflowList>, ApiError> {
    let most = limit.unwrap_or(DEFAULT_LISTED);
    if most == 0 || most > MOST_LISTED {
        return Err(ApiError::invalid(format!("limit: between 1 and {MOST_LISTED}")));
    }
    let workflows = api.backend().workflows(most, before.as_deref()).await?;
    Ok(Json(WorkflowList { workflows }))
}

pub(super) async fn get<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<String>,
    QueryParams(WorkflowQuery { wait_ms }): QueryParams<WorkflowQuery>,
) -> Result<Json<Value>, ApiError> {
    let wait = bounded(wait_ms)?;
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
) -> Result<(StatusCode, Json<Value>), ApiError> {
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
            let why = reason.clone().unwrap_or_else(|| "it was refused".to_owned());
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
    let limit = limit.unwrap_or(DEFAULT_EVENTS);
    if limit == 0 || limit > MOST_LISTED {
        return Err(ApiError::invalid(format!("limit: between 1 and {MOST_LISTED}")));
    }
    let wait = bounded(wait_ms)?;
    let after = last_seen(&headers)?.or(after).unwrap_or(0);
    if after > MAX_INTEGER {
        return Err(ApiError::invalid("after: too large for a number of an event"));
    }
    if !wants_events(&headers) {
        let events = api.backend().workflow_events(&id, after, limit, wait).await?;
        return Ok(Json(WorkflowEventList { events }).into_response());
    }
    let place = api.stream_limit.acquire()?;
    let report = api.backend().workflow(&id).await?;
    if report.is_over && report.last_event <= after {
        // By this a client knows not to come again.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let followed = Followed { api, id, after, read: VecDeque::new(), over: false, _place: place };
    let keep_alive = KeepAlive::new().interval(HEARTBEAT);
    Ok(Sse::new(follow(followed)).keep_alive(keep_alive).into_response())
}

/// How long to wait, if that is not too long.
fn bounded(wait_ms: Option<u32>) -> Result<Duration, ApiError> {
    let wait = Duration::from_millis(wait_ms.unwrap_or(0).into());
    if wait > MAX_WAIT {
        return Err(ApiError::invalid("wait_ms: a minute at most"));
    }
    Ok(wait)
}

impl<B: Backend> Api<B> {
    /// How a workflow stands, once somebody has to look after event `after`, or time is up.
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
            if events.iter().any(|event| {
                matches!(event.effect, EventEffect::NeedsAttention | EventEffect::Ends)
            }) {
                break;
            }
            after = events.last().map_or(after, |event| event.seq);
        }
        Ok(self.backend().workflow(id).await?)
    }
}

struct Followed<B> {
    api: Api<B>,
    id: String,
    after: u64,
    read: VecDeque<WorkflowEventInfo>,
    /// The workflow has ended, and nothing is known to come after.
    over: bool,
    _place: OwnedSemaphorePermit,
}

fn follow<B: Backend>(followed: Followed<B>) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(followed, |mut followed| async move {
        loop {
            if let Some(event) = followed.read.pop_front() {
                followed.after = event.seq;
                followed.over = match event.effect {
                    EventEffect::Ends => true,
                    EventEffect::NeedsAttention | EventEffect::Resumes => false,
                    EventEffect::Continues => followed.over,
                };
                return Some((Ok(shown(&followed.id, &event)), followed));
            }
            let patience = if followed.over { Duration::ZERO } else { HEARTBEAT };
            let (id, after) = (&followed.id, followed.after);
            let read = tokio::select! {
                () = followed.api.stop.cancelled() => return None,
                read = followed.api.backend().workflow_events(id, after, PAGE, patience) => read,
            };
            // A client that finds the stream ended comes again, with what it has seen.
            followed.read = read.ok()?.into();
            if followed.over && followed.read.is_empty() {
                return None;
            }
        }
    })
}

fn shown(id: &str, event: &WorkflowEventInfo) -> Event {
    let WorkflowEventInfo { seq, name, at_ms, data, .. } = event;
    let text = json!({"seq": seq, "workflow_id": id, "name": name, "at_ms": at_ms, "data": data});
    Event::default().id(seq.to_string()).event(name).data(text.to_string())
}
