//! Builds the result of a run: the same for a run in a cell of its own and for a run in a session.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use belljar_contract::{
    EngineName, ErrorCode, Isolation, Metrics, RunError, RunId, RunResult, RunStatus, SessionId,
    Tier,
};
use serde_json::value::RawValue;

use crate::{
    files::CollectedFiles,
    guest_state::GuestState,
    ids::run_id,
    pool::Pool,
    run::{CellRunOutcome, ReturnedValue},
    scan::WithholdReport,
    transcript::Transcript,
};

/// A result under construction. A run that is refused is finished right away; the others fill in the parts
/// in order.
#[derive(Debug)]
pub(crate) struct ResultBuilder {
    id: RunId,
    metrics: Metrics,
    isolation: Isolation,
    /// Receives what the run prints.
    pub(crate) transcript: Transcript,
    /// The files the run left in `/work`.
    pub(crate) files: CollectedFiles,
    /// The names that were withheld in granted trees.
    pub(crate) withheld: WithholdReport,
    stop_status: Option<RunStatus>,
    /// The session that the run is in, if any.
    pub(crate) session_id: Option<SessionId>,
    state: GuestState,
}

impl ResultBuilder {
    /// The result of a run that has not started. Without an id it gets a new one.
    pub(crate) fn new(engine: EngineName, id: Option<RunId>, transcript: Transcript) -> Self {
        Self {
            id: id.unwrap_or_else(run_id),
            metrics: Metrics::default(),
            isolation: Isolation { engine, ..Isolation::default() },
            transcript,
            files: CollectedFiles::default(),
            withheld: WithholdReport::default(),
            stop_status: None,
            session_id: None,
            state: GuestState::default(),
        }
    }

    /// The id of the run.
    pub(crate) fn id(&self) -> &RunId {
        &self.id
    }

    /// Notes that a run, admitted then, has its cell from this pool.
    pub(crate) fn starts(&mut self, admitted: Instant, pool: &Pool) {
        self.metrics.startup_ms = milliseconds_since(admitted);
        let plan = pool.plan();
        self.isolation.tier = if plan.is_full() { Tier::Full } else { Tier::Weakened };
        self.isolation.layers = plan.layers().into_iter().map(Cow::Borrowed).collect();
        self.isolation.memory = pool.memory_bound();
    }

    /// Notes what the run used and reported, now that its code, started then, has ended.
    pub(crate) fn ended(&mut self, started: Instant, run: &CellRunOutcome) {
        self.stop_status = run.stop_status;
        self.metrics.tool_calls = run.reports.calls;
        self.state = run.reports.state.clone();
        self.metrics.execution_ms = milliseconds_since(started);
        self.metrics.cpu_ms = milliseconds(run.usage.cpu);
        self.metrics.memory_mb = megabytes(run.usage.peak_memory_bytes);
    }

    /// The result. An error of files that could not be collected or withheld turns a success into a failure.
    pub(crate) fn finish(mut self, outcome: Result<ReturnedValue, RunError>) -> RunResult {
        let outcome = match self.files.error.take() {
            Some(error) if outcome.is_ok() => Err(error),
            _ => outcome,
        };
        let outcome = match self.withheld.error(outcome.as_ref().err()) {
            Some(error) => Err(error),
            None => outcome,
        };
        for note in self.files.notes.into_iter().chain(self.withheld.into_lines()) {
            // The run has ended: a note that does not fit is left out like any other line.
            let _ = self.transcript.log(note.as_bytes());
        }
        let mut texts = self.transcript.finish();
        // The state of a run that failed is incomplete, so it is not passed on.
        let state = if outcome.is_ok() { self.state } else { GuestState::default() };
        texts.truncated.state = state.is_cut;
        let (value, lossy, error) = match outcome {
            Ok(ReturnedValue { value, lossy, cut }) => {
                texts.truncated.result = cut;
                (value, lossy, None)
            }
            Err(error) => (RawValue::NULL.to_owned(), false, Some(error)),
        };
        let status = match &error {
            None => RunStatus::Completed,
            Some(_) if self.stop_status.is_some() => self.stop_status.unwrap_or(RunStatus::Failed),
            Some(error) if error.code == ErrorCode::RunAborted => RunStatus::Aborted,
            Some(_) => RunStatus::Failed,
        };
        let exit_code = error.as_ref().map_or(0, |error| error.exit_code.unwrap_or(1));
        RunResult {
            id: self.id,
            status,
            success: error.is_none(),
            result: value,
            stdout: texts.stdout,
            stderr: texts.stderr,
            logs: texts.logs,
            exit_code,
            error,
            metrics: self.metrics,
            isolation: self.isolation,
            truncated: texts.truncated,
            artifacts: self.files.artifacts,
            unreturned: self.files.unreturned,
            changes: self.files.changes,
            session_id: self.session_id,
            state: state.into_json(),
            lossy,
            ..RunResult::default()
        }
    }
}

fn milliseconds_since(start: Instant) -> f64 {
    milliseconds(start.elapsed())
}

fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1000.0)
}

fn megabytes(bytes: u64) -> f64 {
    rounded(bytes as f64 / f64::from(1 << 20))
}

/// Rounds to three decimals: microseconds, or kilobytes of a megabyte.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
