//! One run in one cell: code in, events out, and whatever may end it.

use std::{future::Future, pin::pin, time::Duration};

use belljar_jail::KeeperReport;
use belljar_wire::{Caps, Command, ErrorCode, Event, ReadError};
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::{
    Limits, RunError,
    cell::Cell,
    transcript::{TooMuchOutput, Transcript},
    value,
};

/// A guest that can still speak says itself where it was when time ran out; one that cannot is
/// ended this much later.
const GRACE: Duration = Duration::from_millis(75);
/// How often a running cell is measured.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// Resident memory a cell has before any guest code, and what its allocator may waste.
const RESIDENT_SLACK: u64 = 96 << 20;

/// How a run ended well.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) value: Box<RawValue>,
    pub(crate) lossy: bool,
}

/// Runs the command to its end. What was printed is in the transcript, however it ends.
pub(crate) async fn drive(
    cell: &mut Cell,
    command: &Command,
    limits: &Limits,
    transcript: &mut Transcript,
    abort: impl Future<Output = ()>,
) -> Result<Finished, RunError> {
    let started = Instant::now();
    let processes = cell.processes();
    let ended = {
        let mut exchange = pin!(exchange(cell, command, limits, transcript));
        let mut abort = pin!(abort);
        let mut deadline = pin!(sleep_until(started + limits.timeout + GRACE));
        let mut sample = interval_at(started + SAMPLE_EVERY, SAMPLE_EVERY);
        sample.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                ended = &mut exchange => break ended,
                () = &mut abort => break Ended::Aborted,
                () = &mut deadline => break Ended::OutOfTime,
                _ = sample.tick() => {
                    let usage = processes.usage();
                    if usage.memory_bytes > limits.memory.saturating_add(RESIDENT_SLACK) {
                        break Ended::OutOfMemory;
                    }
                    if usage.cpu > limits.cpu {
                        break Ended::OutOfCpu;
                    }
                }
            }
        }
    };
    judge(ended, cell, limits).await
}

/// Why a run ended.
#[derive(Debug)]
enum Ended {
    Answered(Event),
    Silent,
    Malformed(String),
    TooMuchOutput(TooMuchOutput),
    OutOfTime,
    OutOfCpu,
    OutOfMemory,
    Aborted,
}

async fn exchange(
    cell: &mut Cell,
    command: &Command,
    limits: &Limits,
    transcript: &mut Transcript,
) -> Ended {
    if cell.send(command).await.is_err() {
        return Ended::Silent;
    }
    let body_bytes = u32::try_from(limits.result_bytes.max(1 << 20)).unwrap_or(u32::MAX);
    loop {
        match cell.receive(Caps { body_bytes }).await {
            Ok(Event::Print { stream, text }) => {
                if let Err(too_much) = transcript.print(stream, &text) {
                    return Ended::TooMuchOutput(too_much);
                }
            }
            Ok(Event::Denied { attempt }) => {
                tracing::warn!(attempt, "guest code was denied");
                if let Err(too_much) = transcript.log(&format!("[blocked] {attempt}")) {
                    return Ended::TooMuchOutput(too_much);
                }
            }
            Ok(event @ (Event::Done { .. } | Event::Failed(_))) => return Ended::Answered(event),
            Ok(event @ (Event::Ready | Event::Refused { .. })) => {
                return Ended::Malformed(format!("unexpected {event:?}"));
            }
            Err(ReadError::Decode(error)) => return Ended::Malformed(error.to_string()),
            Err(ReadError::Ended | ReadError::Io(_)) => return Ended::Silent,
        }
    }
}

async fn judge(ended: Ended, cell: &Cell, limits: &Limits) -> Result<Finished, RunError> {
    Err(match ended {
        Ended::Answered(Event::Done { lossy, value }) => {
            return value::checked(value, limits).map(|value| Finished { value, lossy });
        }
        Ended::Answered(Event::Failed(error)) => error.into(),
        Ended::Answered(event) => malformed(&format!("unexpected {event:?}")),
        Ended::Malformed(what) => malformed(&what),
        Ended::Silent => explain_silence(cell, limits).await,
        Ended::TooMuchOutput(TooMuchOutput { stream }) => RunError::new(
            ErrorCode::LimitOutput,
            format!("{stream} went over {} bytes", limits.output_fatal_bytes()),
        )
        .with_hint("print less: return a summary, or filter before printing"),
        Ended::OutOfTime => out_of_time(limits),
        Ended::OutOfCpu => out_of_cpu(limits),
        Ended::OutOfMemory => out_of_memory(limits),
        Ended::Aborted => RunError::new(ErrorCode::RunAborted, "the run was aborted"),
    })
}

async fn explain_silence(cell: &Cell, limits: &Limits) -> RunError {
    let report = cell.guest_end().await;
    if cell.ran_out_of_memory() {
        return out_of_memory(limits);
    }
    if report.is_none() && cell.zygote_is_gone().await {
        return RunError::new(
            ErrorCode::SandboxZygoteLost,
            "the zygote died and took the run with it",
        )
        .with_hint("run it again: a new zygote is started by itself");
    }
    const SIGXCPU: i32 = 24;
    const SIGSEGV: i32 = 11;
    match report {
        Some(KeeperReport::Killed(SIGXCPU)) => out_of_cpu(limits),
        Some(KeeperReport::Killed(SIGSEGV)) => {
            RunError::new(ErrorCode::SandboxCrashed, "the engine crashed (signal 11)")
                .with_hint("very deep recursion or nesting can do this: flatten it")
        }
        Some(KeeperReport::Killed(signal)) => RunError::new(
            ErrorCode::SandboxCrashed,
            format!("the cell was killed (signal {signal})"),
        ),
        Some(KeeperReport::Exited(status)) => RunError::new(
            ErrorCode::SandboxCrashed,
            format!("the cell ended without an answer (exit status {status})"),
        ),
        Some(KeeperReport::Resized | KeeperReport::NotResized { .. }) | None => {
            RunError::new(ErrorCode::SandboxCrashed, "the cell ended without an answer")
        }
    }
}

fn malformed(what: &str) -> RunError {
    RunError::new(ErrorCode::SandboxProtocol, format!("the cell broke the protocol: {what}"))
}

fn out_of_time(limits: &Limits) -> RunError {
    let limit = limits.timeout.as_millis();
    RunError::new(ErrorCode::LimitTimeout, format!("the run went over its {limit} ms of wall time"))
        .with_hint("do less per run, or ask for more time with --timeout")
}

fn out_of_cpu(limits: &Limits) -> RunError {
    let limit = limits.cpu.as_millis();
    RunError::new(ErrorCode::LimitCpu, format!("the run went over its {limit} ms of CPU time"))
        .with_hint("do less per run, or ask for more with --cpu")
}

fn out_of_memory(limits: &Limits) -> RunError {
    let limit = limits.memory >> 20;
    RunError::new(ErrorCode::LimitMemory, format!("the run went over its {limit} MiB of memory"))
        .with_hint("work on the data in pieces, or ask for more with --memory")
}
