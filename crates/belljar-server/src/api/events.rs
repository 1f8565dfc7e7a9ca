//! `/v1/events`: what happened to the project's runs, as a list, or as it happens.
//!
//! Events are numbered by the store, so a client that was away says which it has seen
//! (`Last-Event-ID`, or `after`) and misses none.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, stream::unfold};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::OwnedSemaphorePermit, time::sleep};

use super::{
    Api, error::ApiError, input::QueryParams, runs::wants_events, shapes::EventList,
    stream::HEARTBEAT,
};
use crate::{backend::Backend, records::EventInfo, request::MAX_INTEGER};

/// Events read at once.
const PAGE: u32 = 500;
/// Events in a list unless told, and at most.
const DEFAULT_LISTED: u32 = 100;
const MOST_LISTED: u32 = 1_000;
/// How often the store is looked at: other processes write to it, too.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Which events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Those after this number; the `Last-Event-ID` header does the same.
    after: Option<u64>,
    /// Those of this run.
    run_id: Option<String>,
    /// How many, in a list; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

pub(super) async fn events<B: Backend>(
    State(api): State<Api<B>>,
    headers: HeaderMap,
    QueryParams(EventsQuery { after, run_id, limit }): QueryParams<EventsQuery>,
) -> Result<Response, ApiError> {
    let limit = limit.unwrap_or(DEFAULT_LISTED);
    if limit == 0 || limit > MOST_LISTED {
        return Err(ApiError::invalid(format!("limit: between 1 and {MOST_LISTED}")));
    }
    let after = last_seen(&headers)?.or(after).unwrap_or(0);
    if after > MAX_INTEGER {
        return Err(ApiError::invalid("after: too large for a number of an event"));
    }
    if !wants_events(&headers) {
        let events = api.backend().events(after, limit, run_id.as_deref()).await?;
        return Ok(Json(EventList { events }).into_response());
    }
    let place = api.stream_limit.acquire()?;
    let followed = Followed { api, after, run_id, read: VecDeque::new(), _place: place };
    let keep_alive = KeepAlive::new().interval(HEARTBEAT);
    Ok(Sse::new(follow(followed)).keep_alive(keep_alive).into_response())
}

pub(super) fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(given) = headers.get("last-event-id") else { return Ok(None) };
    let number = given.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| ApiError::invalid("Last-Event-ID: not a number of an event"))
}

struct Followed<B> {
    api: Api<B>,
    after: u64,
    run_id: Option<String>,
    read: VecDeque<EventInfo>,
    _place: OwnedSemaphorePermit,
}

fn follow<B: Backend>(followed: Followed<B>) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(followed, |mut followed| async move {
        loop {
            if let Some(event) = followed.read.pop_front() {
                followed.after = event.seq;
                return Some((Ok(shown(&event)), followed));
            }
            let run_id = followed.run_id.as_deref();
            let read = followed.api.backend().events(followed.after, PAGE, run_id).await;
            // A client that finds the stream ended comes again, with what it has seen.
            followed.read = read.ok()?.into();
            if followed.read.is_empty() {
                tokio::select! {
                    () = followed.api.stop.cancelled() => return None,
                    () = sleep(POLL_INTERVAL) => {}
                }
            }
        }
    })
}

fn shown(event: &EventInfo) -> Event {
    let EventInfo { seq, run_id, name, at_ms, data } = event;
    let text = json!({"seq": seq, "run_id": run_id, "name": name, "at_ms": at_ms, "data": data});
    Event::default().id(seq.to_string()).event(name).data(text.to_string())
}
