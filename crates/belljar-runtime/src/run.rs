//! One run in one cell: code in, events out, and whatever may end it.

use std::{
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::{Pin, pin},
    time::Duration,
};

use belljar_jail::{GuestEnd, KeeperReport, sample::CellProcesses};
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
/// The largest text of one print; engines send longer ones in pieces.
const MAX_PRINT_BYTES: u32 = 512 << 10;
/// Artifacts a run may name.
const MAX_NAMED_ARTIFACTS: usize = 256;
/// Denials the operator hears of, per run; all of them are in the run's own log.
const MAX_DENIALS_TRACED: u32 = 20;

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
    pub(crate) measured: Measured,
    /// A handle on what the guest wrote to `/work`, when that was wanted and the guest answered.
    pub(crate) work: Option<io::Result<OwnedFd>>,
    /// Artifacts the code named.
    pub(crate) named: Vec<String>,
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

/// Runs the command to its end. What was printed is in the transcript, however it ends.
pub(crate) async fn drive(
    cell: &mut Cell,
    command: &Command,
    limits: &Limits,
    transcript: &mut Transcript,
    files: Files,
    abort: Pin<&mut impl Future<Output = ()>>,
) -> Driven {
    let mut measured = Measured::default();
    let mut named = Vec::new();
    let processes = cell.processes();
    let exchange = exchange(cell, command, limits, transcript, &mut named);
    let ended = watch(exchange, processes, limits, &mut measured, abort).await;
    // Before anything else: what the guest does from here on is not part of its run.
    let still_there = measured.update(processes);
    let report =
        if still_there && !matches!(ended, Ended::Silent) { None } else { cell.guest_end().await };
    let work = match (&ended, files) {
        (Ended::Answered(_), Files::Wanted) => Some(cell.work().await),
        (Ended::Answered(_), Files::WantedIfNamed) if !named.is_empty() => Some(cell.work().await),
        _ => None,
    };
    cell.kill();
    if let Some(KeeperReport::Ended { cpu_us, peak_memory_bytes, .. }) = report {
        measured.raise(Duration::from_micros(cpu_us), peak_memory_bytes);
    }
    let outcome = judge(ended, report, cell, limits).await;
    Driven { outcome, measured, work, named }
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

/// Lets the exchange go on until it ends or something ends it.
async fn watch(
    exchange: impl Future<Output = Ended>,
    processes: CellProcesses,
    limits: &Limits,
    measured: &mut Measured,
    mut abort: Pin<&mut impl Future<Output = ()>>,
) -> Ended {
    let started = Instant::now();
    let mut exchange = pin!(exchange);
    let mut deadline = pin!(sleep_until(started + limits.timeout + GRACE));
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

async fn exchange(
    cell: &mut Cell,
    command: &Command,
    limits: &Limits,
    transcript: &mut Transcript,
    named: &mut Vec<String>,
) -> Ended {
    if cell.send(command).await.is_err() {
        return Ended::Silent;
    }
    let body_bytes = u32::try_from(limits.result_bytes).unwrap_or(u32::MAX);
    let caps = Caps { body_bytes, text_bytes: MAX_PRINT_BYTES };
    let mut denials = 0;
    // Frames cost the host their whole size, not only that of the text in them.
    let mut budget = limits.output_fatal_bytes().saturating_mul(64);
    loop {
        let (event, frame_bytes) = match cell.receive(caps).await {
            Ok(received) => received,
            Err(ReadError::Decode(error)) => return Ended::Malformed(error.to_string()),
            Err(ReadError::Ended | ReadError::Io(_)) => return Ended::Silent,
        };
        let printed = match event {
            Event::Print { stream, text } => transcript.print(stream, &text),
            Event::Denied { attempt } => {
                denials += 1;
                if denials <= MAX_DENIALS_TRACED {
                    tracing::warn!(attempt, "guest code was denied");
                }
                transcript.log(format!("[blocked] {attempt}").as_bytes())
            }
            Event::Artifact { path } => {
                // Naming more than come back is harmless, and so is forgetting them.
                if named.len() < MAX_NAMED_ARTIFACTS {
                    named.push(path);
                }
                Ok(())
            }
            event @ (Event::Done { .. } | Event::Failed(_)) => return Ended::Answered(event),
            Event::Ready | Event::Refused { .. } => {
                return Ended::Malformed("a second greeting".to_owned());
            }
        };
        budget = budget.saturating_sub(frame_bytes as u64);
        match printed {
            Err(too_much) => return Ended::TooMuchOutput(too_much),
            Ok(()) if budget == 0 => {
                return Ended::TooMuchOutput(TooMuchOutput { stream: "frames" });
            }
            Ok(()) => {}
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
