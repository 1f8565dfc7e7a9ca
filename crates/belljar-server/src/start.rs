//! How a run begins, whichever way it was asked for.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    backend::Backend,
    feed::Feed,
    gateway::Gateway,
    live::{About, Finished, Live},
    records::RunInfo,
    request::{ExecuteRequest, Language},
    traces::{Context, Kind, Span},
};

impl<B: Backend> Gateway<B> {
    /// Starts a run, in its session if it names one. Its place is free again when it has ended.
    pub(crate) fn start_run(
        &self,
        request: ExecuteRequest,
        feed: Option<Feed>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Live {
        let about = About {
            language: request.language.unwrap_or(Language::TypeScript).to_string(),
            durable: request.durable == Some(true),
            started_ms: now_ms(),
        };
        let (shared, known) = (self.shared.clone(), about.clone());
        let asked_by = Context::of_request();
        let context = Context::below(asked_by);
        self.shared.runs.start_known(about, feed, |mut observer| async move {
            let (began, _place) = (Instant::now(), place);
            observer.trace(shared.traces.clone().map(|traces| (traces, context)));
            let report = match request.session_id.clone() {
                Some(id) => match shared.backend.run_in_session(&id, request, observer).await {
                    Ok(report) => report,
                    Err(error) => return Finished::Refused(error),
                },
                None => shared.backend.execute(request, observer).await,
            };
            shared.metrics.ran(&report.value, began.elapsed());
            if let Some(traces) = &shared.traces {
                traces.send(span(&report.value, context, began.elapsed()).part_of(asked_by));
            }
            let json = Bytes::from(serde_json::to_vec(&report.value).unwrap_or_default());
            let text = |name: &str| {
                let text = report.value.get(name).and_then(Value::as_str);
                text.unwrap_or_default().to_owned()
            };
            let info = RunInfo {
                id: text("id"),
                status: text("status"),
                language: known.language,
                durable: known.durable,
                started_ms: known.started_ms,
                finished_ms: Some(now_ms()),
            };
            shared.recent.keep(info, json.clone());
            Finished::Run(Arc::new(report), json)
        })
    }
}

/// A run as a span: how it went and what it used, nothing of what it was about.
fn span(result: &Value, context: Context, took: Duration) -> Span {
    let known = |pointer: &str| result.pointer(pointer).cloned().unwrap_or_default();
    Span::ended("run".to_owned(), Kind::Internal, context, took)
        .ok(known("/success") == true)
        .with("belljar.run.id", known("/id"))
        .with("belljar.run.status", known("/status"))
        .with("belljar.session.id", known("/session_id"))
        .with("belljar.engine", known("/isolation/engine"))
        .with("belljar.startup_ms", known("/metrics/startupTimeMs"))
        .with("belljar.execution_ms", known("/metrics/executionTimeMs"))
        .with("belljar.cpu_ms", known("/metrics/cpuTimeMs"))
        .with("belljar.memory_mb", known("/metrics/memoryUsedMB"))
        .with("belljar.tool_calls", known("/metrics/toolCalls"))
        .with("error.type", known("/error/type"))
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
