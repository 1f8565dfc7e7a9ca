//! Server-sent events: when a client wants them, how one is written, and how a log is followed.
//!
//! Every event has a number. A client that reconnects names the last number it has seen
//! (`Last-Event-ID`, or `after`), so it misses nothing.

use std::{collections::VecDeque, convert::Infallible};

use axum::{
    http::{HeaderMap, header},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use belljar_contract::MAX_JSON_INTEGER;
use futures_util::{Stream, StreamExt as _, stream::unfold};
use tokio::sync::OwnedSemaphorePermit;

use super::error::ApiError;
use crate::feed::HEARTBEAT;

/// Whether the client asked for a stream (`Accept: text/event-stream`) instead of one answer.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted.flat_map(|value| value.split(','));
    kinds.any(|kind| {
        let essence = kind.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    })
}

/// The number of the last event the client has seen. The header wins over the query: a browser that
/// reconnects repeats the query of its first request.
pub(super) fn last_seen(headers: &HeaderMap, after: Option<u64>) -> Result<u64, ApiError> {
    let number = match headers.get("last-event-id") {
        Some(given) => {
            let number = given.to_str().ok().and_then(|text| text.trim().parse().ok());
            let wrong = || ApiError::invalid("Last-Event-ID: not an event number");
            number.ok_or_else(wrong)?
        }
        None => after.unwrap_or(0),
    };
    if number > MAX_JSON_INTEGER {
        return Err(ApiError::invalid("after: too large for an event number"));
    }
    Ok(number)
}

/// One event. `data` is JSON, which has no line break that SSE would take for its end.
pub(super) fn event(number: u64, name: &str, data: &str) -> Event {
    Event::default().id(number.to_string()).event(name).data(data)
}

/// A stream of events as an answer. A comment every [`HEARTBEAT`] shows that the server is alive.
pub(super) fn response(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = Sse::new(events.map(Ok::<_, Infallible>));
    events.keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response()
}

/// Stored events that can be read page by page, from some number on.
pub(super) trait EventLog: Send + 'static {
    type Entry: Send;

    /// The entries after the last one that was shown. An empty page means that nothing happened for
    /// a while; `None` ends the stream, and the client may reconnect.
    fn next_page(&mut self) -> impl Future<Output = Option<Vec<Self::Entry>>> + Send;

    /// Shows an entry, and remembers that it was shown.
    fn show(&mut self, entry: &Self::Entry) -> Event;
}

/// Streams a log until it ends. The slot is free again when the client is gone.
pub(super) fn follow<L: EventLog>(log: L, slot: OwnedSemaphorePermit) -> Response {
    let state = (log, VecDeque::new(), slot);
    response(unfold(state, |(mut log, mut read, slot)| async move {
        loop {
            if let Some(entry) = read.pop_front() {
                let event = log.show(&entry);
                return Some((event, (log, read, slot)));
            }
            read = log.next_page().await?.into();
        }
    }))
}
