//! How a run starts, whichever way it was requested.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    backend::{Backend, RunReport, RunReporter},
    feed::Feed,
    gateway::{Gateway, GatewayState},
    live::{LiveRun, ProgressUpdates, RunDetails, RunOutcome, aborted_result},
    records::RunInfo,
    request::{ExecuteRequest, Language},
    traces::{Span, SpanKind, TraceContext},
};

impl<B: Backend> Gateway<B> {
    /// Starts a run, in its session if it names one. Its slot is free again when it has ended.
    pub(crate) fn start_run(
        &self,
        request: ExecuteRequest,
        feed: Option<Feed>,
        updates: ProgressUpdates,
        slot: Option<OwnedSemaphorePermit>,
    ) -> LiveRun {
        let details = RunDetails {
            language: request.language.unwrap_or(Language::TypeScript).to_string(),
            durable: request.durable == Some(true),
            started_ms: now_ms(),
        };
        let (shared, known) = (self.shared.clone(), details.clone());
        let asked_by = TraceContext::current();
        let context = TraceContext::child_of(asked_by);
        let cut_off = self.shared.on_cut_off(details.clone());
        let work = |mut reporter: RunReporter| async move {
            let (began, _slot) = (Instant::now(), slot);
            reporter.trace(shared.traces.clone().map(|traces| (traces, context)));
            let report = match request.session_id.clone() {
                Some(id) => match shared.backend.run_in_session(&id, request, reporter).await {
                    Ok(report) => report,
                    Err(error) => return RunOutcome::Refused(error),
                },
                None => shared.backend.execute(request, reporter).await,
            };
            if let Some(traces) = &shared.traces {
                traces.send(span(&report.value, context, began.elapsed()).with_parent(asked_by));
            }
            shared.record_run(known, report, began.elapsed())
        };
        self.shared.runs.start_listed(details, feed, updates, work, cut_off)
    }

    /// Resumes a run that no host has. Clients can ask for it by its id at once.
    pub(crate) fn start_resumed(&self, run: RunInfo) -> LiveRun {
        let RunInfo { id, language, durable, started_ms, .. } = run;
        let details = RunDetails { language, durable, started_ms };
        let (shared, known) = (self.shared.clone(), details.clone());
        let cut_off = self.shared.on_cut_off(details.clone());
        let work = |mut reporter: RunReporter| {
            let context = TraceContext::child_of(None);
            reporter.trace(shared.traces.clone().map(|traces| (traces, context)));
            reporter.started(&id);
            async move {
                let began = Instant::now();
                if let Some(report) = shared.backend.resume(&id, reporter).await {
                    if let Some(traces) = &shared.traces {
                        traces.send(span(&report.value, context, began.elapsed()));
                    }
                    return shared.record_run(known, report, began.elapsed());
                }
                // Another host has it: followers get its stored state.
                match shared.backend.get_run(&id, Duration::ZERO).await {
                    Some(report) => outcome(report),
                    None => RunOutcome::Lost,
                }
            }
        };
        self.shared.runs.start_listed(details, None, ProgressUpdates::Off, work, cut_off)
    }
}

impl<B: Backend> GatewayState<B> {
    /// Counts a run that has ended or stopped, and keeps its result for clients that ask again.
    fn record_run(&self, details: RunDetails, report: RunReport, took: Duration) -> RunOutcome {
        self.metrics.run_ended(&report.value, took);
        let text = |name: &str| {
            let text = report.value.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let info = details.ended(text("id"), text("status"));
        let finished = outcome(report);
        if let RunOutcome::Run(_, json) = &finished {
            self.recent.save(info, json.clone());
        }
        finished
    }

    /// Does the same for a run that was aborted before it could report.
    fn on_cut_off(self: &Arc<Self>, details: RunDetails) -> impl FnOnce(&str) + Send + 'static {
        let (shared, began) = (self.clone(), Instant::now());
        move |id: &str| {
            let mut result = aborted_result();
            result.insert("id".to_owned(), id.into());
            shared.record_run(details, RunReport::ended(Value::Object(result)), began.elapsed());
        }
    }
}

fn outcome(report: RunReport) -> RunOutcome {
    let json = Bytes::from(report.to_json());
    RunOutcome::Run(Arc::new(report), json)
}

/// A run as a span: how it went and what it used, nothing of its code or data.
pub(crate) fn span(result: &Value, context: TraceContext, took: Duration) -> Span {
    let known = |pointer: &str| result.pointer(pointer).cloned().unwrap_or_default();
    Span::ended("run".to_owned(), SpanKind::Internal, context, took)
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

/// The wall clock, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
