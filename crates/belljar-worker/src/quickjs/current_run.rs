//! The run in progress, as the natives and the engine's handlers see it.
//!
//! Natives are made in the zygote and outlive any run, so they reach the host, the clock and the
//! source through this. Outside a run there is no host and nothing is ever overdue.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    io,
    rc::Rc,
    time::{Duration, Instant},
};

use belljar_wire::{
    Command, Durable, Event, FetchAsk, FetchStep, FetchStepKind, GuestGrants, GuestLimits,
    GuestNetwork, MAX_PIECE_BYTES, ToolCall, ToolReply,
};

use super::{random::Generator, sources::Sources, transpile::NameScope};
use crate::HostLink;

/// Variables that were read and not granted, as many as a hint can name.
const MAX_MISSED_VARIABLES: usize = 8;
const MAX_VARIABLE_BYTES: usize = 64;

/// The inputs of the host that came while the code waited.
#[derive(Debug)]
pub(super) enum HostInput {
    /// The outcome of a tool call.
    Reply(ToolReply),
    /// The reply to a step of a fetch.
    FetchReply(ToolReply, FetchStepKind),
    /// The time that the code waits for has come; only in durable runs.
    Timer,
}

/// Shared by the engine, its natives and its handlers.
#[derive(Debug)]
pub(super) struct CurrentRun {
    host: RefCell<Option<HostLink>>,
    sources: RefCell<Option<Rc<Sources>>>,
    began: Cell<Instant>,
    deadline: Cell<Option<Instant>>,
    overdue: Cell<bool>,
    memory_bytes: Cell<u64>,
    env: RefCell<BTreeMap<String, String>>,
    paths: RefCell<Vec<String>>,
    clock: Cell<Option<DurableClock>>,
    calls: Cell<Calls>,
    network: Cell<GuestNetwork>,
    result_bytes: Cell<u32>,
    fetch_steps: RefCell<BTreeMap<u32, FetchStepKind>>,
    exit: Cell<Option<i32>>,
    missed_variables: RefCell<BTreeSet<String>>,
    arguments: RefCell<Vec<String>>,
    pub(super) random: Generator,
}

/// Tool calls and steps of fetches of a run.
#[derive(Debug, Clone, Copy, Default)]
struct Calls {
    made: u32,
    waiting: u32,
    /// How many of those that wait only read.
    reading: u32,
}

/// Time as a durable run sees it, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct DurableClock {
    began: f64,
    now: f64,
    /// The time at which the host was asked to send a timer.
    wanted: f64,
}

impl CurrentRun {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            host: RefCell::new(None),
            sources: RefCell::new(None),
            began: Cell::new(Instant::now()),
            deadline: Cell::new(None),
            overdue: Cell::new(false),
            memory_bytes: Cell::new(0),
            env: RefCell::default(),
            paths: RefCell::default(),
            clock: Cell::new(None),
            calls: Cell::default(),
            network: Cell::default(),
            result_bytes: Cell::default(),
            fetch_steps: RefCell::default(),
            exit: Cell::new(None),
            missed_variables: RefCell::default(),
            arguments: RefCell::default(),
            random: Generator::default(),
        })
    }

    /// A run begins: the clock starts, and randomness is this cell's own.
    pub(super) fn begin(
        &self,
        host: &HostLink,
        limits: &GuestLimits,
        grants: GuestGrants,
        sources: &Rc<Sources>,
        durable: Option<&Durable>,
    ) -> io::Result<()> {
        match durable.map(|durable| seed_of(&durable.seed)) {
            Some(seed) => self.random.restart(seed.ok_or(io::ErrorKind::InvalidInput)?),
            None => self.random.reseed()?,
        }
        self.clock.set(durable.map(|durable| {
            let now = durable.now_ms;
            DurableClock { began: now, now, wanted: f64::NEG_INFINITY }
        }));
        self.calls.set(Calls::default());
        self.network.set(grants.network);
        self.result_bytes.set(limits.result_bytes);
        self.fetch_steps.take();
        self.exit.set(None);
        self.missed_variables.take();
        self.host.replace(Some(host.clone()));
        self.sources.replace(Some(sources.clone()));
        let now = Instant::now();
        // The clock of a session runs on from its first run.
        if !matches!(sources.current().scope, NameScope::Session { run: 2.. }) {
            self.began.set(now);
        }
        self.deadline.set(now.checked_add(Duration::from_millis(limits.wall_ms)));
        self.overdue.set(false);
        self.memory_bytes.set(limits.memory_bytes);
        self.env.replace(grants.env);
        self.paths.replace(grants.paths);
        Ok(())
    }

    /// The run is over; guest code that still runs has no host.
    pub(super) fn end(&self) {
        self.host.replace(None);
        self.sources.replace(None);
        self.deadline.set(None);
    }

    /// Sends an event. If the host is gone, it ends the cell anyway. Code that has ended itself
    /// has nothing more to say.
    pub(super) fn send(&self, event: &Event) {
        if self.exit.get().is_some() {
            return;
        }
        if let Some(host) = self.host.borrow().as_ref() {
            let _ = host.send(event);
        }
    }

    /// The code ends itself: whatever runs is interrupted as it is at the deadline.
    pub(super) fn exit(&self, status: i32) {
        self.exit.set(Some(status));
    }

    /// The status with which the code has ended itself.
    pub(super) fn exit_status(&self) -> Option<i32> {
        self.exit.get()
    }

    /// The same, once: what the engine does after the code's end is not interrupted.
    pub(super) fn take_exit_status(&self) -> Option<i32> {
        self.exit.take()
    }

    /// The code has read a variable that was not granted.
    pub(super) fn note_missed_variable(&self, name: &str) {
        let mut missed = self.missed_variables.borrow_mut();
        if missed.len() < MAX_MISSED_VARIABLES && name.len() <= MAX_VARIABLE_BYTES {
            missed.insert(name.to_owned());
        }
    }

    /// Variables that the code has read and that were not granted.
    pub(super) fn missed_variables(&self) -> Vec<String> {
        self.missed_variables.borrow().iter().cloned().collect()
    }

    /// The value of a granted environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.env.borrow().get(name).cloned()
    }

    /// The names of all of them.
    pub(super) fn variables(&self) -> Vec<String> {
        self.env.borrow().keys().cloned().collect()
    }

    /// The command-line arguments of the code.
    pub(super) fn arguments(&self) -> Vec<String> {
        self.arguments.borrow().clone()
    }

    /// Sets the arguments of the run that begins.
    pub(super) fn set_arguments(&self, arguments: Vec<String>) {
        self.arguments.replace(arguments);
    }

    /// The granted paths that the host has listed.
    pub(super) fn paths(&self) -> Vec<String> {
        self.paths.borrow().clone()
    }

    /// How much memory the code may use.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.get()
    }

    /// Milliseconds since the run began.
    pub(super) fn elapsed_ms(&self) -> f64 {
        match self.clock.get() {
            Some(clock) => clock.now - clock.began,
            None => self.began.get().elapsed().as_secs_f64() * 1e3,
        }
    }

    /// Whether the run is one that can be replayed.
    pub(super) fn is_durable(&self) -> bool {
        self.clock.get().is_some()
    }

    /// The time on the clock of a durable run.
    pub(super) fn durable_now_ms(&self) -> f64 {
        self.clock.get().map_or(0.0, |clock| clock.now)
    }

    /// The clock of a durable run moves on; never back.
    fn advance(&self, now_ms: f64) {
        let moved = |clock: DurableClock| DurableClock { now: clock.now.max(now_ms), ..clock };
        self.clock.set(self.clock.get().map(moved));
    }

    /// Calls that have not been answered.
    pub(super) fn waiting_calls(&self) -> u32 {
        self.calls.get().waiting
    }

    /// Those of them without whose outcome the run is not over: a body that nobody waits for need not be
    /// read.
    pub(super) fn unfinished_calls(&self) -> u32 {
        let Calls { waiting, reading, .. } = self.calls.get();
        waiting.saturating_sub(reading)
    }

    /// Sends a call and gives its number.
    pub(super) fn call(
        &self,
        server: Option<String>,
        tool: String,
        arguments: Vec<u8>,
        line: Option<u32>,
    ) -> u32 {
        let call = self.next_call();
        self.send(&Event::ToolCall(ToolCall { call, server, tool, line, arguments }));
        call
    }

    fn next_call(&self) -> u32 {
        let Calls { made, waiting, reading } = self.calls.get();
        let (made, waiting) = (made.saturating_add(1), waiting.saturating_add(1));
        self.calls.set(Calls { made, waiting, reading });
        made
    }

    /// Whether there are hosts that code may reach.
    pub(super) fn may_fetch(&self) -> bool {
        self.network.get() != GuestNetwork::None
    }

    /// The most bytes of a body that the host takes in one frame.
    pub(super) fn whole_body_bytes(&self) -> usize {
        self.result_bytes.get().max(MAX_PIECE_BYTES) as usize
    }

    /// Asks for a step of a fetch and gives its number.
    pub(super) fn fetch(&self, step: FetchStep) -> u32 {
        let kind = step.kind();
        let call = self.next_call();
        if kind == FetchStepKind::Read {
            let calls = self.calls.get();
            self.calls.set(Calls { reading: calls.reading.saturating_add(1), ..calls });
        }
        self.fetch_steps.borrow_mut().insert(call, kind);
        self.send(&Event::Fetch(FetchAsk { call, step }));
        call
    }

    /// The code has no use for the rest of a fetch.
    pub(super) fn cancel_fetch(&self, fetch: u32) {
        self.send(&Event::FetchCancelled { fetch });
    }

    /// Whether the host has something to say within this time.
    pub(super) fn has_input_within(&self, time: Duration) -> bool {
        self.host.borrow().as_ref().is_some_and(|host| host.has_input_within(time))
    }

    /// Asks the host to tell when so much time has passed, unless it was asked for that already.
    pub(super) fn want_timer(&self, delay: Duration) {
        let Some(clock) = self.clock.get() else { return };
        let at_ms = clock.now + delay.as_secs_f64() * 1e3;
        if (at_ms - clock.wanted).abs() > f64::EPSILON * at_ms {
            self.clock.set(Some(DurableClock { wanted: at_ms, ..clock }));
            self.send(&Event::TimerWanted { at_ms });
        }
    }

    /// Waits for what the host says next. In a durable run the wait is not on the guest's clock:
    /// a person may take long, and the host keeps the time.
    pub(super) fn receive(&self) -> Option<HostInput> {
        let host = self.host.borrow().clone()?;
        let began = Instant::now();
        let command = host.receive().ok()?;
        if self.is_durable() {
            let shifted = self.deadline.get().and_then(|at| at.checked_add(began.elapsed()));
            self.deadline.set(shifted);
        }
        match command {
            Command::ToolReply(reply) => {
                if let Some(now_ms) = reply.now_ms {
                    self.advance(now_ms);
                }
                let calls = self.calls.get();
                let waiting = calls.waiting.saturating_sub(1);
                let kind = self.fetch_steps.borrow_mut().remove(&reply.call);
                let has_read = kind == Some(FetchStepKind::Read);
                let reading = calls.reading.saturating_sub(u32::from(has_read));
                self.calls.set(Calls { waiting, reading, ..calls });
                Some(match kind {
                    Some(kind) => HostInput::FetchReply(reply, kind),
                    None => HostInput::Reply(reply),
                })
            }
            Command::Timer { now_ms } => {
                self.advance(now_ms);
                Some(HostInput::Timer)
            }
            Command::Run(_) | Command::Branch | Command::Reroot => None,
        }
    }

    /// Time left before the deadline; `None` without one.
    pub(super) fn left(&self) -> Option<Duration> {
        Some(self.deadline.get()?.saturating_duration_since(Instant::now()))
    }

    /// Whether the deadline has passed. Once it has, it stays passed, so that no handler of the
    /// guest's can go on where another one was interrupted.
    pub(super) fn is_overdue(&self) -> bool {
        if !self.overdue.get() && self.left() == Some(Duration::ZERO) {
            self.overdue.set(true);
        }
        self.overdue.get()
    }

    /// Maps positions back to what the agent wrote, while a run lasts.
    pub(super) fn sources(&self) -> Option<Rc<Sources>> {
        self.sources.borrow().clone()
    }
}

fn seed_of(text: &str) -> Option<[u8; 32]> {
    let mut seed = [0; 32];
    let (digits, rest) = text.as_bytes().as_chunks::<2>();
    if digits.len() != seed.len() || !rest.is_empty() {
        return None;
    }
    for (byte, digits) in seed.iter_mut().zip(digits) {
        *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(seed)
}
