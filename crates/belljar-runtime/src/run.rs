//! One run in one cell: code in, events out, and whatever may end it.

mod exhausted;
mod memory;
mod meter;
mod verdict;

use std::{
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::{Pin, pin},
    time::Duration,
};

use belljar_contract::{ErrorCode, Limits, RunError, RunStatus};
use belljar_jail::{
    KeeperReport,
    sample::{CpuLedger, Usage},
};
use belljar_wire::{Command, Event};
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    Stop, ToolLink,
    cell::Cell,
    clock::{Clock, Tick},
    connection::Connection,
    exchange::{self, Said},
    transcript::{TooMuchOutput, Transcript},
};

pub(crate) use memory::slack_bytes;
use memory::{Finding, MemoryWatch};
pub(crate) use meter::{CellMeter, Meter};
pub(crate) use verdict::{aborted, crashed, judge, out_of_memory};

/// A guest that can still speak says itself where it was when time ran out; one that cannot is
/// ended this much later.
const GRACE: Duration = Duration::from_millis(75);
/// How often a running cell is measured.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

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
    pub(crate) stopped: Option<RunStatus>,
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
    let meter = CellMeter::start(body);
    let conversed = converse(connection, &meter, task, transcript, abort).await;
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
    let mut watched = Watched { ledger: meter.ledger(), ..Watched::default() };
    let mut said = Said::default();
    let waits = tools.as_ref().map(|tools| tools.waits_for_person.clone());
    let exchange = exchange::exchange(connection, command, limits, tools, transcript, &mut said);
    let clock = Clock::start(limits.timeout + GRACE, waits);
    let ended = watch(exchange, meter, limits, clock, &mut watched, abort).await;
    // Before anything else: what the guest does from here on is not part of its run.
    let total = meter.total();
    let Usage { cpu, memory_bytes } = total.unwrap_or_default();
    let Watched { mut measured, ledger, .. } = watched;
    measured.raise(cpu.saturating_add(ledger.lost()), memory_bytes);
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

/// What was seen of a run while it went on.
#[derive(Debug, Default)]
struct Watched {
    measured: Measured,
    ledger: CpuLedger,
    /// From the first sample on.
    memory: Option<MemoryWatch>,
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
    mut clock: Clock,
    watched: &mut Watched,
    mut abort: Pin<&mut impl Future<Output = ()>>,
) -> Ended {
    let started = Instant::now();
    let mut exchange = pin!(exchange);
    let mut sample = interval_at(started + SAMPLE_EVERY, SAMPLE_EVERY);
    sample.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The exchange comes last: a guest that floods it must not keep the clock from being
            // looked at.
            biased;
            () = &mut abort => return Ended::Aborted,
            tick = clock.tick() => match tick {
                Tick::OutOfTime => return Ended::OutOfTime,
                Tick::Turned => {
                    if !clock.advance(meter.sample(&mut watched.ledger).usage.cpu) {
                        return Ended::OutOfTime;
                    }
                }
            },
            _ = sample.tick() => {
                if let Some(ended) = watched.look(meter, limits, &mut clock) {
                    return ended;
                }
            }
            finding = watched.looked_closer() => {
                if finding == Finding::OverTheLimit {
                    return Ended::OutOfMemory;
                }
            }
            ended = &mut exchange => return ended,
        }
    }
}

impl Watched {
    /// Takes a sample; why the run has to end, if it has to.
    fn look(&mut self, meter: &impl Meter, limits: &Limits, clock: &mut Clock) -> Option<Ended> {
        let sample = meter.sample(&mut self.ledger);
        let memory = self.memory.get_or_insert_with(|| {
            MemoryWatch::new(limits.memory, meter.inherited_bytes(), meter.guests())
        });
        let cpu = sample.usage.cpu;
        self.measured.raise(cpu, memory.held_bytes(&sample));
        if !clock.advance(cpu) {
            return Some(Ended::OutOfTime);
        }
        if memory.check(&sample) == Finding::OverTheLimit {
            return Some(Ended::OutOfMemory);
        }
        // Unless it is set apart, this limit is the wall clock's: the guest, which can say where it
        // was, comes first there too.
        (cpu > limits.cpu.saturating_add(GRACE)).then_some(Ended::OutOfCpu)
    }

    /// What a closer look at its memory has found, if one is under way.
    async fn looked_closer(&mut self) -> Finding {
        match &mut self.memory {
            Some(memory) => memory.looked_closer().await,
            None => std::future::pending().await,
        }
    }
}
