//! Turns the end of a run into a value, or into an error that says why there is none.

use belljar_contract::{ErrorCode, Limits, RunError};
use belljar_jail::GuestEnd;
use belljar_wire::Event;

use super::{EndCause, ReturnedValue, exhausted};
use crate::{cell::CellBody, transcript::TooMuchOutput, value};

const SIGXCPU: i32 = 24;
const SIGSEGV: i32 = 11;

/// Turns the end of a run into what its caller gets. `end` is how the guest ended, if it did.
pub(crate) async fn judge(
    cause: EndCause,
    end: Option<GuestEnd>,
    cell: &CellBody,
    limits: &Limits,
) -> Result<ReturnedValue, RunError> {
    Err(match cause {
        EndCause::Answered(Event::Done { lossy, cut, value }) => {
            return value::check(value, limits).map(|value| ReturnedValue { value, lossy, cut });
        }
        EndCause::Answered(Event::Failed(error)) => exhausted::with_limit(error.into(), limits),
        EndCause::Answered(event) => malformed(&format!("unexpected {event:?}")),
        EndCause::Malformed(what) => malformed(&what),
        EndCause::Silent => explain_silence(end, cell, limits).await,
        EndCause::TooMuchOutput(TooMuchOutput { stream }) => RunError::new(
            ErrorCode::LimitOutput,
            format!("{stream} went over {} bytes", limits.output_fatal_bytes()),
        )
        .with_hint(
            "print less: return a summary, or filter before printing; --max-output raises both what is \
             kept and this limit",
        ),
        EndCause::TooManyCalls => RunError::new(
            ErrorCode::LimitToolCalls,
            format!("the run went over its {} tool calls", limits.tool_calls),
        )
        .with_hint("fetch more with each call, or ask for more calls with --max-tool-calls"),
        EndCause::BacklogFull(error) => error,
        EndCause::Stopped(reason) => reason.into(),
        EndCause::OutOfTime => out_of_time(limits),
        EndCause::OutOfCpu => out_of_cpu(limits),
        EndCause::OutOfMemory => out_of_memory(limits),
        EndCause::Aborted => aborted(),
    })
}

async fn explain_silence(end: Option<GuestEnd>, cell: &CellBody, limits: &Limits) -> RunError {
    if cell.ran_out_of_memory() {
        return out_of_memory(limits);
    }
    match end {
        Some(GuestEnd::Killed(SIGXCPU)) => out_of_cpu(limits),
        Some(end) => crashed(end),
        None if cell.zygote_is_gone().await => {
            RunError::new(ErrorCode::SandboxZygoteLost, "the zygote died, and the run with it")
                .with_hint("run it again: Belljar starts a new zygote")
        }
        None => RunError::new(ErrorCode::SandboxCrashed, "the cell ended without a result"),
    }
}

/// The error for a guest that ended before its run did.
pub(crate) fn crashed(end: GuestEnd) -> RunError {
    let crashed = |message: String| RunError::new(ErrorCode::SandboxCrashed, message);
    match end {
        GuestEnd::Killed(SIGSEGV) => crashed("the engine crashed (signal 11)".to_owned())
            .with_hint("very deep recursion or nesting can cause this: flatten it"),
        GuestEnd::Killed(signal) => crashed(format!("the cell was killed (signal {signal})")),
        GuestEnd::Exited(status) => {
            crashed(format!("the cell ended without a result (exit status {status})"))
        }
    }
}

/// The error of a run that its caller ended.
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
