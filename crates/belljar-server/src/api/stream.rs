//! A run as it happens, as server-sent events: `started`, `stdout`, `stderr`, `log`, `tool_call`,
//! `approval`, and at the end `result`, or `error` if it has none.

use axum::response::{Response, sse::Event};
use belljar_contract::{RunId, Stream as Printed};
use futures_util::{
    Stream,
    stream::{iter, unfold},
};
use serde_json::{Value, json};

use super::{
    error::ApiError,
    runs::{self, AttachedRun},
    sse,
};
use crate::{
    feed::{FeedReceiver, RunEvent},
    live::{RunOutcome, aborted_result},
};

/// Streams a run. A run that is refused before it begins is answered with the error, not with a
/// stream.
pub(super) async fn answer(run: AttachedRun, feed: FeedReceiver) -> Result<Response, ApiError> {
    let mut stream = RunStream { run, feed, next: None, number: 0, is_over: false };
    stream.next = stream.receive().await;
    if stream.next.is_some() {
        return Ok(sse::response(stream.events()));
    }
    match stream.run.live.finished().await {
        // It ended before it reported anything.
        outcome @ (RunOutcome::Run(..) | RunOutcome::Tool(_) | RunOutcome::Aborted) => {
            Ok(sse::response(iter([last(1, &outcome)])))
        }
        outcome @ (RunOutcome::Refused(_) | RunOutcome::Lost) => runs::finished(None, outcome),
    }
}

struct RunStream {
    run: AttachedRun,
    feed: FeedReceiver,
    /// An event that was received and not yet sent.
    next: Option<RunEvent>,
    number: u64,
    is_over: bool,
}

impl RunStream {
    /// The next event of the run; `None` when it has ended and all its events were received.
    async fn receive(&mut self) -> Option<RunEvent> {
        tokio::select! {
            biased;
            event = self.feed.next() => event,
            _ = self.run.live.finished() => self.feed.try_next(),
        }
    }

    fn events(self) -> impl Stream<Item = Event> {
        unfold(self, |mut stream| async move {
            if stream.is_over {
                return None;
            }
            stream.number += 1;
            let next = match stream.next.take() {
                Some(event) => Some(event),
                None => stream.receive().await,
            };
            let event = match next {
                Some(next) => event(stream.number, &next),
                None => {
                    stream.is_over = true;
                    last(stream.number, &stream.run.live.finished().await)
                }
            };
            Some((event, stream))
        })
    }
}

fn event(number: u64, event: &RunEvent) -> Event {
    let (name, data) = match event {
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
            ("log", json!({"text": "[output omitted: the client did not read it in time]"}))
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
    sse::event(number, name, &data.to_string())
}

fn last(number: u64, outcome: &RunOutcome) -> Event {
    let result = |text: &str| sse::event(number, "result", text);
    let error = |error: ApiError| {
        let body = serde_json::to_value(error.body()).unwrap_or(Value::Null);
        sse::event(number, "error", &body.to_string())
    };
    match outcome {
        RunOutcome::Run(_, json) => result(&String::from_utf8_lossy(json)),
        RunOutcome::Tool(value) => result(&value.to_string()),
        RunOutcome::Aborted => result(&json!(aborted_result(RunId::default())).to_string()),
        RunOutcome::Refused(refused) => error(refused.clone().into()),
        RunOutcome::Lost => error(ApiError::run_lost()),
    }
}
