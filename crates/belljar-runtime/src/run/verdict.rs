//! Turns the end of a run into a value, or into an error that says why there is none.

use belljar_contract::{ErrorCode, Limits, RunError};
use belljar_jail::GuestEnd;
use belljar_wire::{Event, RunValue};

use super::{CellRunOutcome, EndCause, GuestRun, ReturnedValue, exhausted};
use crate::{cell::CellBody, transcript::TooMuchOutput, value};

const SIGXCPU: i32 = 24;
const SIGSEGV: i32 = 11;

impl GuestRun {
    /// Turns the end of the run into its outcome. `end` is how the guest ended, `cell_end` why the host
    /// ended its whole cell, if either did.
    pub(crate) async fn judge(
        self,
        end: Option<GuestEnd>,
        cell_end: Option<RunError>,
        cell: &CellBody,
        limits: &Limits,
    ) -> CellRunOutcome {
        let Self { cause, usage, reports, .. } = self;
        let mut stop_status = None;
        let outcome = match cause {
            EndCause::Answered(Event::Done(RunValue { lossy, cut, value })) => {
                value::check(value, limits).map(|value| ReturnedValue { value, lossy, cut })
            }
            EndCause::Answered(Event::Failed(error)) => {
                Err(exhausted::with_limit(error.into(), limits))
            }
            EndCause::Answered(event) => Err(malformed(&format!("unexpected {event:?}"))),
            EndCause::Malformed(what) => Err(malformed(&what)),
            EndCause::Silent => Err(match cell_end {
                Some(why) => why,
                None => explain_silence(end, cell, limits).await,
            }),
            EndCause::TooMuchOutput(TooMuchOutput { stream }) => {
                Err(too_much_output(stream, limits))
            }
            EndCause::TooManyCalls => Err(too_many_calls(limits)),
            EndCause::BacklogFull(error) | EndCause::OverLimit(error) => Err(error),
            EndCause::Stopped(reason) => {
                stop_status = Some(reason.status());
                Err(reason.into())
            }
            EndCause::OutOfTime => Err(out_of_time(limits)),
            EndCause::OutOfCpu => Err(out_of_cpu(limits)),
            EndCause::OutOfMemory => Err(out_of_memory(limits)),
            EndCause::Aborted => Err(aborted()),
        };
        let outcome = usage.blame_memory(outcome, limits);
        CellRunOutcome { outcome, stop_status, usage, work: None, reports }
    }
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

fn too_much_output(stream: &str, limits: &Limits) -> RunError {
    let most = limits.output_fatal_bytes();
    RunError::new(ErrorCode::LimitOutput, format!("{stream} went over {most} bytes"))
        .with_hint(format!(
            "Print less: return a summary, or filter before printing. An output limit of more than {most} \
             bytes raises this limit, too."
        ))
        .with_advice()
}

fn too_many_calls(limits: &Limits) -> RunError {
    let most = limits.tool_calls;
    RunError::new(ErrorCode::LimitToolCalls, format!("the run went over its {most} tool calls"))
        .with_hint("Fetch more with each call.")
        .with_advice()
}

pub(crate) fn out_of_time(limits: &Limits) -> RunError {
    let limit = limits.timeout.as_millis();
    RunError::new(
        ErrorCode::LimitTimeout,
        format!("timed out: the run went over its {limit} ms of wall time"),
    )
    .with_hint("Do less per run.")
    .with_advice()
}

pub(crate) fn out_of_cpu(limits: &Limits) -> RunError {
    let limit = limits.cpu.as_millis();
    RunError::new(
        ErrorCode::LimitCpu,
        format!("timed out: the run went over its {limit} ms of CPU time"),
    )
    .with_hint("Do less per run.")
    .with_advice()
}

pub(crate) fn out_of_memory(limits: &Limits) -> RunError {
    let limit = limits.memory >> 20;
    RunError::new(ErrorCode::LimitMemory, format!("the run went over its {limit} MiB of memory"))
        .with_hint("Work on the data in pieces.")
        .with_advice()
}
