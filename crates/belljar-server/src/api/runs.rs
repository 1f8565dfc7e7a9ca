//! `/v1/runs`: start, inspect, end and list runs.

use std::{collections::HashMap, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use belljar_contract::{ExecuteRequest, RunId, RunStatus, SessionId};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{
    Api,
    error::ApiError,
    input::{JsonBody, PathParams, QueryParams, bounded_count, bounded_wait},
    shapes::RunList,
    sse, stream,
};
use crate::{
    backend::{ApprovalRequest, Backend, EndRun, RunReport},
    feed::Feed,
    live::{LiveRun, LiveRunState, ProgressUpdates, RunOutcome, aborted_result},
    recent::ResultFilter,
};

/// Runs in a list by default, and at most.
const DEFAULT_LISTED: u32 = 50;
const MOST_LISTED: u32 = 1_000;

/// How many runs to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunListQuery {
    /// At most this many; 50 if absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// How long to wait before answering.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunQuery {
    /// Wait this long for it to end, at most a minute; do not wait if absent.
    #[schemars(range(max = 60_000))]
    wait_ms: Option<u32>,
}

pub(super) async fn create<B: Backend>(
    State(api): State<Api<B>>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ExecuteRequest>,
) -> Result<Response, ApiError> {
    api.run(body, &headers).await
}

pub(super) async fn create_in_session<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<SessionId>,
    headers: HeaderMap,
    JsonBody(mut body): JsonBody<ExecuteRequest>,
) -> Result<Response, ApiError> {
    if body.session_id.as_ref().is_some_and(|named| *named != id) {
        let message = "session_id: differs from the session in the path";
        return Err(ApiError::new(StatusCode::CONFLICT, "request.session", message));
    }
    body.session_id = Some(id);
    api.run(body, &headers).await
}

pub(super) async fn list<B: Backend>(
    State(api): State<Api<B>>,
    QueryParams(RunListQuery { limit }): QueryParams<RunListQuery>,
) -> Result<Json<RunList>, ApiError> {
    let most = bounded_count("limit", limit, DEFAULT_LISTED, MOST_LISTED)?;
    let shared = &api.gateway.shared;
    // The first entry of an id wins. This process knows more of its live runs than the store; the
    // store knows whether a run that ended here was resumed elsewhere.
    let stored = api.backend().runs(most, None).await?;
    let mut runs: HashMap<RunId, _> = HashMap::new();
    for run in shared.runs.under_way().into_iter().chain(stored).chain(shared.recent.list()) {
        runs.entry(run.id.clone()).or_insert(run);
    }
    let mut runs: Vec<_> = runs.into_values().collect();
    runs.sort_by(|a, b| (b.started_ms, &b.id).cmp(&(a.started_ms, &a.id)));
    runs.truncate(most as usize);
    Ok(Json(RunList { runs }))
}

pub(super) async fn get<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<RunId>,
    QueryParams(RunQuery { wait_ms }): QueryParams<RunQuery>,
) -> Result<Response, ApiError> {
    api.run_state(&id, bounded_wait(wait_ms)?).await
}

/// Ends a run and answers with its state: its result, if it had ended before.
pub(super) async fn abort<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<RunId>,
) -> Result<Response, ApiError> {
    if let Some(live) = api.gateway.shared.runs.find(&id) {
        let ended = live.end_now().await;
        if !ended.can_resume() {
            return finished(Some(&id), ended);
        }
    }
    match api.backend().end_run(&id).await {
        EndRun::Over => api.run_state(&id, Duration::ZERO).await,
        EndRun::Elsewhere => {
            let message =
                format!("another process or a workflow owns run {id}; this server cannot end it");
            Err(ApiError::new(StatusCode::CONFLICT, "run.elsewhere", message))
        }
    }
}

impl<B: Backend> Api<B> {
    /// Runs code; the answer is its result, or a stream of its events.
    async fn run(
        &self,
        mut request: ExecuteRequest,
        headers: &HeaderMap,
    ) -> Result<Response, ApiError> {
        // A program that asks gets the whole value unless it says otherwise.
        request.max_output_tokens.get_or_insert(u32::MAX);
        let slot = self.run_limit.acquire()?;
        let is_durable = request.durable == Some(true);
        if sse::is_wanted(headers) {
            let (feed, following) = Feed::new();
            let live =
                self.gateway.start_run(request, Some(feed), ProgressUpdates::Off, Some(slot));
            return stream::answer(AttachedRun::new(live, is_durable), following).await;
        }
        let live = self.gateway.start_run(request, None, ProgressUpdates::Off, Some(slot));
        let attached = AttachedRun::new(live, is_durable);
        let mut state = attached.live.watch();
        let until = |state: &LiveRunState| {
            state.finished.is_some() || (state.run_id.is_some() && !state.waiting.is_empty())
        };
        let (id, waiting) = match state.wait_for(until).await {
            Ok(state) => (state.run_id.clone(), state.waiting.clone()),
            Err(_) => (None, Vec::new()),
        };
        match id {
            Some(id) if !waiting.is_empty() => {
                // A person has to decide, and may take longer than any client waits.
                attached.detach();
                let body = Json(under_way(&id, waiting));
                Ok((StatusCode::ACCEPTED, body).into_response())
            }
            id => {
                let ended = attached.live.finished().await;
                let result =
                    if let RunOutcome::Run(report, _) = &ended { report.result() } else { None };
                match result.and_then(ApiError::refused_run) {
                    Some(refused) => Err(refused),
                    None => finished(id.as_ref(), ended),
                }
            }
        }
    }

    /// The state of a run, once it has ended or `wait` has passed.
    async fn run_state(&self, id: &RunId, wait: Duration) -> Result<Response, ApiError> {
        let shared = &self.gateway.shared;
        if let Some(live) = shared.runs.find(id) {
            match timeout_at(Instant::now() + wait, live.finished()).await {
                // The store knows what the run waits for, and whether another host has resumed it.
                Ok(ended) if ended.can_resume() => {}
                Ok(ended) => return finished(Some(id), ended),
                Err(_) => {
                    let waiting = live.watch().borrow().waiting.clone();
                    return Ok(Json(under_way(id, waiting)).into_response());
                }
            }
        }
        if let Some(result) = shared.recent.result(id, ResultFilter::Final) {
            return Ok(json_text(result));
        }
        // A run that stopped early may have been resumed since.
        let Some(report) = self.backend().get_run(id, wait).await else {
            let result = shared.recent.result(id, ResultFilter::Any);
            return result.map(json_text).ok_or_else(|| ApiError::unknown_run(id));
        };
        Ok(json_text(Bytes::from(report.to_json())))
    }
}

/// A run that ends when its client disconnects, unless it is durable.
pub(super) struct AttachedRun {
    pub(super) live: LiveRun,
    ends: bool,
}

impl AttachedRun {
    fn new(live: LiveRun, is_durable: bool) -> Self {
        Self { live, ends: !is_durable }
    }

    fn detach(mut self) {
        self.ends = false;
    }
}

impl Drop for AttachedRun {
    fn drop(&mut self) {
        if self.ends {
            self.live.give_up();
        }
    }
}

/// The answer for a run that has ended.
pub(super) fn finished(id: Option<&RunId>, finished: RunOutcome) -> Result<Response, ApiError> {
    match finished {
        RunOutcome::Run(_, json) => Ok(json_text(json)),
        RunOutcome::Tool(value) => {
            let failed = value.get("isError").is_some_and(|flag| flag == true);
            let status = if failed { RunStatus::Failed } else { RunStatus::Completed };
            let run = json!({
                "id": id, "status": status, "success": !failed, "result": *value,
            });
            Ok(Json(run).into_response())
        }
        RunOutcome::Refused(error) => Err(error.into()),
        RunOutcome::Aborted => {
            let report = RunReport::ended(aborted_result(id.cloned().unwrap_or_default()));
            Ok(json_text(Bytes::from(report.to_json())))
        }
        RunOutcome::Lost => Err(ApiError::run_lost()),
    }
}

fn under_way(id: &RunId, waiting: Vec<ApprovalRequest>) -> RunReport {
    if waiting.is_empty() {
        return RunReport::unfinished(id, RunStatus::Running, None);
    }
    let next = "decide with POST /v1/approvals/{id}, then GET /v1/runs/{id}?wait_ms=…";
    let report = RunReport::unfinished(id, RunStatus::ApprovalRequired, Some(next.to_owned()));
    RunReport { waiting, ..report }
}

fn json_text(text: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
