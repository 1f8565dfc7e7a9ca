//! A run as it happens, as server-sent events: `started`, `stdout`, `stderr`, `log`, `tool_call`,
//! `approval`, and at the end `result`, or `error` if it has none. Each has a number.

use std::{convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse as _, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, stream::unfold};
use serde_json::{Value, json};

use super::{
    error::ApiError,
    runs::{self, AttachedRun},
};
use crate::{
    backend::Stream as Printed,
    feed::{FeedReceiver, RunEvent},
    live::RunOutcome,
};

/// A client that follows hears at least this often, so that it knows the server is there.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);

/// Streams a run. What refuses it before it has begun is an answer of its own.
pub(super) async fn answer(
    attached: AttachedRun,
    mut feed: FeedReceiver,
) -> Result<Response, ApiError> {
    let first = tokio::select! {
        biased;
        told = feed.next() => told,
        _ = attached.live.finished() => feed.try_next(),
    };
    let Some(first) = first else {
        return match attached.live.finished().await {
            // It ended without a word.
            finished @ (RunOutcome::Run(..) | RunOutcome::Tool(_) | RunOutcome::Aborted) => {
                let events = futures_util::stream::iter([Ok::<_, Infallible>(last(1, &finished))]);
                Ok(Sse::new(events).into_response())
            }
            finished @ (RunOutcome::Refused(_) | RunOutcome::Lost) => {
                runs::finished(None, finished)
            }
        };
    };
    let events = events(Followed { attached, feed, next: Some(first), number: 0, over: false });
    let keep_alive = KeepAlive::new().interval(HEARTBEAT);
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

struct Followed {
    attached: AttachedRun,
    feed: FeedReceiver,
    next: Option<RunEvent>,
    number: u64,
    over: bool,
}

fn events(followed: Followed) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(followed, |mut followed| async move {
        if followed.over {
            return None;
        }
        followed.number += 1;
        let number = followed.number;
        let told = match followed.next.take() {
            Some(told) => Some(told),
            None => tokio::select! {
                biased;
                told = followed.feed.next() => told,
                _ = followed.attached.live.finished() => followed.feed.try_next(),
            },
        };
        let event = match told {
            Some(told) => event(number, &told),
            None => {
                followed.over = true;
                last(number, &followed.attached.live.finished().await)
            }
        };
        Some((Ok(event), followed))
    })
}

fn event(number: u64, told: &RunEvent) -> Event {
    let (name, data) = match told {
        RunEvent::Started { run_id } => ("started", json!({"id": run_id})),
        RunEvent::Printed { stream, text } => {
            let name = match stream {
                Printed::Stdout => "stdout",
                Printed::Stderr => "stderr",
                Printed::Log => "log",
            };
            (name, json!({"text": text}))
        }
        RunEvent::LeftOut => {
            ("log", json!({"text": "[output was left out here: it was not read in time]"}))
        }
        RunEvent::CallBegan { tool } => ("tool_call", json!({"tool": tool, "state": "began"})),
        RunEvent::CallEnded { tool, is_ok, duration } => {
            let took = duration.as_secs_f64() * 1000.0;
            let data = json!({"tool": tool, "state": "ended", "ok": is_ok, "duration_ms": took});
            ("tool_call", data)
        }
        RunEvent::ApprovalRequested(request) => {
            let mut data = json!(request);
            if let Some(fields) = data.as_object_mut() {
                fields.insert("state".to_owned(), json!("waiting"));
            }
            ("approval", data)
        }
        RunEvent::ApprovalSettled { approval_id } => {
            ("approval", json!({"id": approval_id, "state": "settled"}))
        }
    };
    numbered(number, name, &data.to_string())
}

fn last(number: u64, finished: &RunOutcome) -> Event {
    let aborted = || {
        let error = json!({
            "type": "SandboxError", "code": "run.aborted", "message": "the run was aborted",
        });
        json!({"status": "aborted", "success": false, "result": null, "error": error})
    };
    let failed = |error: ApiError| serde_json::to_value(error.body()).unwrap_or(Value::Null);
    match finished {
        RunOutcome::Run(_, json) => numbered(number, "result", &String::from_utf8_lossy(json)),
        RunOutcome::Tool(value) => numbered(number, "result", &value.to_string()),
        RunOutcome::Aborted => numbered(number, "result", &aborted().to_string()),
        RunOutcome::Refused(error) => {
            numbered(number, "error", &failed(error.clone().into()).to_string())
        }
        RunOutcome::Lost => {
            let error = ApiError::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                "run.lost",
                "the run ended without a report; the server's log says why",
            );
            numbered(number, "error", &failed(error).to_string())
        }
    }
}

/// JSON text has no line breaks outside of its strings, and none unescaped inside.
fn numbered(number: u64, name: &str, data: &str) -> Event {
    Event::default().id(number.to_string()).event(name).data(data)
}
