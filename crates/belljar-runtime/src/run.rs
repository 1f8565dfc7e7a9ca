//! One run in one guest: code in, events out, and everything that can end it.

mod exhausted;
mod memory;
mod meter;
mod verdict;

use std::{
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use belljar_contract::{ErrorCode, Limits, RunError, RunRequest, RunStatus};
use belljar_jail::{
    CellKind, KeeperReport,
    sample::{CpuLedger, Usage},
};
use belljar_net::FetchClient;
use belljar_wire::{Command, Event, GuestGrants, GuestLimits, RunCommand};
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    StopReason, ToolLink,
    cell::Cell,
    clock::{RunClock, Tick},
    connection::GuestConnection,
    exchange::{self, GuestReports},
    network::NetworkExcess,
    transcript::{TooMuchOutput, Transcript},
};

pub(crate) use memory::slack_bytes;
use memory::{MemoryVerdict, MemoryWatch};
pub(crate) use meter::{CellMeter, UsageMeter};
pub(crate) use verdict::{aborted, crashed, out_of_memory};

/// A guest that can still answer says itself where it was when its time ran out. The host ends a guest
/// that cannot this much later.
const GRACE: Duration = Duration::from_millis(75);
/// How often the host measures a run.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// The value of a run that succeeded.
#[derive(Debug)]
pub(crate) struct ReturnedValue {
    pub(crate) value: Box<RawValue>,
    /// JSON could not express all of it.
    pub(crate) lossy: bool,
    /// A table in it had more rows than came back.
    pub(crate) cut: bool,
}

/// The outcome of a run, before its files are collected.
#[derive(Debug)]
pub(crate) struct CellRunOutcome {
    pub(crate) outcome: Result<ReturnedValue, RunError>,
    /// The status of the run, if its bridge ended it.
    pub(crate) stop_status: Option<RunStatus>,
    pub(crate) usage: RunUsage,
    /// A handle on the guest's `/work`, if the guest answered and its files are to be collected.
    pub(crate) work: Option<io::Result<OwnedFd>>,
    pub(crate) reports: GuestReports,
}

/// The command for the guest, and how its run is served.
#[derive(Debug)]
pub(crate) struct RunSpec {
    command: Command,
    limits: Limits,
    collect: CollectFiles,
    tools: Option<ToolLink>,
    excess: NetworkExcess,
    /// Makes the requests of the code, if it may reach hosts.
    pub(crate) fetches: Option<Arc<FetchClient>>,
}

/// When the files of a run are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollectFiles {
    Always,
    /// Only if the code names an artifact.
    IfNamed,
}

impl RunSpec {
    /// Turns a request into the command for its guest.
    pub(crate) fn new(
        request: RunRequest,
        grants: GuestGrants,
        tools: Option<ToolLink>,
        collect: CollectFiles,
        kind: CellKind,
    ) -> Self {
        let RunRequest { code, language, file_name, arguments, context, limits, .. } = request;
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let context =
            context.map_or_else(Vec::new, |json| String::from(Box::<str>::from(json)).into());
        let command = Command::Run(RunCommand {
            language,
            file_name,
            arguments,
            limits: GuestLimits {
                memory_bytes: limits.memory,
                wall_ms: milliseconds(limits.timeout),
                cpu_ms: milliseconds(limits.cpu),
                result_bytes: u32::try_from(limits.result_bytes).unwrap_or(u32::MAX),
                processes: limits.processes,
                open_files: limits.open_files,
            },
            grants,
            code,
            context,
            durable: tools.as_ref().and_then(|tools| tools.durable.clone()),
            session: matches!(kind, CellKind::Session),
        });
        Self { command, limits, collect, tools, excess: NetworkExcess::default(), fetches: None }
    }

    /// The same for a run that ends when its network goes over a limit.
    pub(crate) fn ended_by(self, excess: NetworkExcess) -> Self {
        Self { excess, ..self }
    }
}

/// The CPU time and memory of the guest, as the kernel counted them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunUsage {
    pub(crate) cpu: Duration,
    pub(crate) peak_memory_bytes: u64,
}

/// A run that has ended. Its guest may still be alive.
#[derive(Debug)]
pub(crate) struct GuestRun {
    pub(crate) cause: EndCause,
    pub(crate) usage: RunUsage,
    reports: GuestReports,
    /// Whether the guest was still alive when it was measured last.
    is_guest_alive: bool,
}

/// Waits for a step of a run, unless the caller aborts the run first.
pub(crate) async fn unless_aborted<T>(
    abort: Pin<&mut impl Future<Output = ()>>,
    step: impl Future<Output = Result<T, RunError>>,
) -> Result<T, RunError> {
    tokio::select! {
        biased;
        () = abort => Err(aborted()),
        done = step => done,
    }
}

/// Runs the code in a cell of its own and ends the cell. Whatever the code printed is in the transcript,
/// however the run ends.
pub(crate) async fn drive(
    cell: &mut Cell,
    spec: RunSpec,
    transcript: &mut Transcript,
    abort: Pin<&mut impl Future<Output = ()>>,
) -> CellRunOutcome {
    let (limits, collect) = (spec.limits, spec.collect);
    let Cell { connection, body } = cell;
    let meter = CellMeter::start(body);
    let mut run = run_guest(connection, &meter, spec, transcript, abort).await;
    let report = if run.has_guest_ended() { body.guest_end().await } else { None };
    let is_wanted = collect == CollectFiles::Always || !run.reports.artifacts.is_empty();
    let work = if run.cause.is_answer() && is_wanted { Some(body.work().await) } else { None };
    body.kill();
    let mut end = None;
    if let Some(KeeperReport::Ended { end: how, cpu_us, peak_memory_bytes, .. }) = report {
        end = Some(how);
        run.usage.raise(Duration::from_micros(cpu_us), peak_memory_bytes);
    }
    CellRunOutcome { work, ..run.judge(end, None, body, &limits).await }
}

/// Sends the command and serves the guest until it has answered or something ends the run.
pub(crate) async fn run_guest(
    connection: &mut GuestConnection,
    meter: &impl UsageMeter,
    spec: RunSpec,
    transcript: &mut Transcript,
    abort: Pin<&mut impl Future<Output = ()>>,
) -> GuestRun {
    let RunSpec { command, limits, tools, excess, fetches, .. } = spec;
    let mut watch = RunWatch { ledger: meter.ledger(), ..RunWatch::default() };
    let mut reports = GuestReports::default();
    let waits = tools.as_ref().map(|tools| tools.waits_for_person.clone());
    let exchange = exchange::exchange(
        connection,
        &command,
        &limits,
        (tools, fetches),
        transcript,
        &mut reports,
    );
    let clock = RunClock::start(limits.timeout + GRACE, waits);
    let excess = pin!(excess.reached());
    let exchange = async {
        tokio::select! {
            // First, because it comes before the guest learns of it.
            biased;
            error = excess => EndCause::OverLimit(error),
            cause = exchange => cause,
        }
    };
    let cause = watch.until_end(exchange, meter, &limits, clock, abort).await;
    // Before anything else: what the guest does from here on is not part of its run.
    let total = meter.total();
    let Usage { cpu, memory_bytes } = total.unwrap_or_default();
    let RunWatch { mut usage, ledger, .. } = watch;
    usage.raise(cpu.saturating_add(ledger.lost()), memory_bytes);
    GuestRun { cause, usage, reports, is_guest_alive: total.is_some() }
}

impl GuestRun {
    /// Whether the guest has ended, so that its keeper can say how.
    pub(crate) fn has_guest_ended(&self) -> bool {
        !self.is_guest_alive || matches!(self.cause, EndCause::Silent)
    }
}

impl RunUsage {
    fn raise(&mut self, cpu: Duration, memory_bytes: u64) {
        self.cpu = self.cpu.max(cpu);
        self.peak_memory_bytes = self.peak_memory_bytes.max(memory_bytes);
    }

    /// A guest that runs out of memory can lose whatever would have settled a promise, and then stalls:
    /// memory is the error to report.
    fn blame_memory(
        &self,
        outcome: Result<ReturnedValue, RunError>,
        limits: &Limits,
    ) -> Result<ReturnedValue, RunError> {
        outcome.map_err(|error| {
            let is_stalled = error.code == ErrorCode::RuntimeStalled;
            let is_over = self.peak_memory_bytes > limits.memory;
            if is_stalled && is_over { out_of_memory(limits) } else { error }
        })
    }
}

/// Why a run ended.
#[derive(Debug)]
pub(crate) enum EndCause {
    /// The guest sent its last event.
    Answered(Event),
    /// The guest's stream ended without an answer.
    Silent,
    /// The guest broke the protocol, like this.
    Malformed(String),
    TooMuchOutput(TooMuchOutput),
    TooManyCalls,
    /// The network of the run went over a limit.
    OverLimit(RunError),
    /// The host holds too much for the run's tool calls.
    BacklogFull(RunError),
    /// The bridge ended the run.
    Stopped(StopReason),
    OutOfTime,
    OutOfCpu,
    OutOfMemory,
    Aborted,
}

impl EndCause {
    /// Whether the guest sent its last event.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Self::Answered(_))
    }
}

/// The measurements of a run while it goes on.
#[derive(Debug, Default)]
struct RunWatch {
    usage: RunUsage,
    ledger: CpuLedger,
    /// Set by the first sample.
    memory: Option<MemoryWatch>,
}

impl RunWatch {
    /// Lets the exchange go on until it ends or something ends it.
    async fn until_end(
        &mut self,
        exchange: impl Future<Output = EndCause>,
        meter: &impl UsageMeter,
        limits: &Limits,
        mut clock: RunClock,
        mut abort: Pin<&mut impl Future<Output = ()>>,
    ) -> EndCause {
        let started = Instant::now();
        let mut exchange = pin!(exchange);
        let mut sample = interval_at(started + SAMPLE_EVERY, SAMPLE_EVERY);
        sample.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // The exchange comes last: a guest that floods it must not hold up the clock.
                biased;
                () = &mut abort => return EndCause::Aborted,
                tick = clock.tick() => match tick {
                    Tick::OutOfTime => return EndCause::OutOfTime,
                    Tick::WaitChanged => {
                        if !clock.advance(meter.sample(&mut self.ledger).usage.cpu) {
                            return EndCause::OutOfTime;
                        }
                    }
                },
                _ = sample.tick() => {
                    if let Some(cause) = self.take_sample(meter, limits, &mut clock) {
                        return cause;
                    }
                }
                verdict = self.exact_measurement() => {
                    if verdict == MemoryVerdict::OverLimit {
                        return EndCause::OutOfMemory;
                    }
                }
                cause = &mut exchange => return cause,
            }
        }
    }

    /// Takes a sample; `Some` says why the run has to end.
    fn take_sample(
        &mut self,
        meter: &impl UsageMeter,
        limits: &Limits,
        clock: &mut RunClock,
    ) -> Option<EndCause> {
        let sample = meter.sample(&mut self.ledger);
        let memory = self.memory.get_or_insert_with(|| {
            MemoryWatch::new(limits.memory, meter.inherited_bytes(), meter.guests())
        });
        let cpu = sample.usage.cpu;
        self.usage.raise(cpu, memory.held_bytes(&sample));
        if !clock.advance(cpu) {
            return Some(EndCause::OutOfTime);
        }
        if memory.check(&sample) == MemoryVerdict::OverLimit {
            return Some(EndCause::OutOfMemory);
        }
        // Unless a request sets it apart, this limit equals wall time. There too the guest, which can say
        // where it was, gets the grace period first.
        (cpu > limits.cpu.saturating_add(GRACE)).then_some(EndCause::OutOfCpu)
    }

    /// The verdict of an exact measurement of memory; pending if none is under way.
    async fn exact_measurement(&mut self) -> MemoryVerdict {
        match &mut self.memory {
            Some(memory) => memory.exact_measurement().await,
            None => std::future::pending().await,
        }
    }
}
