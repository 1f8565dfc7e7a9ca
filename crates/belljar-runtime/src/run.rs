//! One run in one cell: code in, events out, and whatever may end it.

use std::{
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::{Pin, pin},
    time::Duration,
};

use belljar_jail::{GuestEnd, KeeperReport, sample::CellProcesses};
use belljar_wire::{Command, ErrorCode, Event};
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    Limits, RunError, Status, Stop, ToolLink,
    cell::Cell,
    clock::Clock,
    exchange::{self, Said},
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
    /// A table in it had more rows than came back.
    pub(crate) cut: bool,
}

/// All that came of a run in its cell.
#[derive(Debug)]
pub(crate) struct Driven {
    pub(crate) outcome: Result<Finished, RunError>,
    /// How the bridge ended it, if that is who did.
    pub(crate) stopped: Option<Status>,
    pub(crate) measured: Measured,
    /// A handle on what the guest wrote to `/work`, when that was wanted and the guest answered.
    pub(crate) work: Option<io::Result<OwnedFd>>,
    /// What the code said on its way.
    pub(crate) said: Said,
}

/// What is to be run, and how.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) command: &'a Command,
    pub(crate) limits: &'a Limits,
    pub(crate) files: Files,
    pub(crate) tools: Option<ToolLink>,
}

/// Whether a run's files are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    /// In any case.
    Wanted,
    /// If the code names one.
    WantedIfNamed,
}

/// What the guest used, as the kernel counted it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) cpu: Duration,
    pub(crate) peak_memory_bytes: u64,
}

/// Runs the task to its end. What was printed is in the transcript, however it ends.
pub(crate) async fn drive(
    cell: &mut Cell,
    task: Task<'_>,
    transcript: &mut Transcript,
    abort: Pin<&mut impl Future<Output = ()>>,
) -> Driven {
    let Task { command, limits, files, tools } = task;
    let mut measured = Measured::default();
    let mut said = Said::default();
    let processes = cell.processes();
    let waits = tools.as_ref().map(|tools| tools.waits_for_person.clone());
    let exchange = exchange::exchange(cell, command, limits, tools, transcript, &mut said);
    let clock = Clock::start(limits.timeout + GRACE, waits);
    let ended = watch(exchange, processes, limits, clock, &mut measured, abort).await;
    // Before anything else: what the guest does from here on is not part of its run.
    let still_there = measured.update(processes);
    let report =
        if still_there && !matches!(ended, Ended::Silent) { None } else { cell.guest_end().await };
    let wanted = files == Files::Wanted || !said.named.is_empty();
    let has_answered = matches!(ended, Ended::Answered(_));
    let work = if has_answered && wanted { Some(cell.work().await) } else { None };
    cell.kill();
    if let Some(KeeperReport::Ended { cpu_us, peak_memory_bytes, .. }) = report {
        measured.raise(Duration::from_micros(cpu_us), peak_memory_bytes);
    }
    let stopped = if let Ended::Stopped(stop) = &ended { Some(stop.status) } else { None };
    let mut outcome = judge(ended, report, cell, limits).await;
    if let Err(error) = &outcome
        && error.code == ErrorCode::RuntimeStalled
        && measured.peak_memory_bytes > limits.memory
    {
        // What was to settle the promise was lost for want of memory.
        outcome = Err(out_of_memory(limits));
    }
    Driven { outcome, stopped, measured, work, said }
}

impl Measured {
    fn raise(&mut self, cpu: Duration, memory_bytes: u64) {
        self.cpu = self.cpu.max(cpu);
        self.peak_memory_bytes = self.peak_memory_bytes.max(memory_bytes);
    }

    /// Whether the guest was still there to be measured.
    fn update(&mut self, processes: CellProcesses) -> bool {
        let (cpu, peak) = (processes.cpu_time(), processes.peak_memory_bytes());
        self.raise(cpu.unwrap_or_default(), peak.unwrap_or_default());
        peak.is_some()
    }
}

/// Why a run ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Answered(Event),
    Silent,
    Malformed(String),
    TooMuchOutput(TooMuchOutput),
    TooManyCalls,
    Stopped(Stop),
    OutOfTime,
    OutOfCpu,
    OutOfMemory,
    Aborted,
}

/// Lets the exchange go on until it ends or something ends it.
async fn watch(
    exchange: impl Future<Output = Ended>,
    processes: CellProcesses,
    limits: &Limits,
    clock: Clock,
    measured: &mut Measured,
    mut abort: Pin<&mut impl Future<Output = ()>>,
) -> Ended {
    let started = Instant::now();
    let mut exchange = pin!(exchange);
    let mut deadline = pin!(clock.run_out());
    let mut sample = interval_at(started + SAMPLE_EVERY, SAMPLE_EVERY);
    sample.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The exchange comes last: a guest that floods it must not keep the clock from being
            // looked at.
            biased;
            () = &mut abort => return Ended::Aborted,
            () = &mut deadline => return Ended::OutOfTime,
            _ = sample.tick() => {
                let usage = processes.usage();
                measured.raise(usage.cpu, usage.memory_bytes);
                if usage.memory_bytes > limits.memory.saturating_add(RESIDENT_SLACK) {
                    return Ended::OutOfMemory;
                }
                // Unless it is set apart, this limit is the wall clock's: the guest, which can say where
                // it was, comes first there too.
                if usage.cpu > limits.cpu.saturating_add(GRACE) {
                    return Ended::OutOfCpu;
                }
            }
            ended = &mut exchange => return ended,
        }
    }
}

async fn judge(
    ended: Ended,
    report: Option<KeeperReport>,
    cell: &Cell,
    limits: &Limits,
) -> Result<Finished, RunError> {
    Err(match ended {
        Ended::Answered(Event::Done { lossy, cut, value }) => {
            return value::checked(value, limits).map(|value| Finished { value, lossy, cut });
        }
        Ended::Answered(Event::Failed(error)) => error.into(),
        Ended::Answered(event) => malformed(&format!("unexpected {event:?}")),
        Ended::Malformed(what) => malformed(&what),
        Ended::Silent => explain_silence(report, cell, limits).await,
        Ended::TooMuchOutput(TooMuchOutput { stream }) => RunError::new(
            ErrorCode::LimitOutput,
            format!("{stream} went over {} bytes", limits.output_fatal_bytes()),
        )
        .with_hint("print less: return a summary, or filter before printing"),
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

async fn explain_silence(report: Option<KeeperReport>, cell: &Cell, limits: &Limits) -> RunError {
    const SIGXCPU: i32 = 24;
    const SIGSEGV: i32 = 11;
    if cell.ran_out_of_memory() {
        return out_of_memory(limits);
    }
    let crashed = |message: String| RunError::new(ErrorCode::SandboxCrashed, message);
    match report {
        Some(KeeperReport::Ended { end: GuestEnd::Killed(SIGXCPU), .. }) => out_of_cpu(limits),
        Some(KeeperReport::Ended { end: GuestEnd::Killed(SIGSEGV), .. }) => {
            crashed("the engine crashed (signal 11)".to_owned())
                .with_hint("very deep recursion or nesting can do this: flatten it")
        }
        Some(KeeperReport::Ended { end: GuestEnd::Killed(signal), .. }) => {
            crashed(format!("the cell was killed (signal {signal})"))
        }
        Some(KeeperReport::Ended { end: GuestEnd::Exited(status), .. }) => {
            crashed(format!("the cell ended without an answer (exit status {status})"))
        }
        None if cell.zygote_is_gone().await => {
            RunError::new(ErrorCode::SandboxZygoteLost, "the zygote died and took the run with it")
                .with_hint("run it again: a new zygote is started by itself")
        }
        Some(
            KeeperReport::Resized
            | KeeperReport::NotResized { .. }
            | KeeperReport::Work
            | KeeperReport::NoWork { .. },
        )
        | None => crashed("the cell ended without an answer".to_owned()),
    }
}

/// The caller ended the run.
pub(crate) fn aborted() -> RunError {
    RunError::new(ErrorCode::RunAborted, "the run was aborted")
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
