//! The result of a run, put together as it goes on.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use belljar_contract::{
    EngineName, ErrorCode, Isolation, Metrics, RunError, RunResult, RunStatus, Tier,
};
use serde_json::value::RawValue;

use crate::{
    files::Settled,
    ids::run_id,
    pool::Pool,
    run::{Driven, Finished},
    scan::TakenBack,
    state::State,
    transcript::Transcript,
};

/// The parts of a result that do not depend on how it ended.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) id: String,
    pub(crate) metrics: Metrics,
    isolation: Isolation,
    pub(crate) settled: Settled,
    /// What became of what it wrote to granted trees.
    pub(crate) taken_back: TakenBack,
    stopped: Option<RunStatus>,
    /// The session it ran in.
    pub(crate) session_id: Option<String>,
    state: State,
}

impl Report {
    pub(crate) fn new(engine: EngineName, id: Option<String>) -> Self {
        Self {
            id: id.unwrap_or_else(run_id),
            metrics: Metrics::default(),
            isolation: Isolation { engine, ..Isolation::default() },
            settled: Settled::default(),
            taken_back: TakenBack::default(),
            stopped: None,
            session_id: None,
            state: State::default(),
        }
    }

    pub(crate) fn confined(&mut self, pool: &Pool) {
        let plan = pool.plan();
        self.isolation.tier = if plan.is_full() { Tier::Full } else { Tier::Weakened };
        self.isolation.layers = plan.layers().into_iter().map(Cow::Borrowed).collect();
        self.isolation.memory = pool.memory_bound();
    }

    pub(crate) fn measured(&mut self, started: Instant, driven: &Driven) {
        let measured = driven.measured;
        self.stopped = driven.stopped;
        self.metrics.tool_calls = driven.said.calls;
        self.state = driven.said.state.clone();
        self.metrics.execution_ms = milliseconds_since(started);
        self.metrics.cpu_ms = milliseconds(measured.cpu);
        self.metrics.memory_mb = megabytes(measured.peak_memory_bytes);
    }

    pub(crate) fn into_result(
        self,
        outcome: Result<Finished, RunError>,
        mut transcript: Transcript,
    ) -> RunResult {
        let outcome = match self.taken_back.error(outcome.as_ref().err()) {
            Some(error) => Err(error),
            None => outcome,
        };
        for note in self.settled.notes.into_iter().chain(self.taken_back.into_lines()) {
            // The run is over: what does not fit is left out like any other line.
            let _ = transcript.log(note.as_bytes());
        }
        let mut texts = transcript.finish();
        // What a run that failed has left half done is not handed on.
        let state = if outcome.is_ok() { self.state } else { State::default() };
        texts.truncated.state = state.is_cut;
        let (value, lossy, error) = match outcome {
            Ok(Finished { value, lossy, cut }) => {
                texts.truncated.result = cut;
                (value, lossy, None)
            }
            Err(error) => (RawValue::NULL.to_owned(), false, Some(error)),
        };
        let status = match &error {
            None => RunStatus::Completed,
            Some(_) if self.stopped.is_some() => self.stopped.unwrap_or(RunStatus::Failed),
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
            artifacts: self.settled.artifacts,
            changes: self.settled.changes,
            session_id: self.session_id,
            state: state.into_json(),
            lossy,
            ..RunResult::default()
        }
    }
}

/// Milliseconds since a moment.
pub(crate) fn milliseconds_since(start: Instant) -> f64 {
    milliseconds(start.elapsed())
}

fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1000.0)
}

fn megabytes(bytes: u64) -> f64 {
    rounded(bytes as f64 / f64::from(1 << 20))
}

/// Three decimals: microseconds, or kilobytes of a megabyte.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
