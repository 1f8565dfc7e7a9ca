//! What the end of a run means: a value, or an error that says why there is none.

use belljar_contract::{ErrorCode, Limits, RunError};
use belljar_jail::GuestEnd;
use belljar_wire::Event;

use super::{Ended, Finished, exhausted};
use crate::{cell::Body, transcript::TooMuchOutput, value};

const SIGXCPU: i32 = 24;
const SIGSEGV: i32 = 11;

/// What a run's end means for its caller.
pub(crate) async fn judge(
    ended: Ended,
    end: Option<GuestEnd>,
    cell: &Body,
    limits: &Limits,
) -> Result<Finished, RunError> {
    Err(match ended {
        Ended::Answered(Event::Done { lossy, cut, value }) => {
            return value::checked(value, limits).map(|value| Finished { value, lossy, cut });
        }
        Ended::Answered(Event::Failed(error)) => exhausted::with_limit(error.into(), limits),
        Ended::Answered(event) => malformed(&format!("unexpected {event:?}")),
        Ended::Malformed(what) => malformed(&what),
        Ended::Silent => explain_silence(end, cell, limits).await,
        Ended::TooMuchOutput(TooMuchOutput { stream }) => RunError::new(
            ErrorCode::LimitOutput,
            format!("{stream} went over {} bytes", limits.output_fatal_bytes()),
        )
        .with_hint(
            "print less: return a summary, or filter before printing; --max-output raises what is \
             kept, and this with it",
        ),
        Ended::TooManyCalls => RunError::new(
            ErrorCode::LimitToolCalls,
            format!("the run went over its {} tool calls", limits.tool_calls),
        )
        .with_hint("ask for more at once, or for more calls with --max-tool-calls"),
        Ended::Stopped(stop) => stop.error,
        Ended::OutOfTime => out_of_time(limits),
        Ended::OutOfCpu => out_of_cpu(limits),
        Ended::OutOfMemory => out_of_memory(limits),
        Ended::Aborted => aborted(),
    })
}

async fn explain_silence(end: Option<GuestEnd>, cell: &Body, limits: &Limits) -> RunError {
    if cell.ran_out_of_memory() {
        return out_of_memory(limits);
    }
    match end {
        Some(GuestEnd::Killed(SIGXCPU)) => out_of_cpu(limits),
        Some(end) => crashed(end),
        None if cell.zygote_is_gone().await => {
            RunError::new(ErrorCode::SandboxZygoteLost, "the zygote died and took the run with it")
                .with_hint("run it again: a new zygote is started by itself")
        }
        None => RunError::new(ErrorCode::SandboxCrashed, "the cell ended without an answer"),
    }
}

/// A guest ended that should not have.
pub(crate) fn crashed(end: GuestEnd) -> RunError {
    let crashed = |message: String| RunError::new(ErrorCode::SandboxCrashed, message);
    match end {
        GuestEnd::Killed(SIGSEGV) => crashed("the engine crashed (signal 11)".to_owned())
            .with_hint("very deep recursion or nesting can do this: flatten it"),
        GuestEnd::Killed(signal) => crashed(format!("the cell was killed (signal {signal})")),
        GuestEnd::Exited(status) => {
            crashed(format!("the cell ended without an answer (exit status {status})"))
        }
    }
}

/// The caller ended the run.
pub(crate) fn aborted() -> RunError {
    RunError::new(ErrorCode::RunAborted, "the run was aborted")
}

pub(crate) fn malformed(what: &str) -> RunError {
    RunError::new(ErrorCode::SandboxProtocol, format!("the cell broke the protocol: {what}"))
}

pub(crate) fn out_of_time(limits: &Limits) -> RunError {
    let limit = limits.timeout.as_millis();
    RunError::new(
        ErrorCode::LimitTimeout,
        format!("timed out: the run went over its {limit} ms of wall time"),
    )
    .with_hint("do less per run, or ask for more time with --timeout")
}

pub(crate) fn out_of_cpu(limits: &Limits) -> RunError {
    let limit = limits.cpu.as_millis();
    RunError::new(
        ErrorCode::LimitCpu,
        format!("timed out: the run went over its {limit} ms of CPU time"),
    )
    .with_hint("do less per run, or ask for more with --cpu")
}

pub(crate) fn out_of_memory(limits: &Limits) -> RunError {
    let limit = limits.memory >> 20;
    RunError::new(ErrorCode::LimitMemory, format!("the run went over its {limit} MiB of memory"))
        .with_hint("work on the data in pieces, or ask for more with --memory")
}
