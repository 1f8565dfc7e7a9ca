//! How a run starts, whichever way it was requested.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use belljar_contract::{ExecuteRequest, RunId, RunResult};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    backend::{Backend, RunReport, RunReporter},
    feed::Feed,
    gateway::{Gateway, GatewayState},
    live::{LiveRun, ProgressUpdates, RunDetails, RunOutcome, aborted_result},
    records::RunInfo,
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
            work: request.language().into(),
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
            if let (Some(traces), Some(result)) = (&shared.traces, report.result()) {
                traces.send(span(result, context, began.elapsed()).with_parent(asked_by));
            }
            shared.record_run(known, report, began.elapsed())
        };
        self.shared.runs.start_listed(details, feed, updates, work, cut_off)
    }

    /// Resumes a run that no host has. Clients can ask for it by its id at once.
    pub(crate) fn start_resumed(&self, run: RunInfo) -> LiveRun {
        let RunInfo { id, work, durable, started_ms, .. } = run;
        let details = RunDetails { work, durable, started_ms };
        let (shared, known) = (self.shared.clone(), details.clone());
        let cut_off = self.shared.on_cut_off(details.clone());
        let work = |mut reporter: RunReporter| {
            let context = TraceContext::child_of(None);
            reporter.trace(shared.traces.clone().map(|traces| (traces, context)));
            reporter.started(&id);
            async move {
                let began = Instant::now();
                if let Some(report) = shared.backend.resume(&id, reporter).await {
                    if let (Some(traces), Some(result)) = (&shared.traces, report.result()) {
                        traces.send(span(result, context, began.elapsed()));
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
        self.metrics.run_ended(report.status(), report.result(), took);
        let info = details.ended(report.id().clone(), report.status());
        let finished = outcome(report);
        if let RunOutcome::Run(_, json) = &finished {
            self.recent.save(info, json.clone());
        }
        finished
    }

    /// Does the same for a run that was aborted before it could report.
    fn on_cut_off(self: &Arc<Self>, details: RunDetails) -> impl FnOnce(&RunId) + Send + 'static {
        let (shared, began) = (self.clone(), Instant::now());
        move |id: &RunId| {
            shared.record_run(
                details,
                RunReport::ended(aborted_result(id.clone())),
                began.elapsed(),
            );
        }
    }
}

fn outcome(report: RunReport) -> RunOutcome {
    let json = Bytes::from(report.to_json());
    RunOutcome::Run(Arc::new(report), json)
}

/// A run as a span: how it went and what it used, nothing of its code or data.
pub(crate) fn span(result: &RunResult, context: TraceContext, took: Duration) -> Span {
    let span = Span::ended("run".to_owned(), SpanKind::Internal, context, took);
    let metrics = &result.metrics;
    span.ok(result.success)
        .with("belljar.run.id", json!(result.id))
        .with("belljar.run.status", json!(result.status))
        .with("belljar.session.id", json!(result.session_id))
        .with("belljar.engine", json!(result.isolation.engine))
        .with("belljar.startup_ms", json!(metrics.startup_ms))
        .with("belljar.execution_ms", json!(metrics.execution_ms))
        .with("belljar.cpu_ms", json!(metrics.cpu_ms))
        .with("belljar.memory_mb", json!(metrics.memory_mb))
        .with("belljar.tool_calls", json!(metrics.tool_calls))
        .with("error.type", json!(result.error.as_ref().map(|error| error.kind)))
}

/// The wall clock, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
