//! `/v1/events`: what happened to the project's runs, as a list, or as it happens.
//!
//! The store numbers events, so a client that was away can say which it has seen (see [`sse`]).

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse as _, Response, sse::Event},
};
use belljar_contract::RunId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::{
    Api,
    error::ApiError,
    input::{QueryParams, bounded_count},
    shapes::EventList,
    sse::{self, EventLog},
};
use crate::{backend::Backend, records::EventInfo};

/// Events read from the store at once.
const PAGE: u32 = 500;
/// Events in a list by default, and at most.
const DEFAULT_LISTED: u32 = 100;
const MOST_LISTED: u32 = 1_000;
/// How often the store is read: other processes write to it, too.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Which events to list or follow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Only events after this number; the `Last-Event-ID` header does the same.
    after: Option<u64>,
    /// Only events of this run.
    run_id: Option<RunId>,
    /// At most this many events in a list; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

pub(super) async fn events<B: Backend>(
    State(api): State<Api<B>>,
    headers: HeaderMap,
    QueryParams(EventsQuery { after, run_id, limit }): QueryParams<EventsQuery>,
) -> Result<Response, ApiError> {
    let limit = bounded_count("limit", limit, DEFAULT_LISTED, MOST_LISTED)?;
    let after = sse::last_seen(&headers, after)?;
    if !sse::is_wanted(&headers) {
        let events = api.backend().events(after, limit, run_id.as_ref()).await?;
        return Ok(Json(EventList { events }).into_response());
    }
    let slot = api.stream_limit.acquire()?;
    Ok(sse::follow(ProjectEvents { api, after, run_id }, slot))
}

/// All events of the project, or those of one run, until the client or the server ends.
struct ProjectEvents<B> {
    api: Api<B>,
    after: u64,
    run_id: Option<RunId>,
}

impl<B: Backend> EventLog for ProjectEvents<B> {
    type Entry = EventInfo;

    async fn next_page(&mut self) -> Option<Vec<EventInfo>> {
        let events = self.api.backend().events(self.after, PAGE, self.run_id.as_ref());
        let events = events.await.ok()?;
        if events.is_empty() {
            tokio::select! {
                () = self.api.stop.cancelled() => return None,
                () = sleep(POLL_INTERVAL) => {}
            }
        }
        Some(events)
    }

    fn show(&mut self, event: &EventInfo) -> Event {
        let EventInfo { seq, run_id, name, at_ms, data } = event;
        self.after = *seq;
        let text =
            json!({"seq": seq, "run_id": run_id, "name": name, "at_ms": at_ms, "data": data});
        sse::event(*seq, name, &text.to_string())
    }
}
