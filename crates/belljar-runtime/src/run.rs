//! One run in one cell: code in, events out, and whatever may end it.

mod verdict;

use std::{
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::{Pin, pin},
    time::Duration,
};

use belljar_jail::{
    KeeperReport,
    sample::{CellProcesses, Usage},
};
use belljar_wire::{Command, ErrorCode, Event};
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    Limits, RunError, Status, Stop, ToolLink,
    cell::Cell,
    clock::Clock,
    connection::Connection,
    exchange::{self, Said},
    transcript::{TooMuchOutput, Transcript},
};

pub(crate) use verdict::{aborted, crashed, judge, out_of_memory};

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

/// What a run's use of the machine is measured by, from outside.
pub(crate) trait Meter {
    /// What the run uses right now.
    fn usage(&self) -> Usage;

    /// CPU time of the run, and the most memory it was resident with, now that it has ended; `None`
    /// when the guest is gone.
    fn total(&self) -> Option<Usage>;
}

impl Meter for CellProcesses {
    fn usage(&self) -> Usage {
        Self::usage(self)
    }

    fn total(&self) -> Option<Usage> {
        let memory_bytes = self.peak_memory_bytes()?;
        Some(Usage { cpu: self.cpu_time().unwrap_or_default(), memory_bytes })
    }
}

/// What is known when a run has ended, and its guest may still be there.
#[derive(Debug)]
pub(crate) struct Conversed {
    pub(crate) ended: Ended,
    pub(crate) measured: Measured,
    pub(crate) said: Said,
    /// Whether the guest was still there to be measured.
    pub(crate) still_there: bool,
}

/// Runs the task to its end. What was printed is in the transcript, however it ends.
pub(crate) async fn drive(
    cell: &mut Cell,
    task: Task<'_>,
    transcript: &mut Transcript,
    abort: Pin<&mut impl Future<Output = ()>>,
) -> Driven {
    let (limits, files) = (task.limits, task.files);
    let Cell { connection, body } = cell;
    let conversed = converse(connection, &body.processes(), task, transcript, abort).await;
    let Conversed { ended, mut measured, said, still_there } = conversed;
    let report =
        if still_there && !matches!(ended, Ended::Silent) { None } else { body.guest_end().await };
    let wanted = files == Files::Wanted || !said.named.is_empty();
    let has_answered = matches!(ended, Ended::Answered(_));
    let work = if has_answered && wanted { Some(body.work().await) } else { None };
    body.kill();
    let mut end = None;
    if let Some(KeeperReport::Ended { end: how, cpu_us, peak_memory_bytes, .. }) = report {
        end = Some(how);
        measured.raise(Duration::from_micros(cpu_us), peak_memory_bytes);
    }
    let stopped = if let Ended::Stopped(stop) = &ended { Some(stop.status) } else { None };
    let outcome = judge(ended, end, body, limits).await;
    let outcome = measured.blame_memory(outcome, limits);
    Driven { outcome, stopped, measured, work, said }
}

/// Sends the task and hears the guest out, until it has answered or something ends the run.
pub(crate) async fn converse(
    connection: &mut Connection,
    meter: &impl Meter,
    task: Task<'_>,
    transcript: &mut Transcript,
    abort: Pin<&mut impl Future<Output = ()>>,
) -> Conversed {
    let Task { command, limits, tools, .. } = task;
    let (mut measured, mut said) = (Measured::default(), Said::default());
    let waits = tools.as_ref().map(|tools| tools.waits_for_person.clone());
    let exchange = exchange::exchange(connection, command, limits, tools, transcript, &mut said);
    let clock = Clock::start(limits.timeout + GRACE, waits);
    let ended = watch(exchange, meter, limits, clock, &mut measured, abort).await;
    // Before anything else: what the guest does from here on is not part of its run.
    let total = meter.total();
    let Usage { cpu, memory_bytes } = total.unwrap_or_default();
    measured.raise(cpu, memory_bytes);
    Conversed { ended, measured, said, still_there: total.is_some() }
}

impl Measured {
    fn raise(&mut self, cpu: Duration, memory_bytes: u64) {
        self.cpu = self.cpu.max(cpu);
        self.peak_memory_bytes = self.peak_memory_bytes.max(memory_bytes);
    }

    /// What was to settle a promise may have been lost for want of memory.
    pub(crate) fn blame_memory(
        &self,
        outcome: Result<Finished, RunError>,
        limits: &Limits,
    ) -> Result<Finished, RunError> {
        outcome.map_err(|error| {
            let is_stalled = error.code == ErrorCode::RuntimeStalled;
            let is_over = self.peak_memory_bytes > limits.memory;
            if is_stalled && is_over { out_of_memory(limits) } else { error }
        })
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
    meter: &impl Meter,
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
                let usage = meter.usage();
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
