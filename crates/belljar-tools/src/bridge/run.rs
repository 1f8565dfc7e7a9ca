//! A run's tool calls: plain, or with a journal from which the run can be replayed.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use belljar_contract::ErrorCode;
use belljar_store::{Lease, Store};
use belljar_wire::{FetchAsk, GuestAsk, GuestInput, StopReason, ToolCall, ToolFault, ToolReply};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
};

use super::{
    Bridge, RunContext, built_in,
    call::OpenGate,
    doubts::Doubts,
    durable_call::{DurableCall, JournalGate},
    fetch::{self, DurableFetch, FetchPort},
    sequence::{GuestClock, InputArrival, Sequencer},
};
use crate::{
    ToolValue,
    arguments::{CallArguments, ReadArguments},
    record::{JournalEntry, UnreadableRow},
    replay::{Divergence, RecordedInput, Replay, ReplayStep},
};

/// Takes everything that reaches the code or ends its run.
pub(super) type Sink = Arc<dyn Fn(GuestInput) + Send + Sync>;

/// The bridge of one run. Dropping it abandons its calls.
pub struct RunBridge {
    bridge: Bridge,
    run: Arc<RunContext>,
    out: Sink,
    waiting: Arc<AtomicU32>,
    calls: JoinSet<()>,
    fetches: Option<RunFetches>,
    durable: Option<DurableState>,
    /// The code is not the recorded one: its requests are ignored.
    has_diverged: bool,
}

impl fmt::Debug for RunBridge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunBridge").field("run", &self.run.run_id).finish_non_exhaustive()
    }
}

/// The fetches of a durable run.
struct RunFetches {
    port: Arc<dyn FetchPort>,
    /// Those under way, by number; true cancels one.
    open: BTreeMap<u32, watch::Sender<bool>>,
    held: Arc<AtomicUsize>,
}

struct DurableState {
    store: Store,
    lease: Lease,
    replay: Replay,
    wanted: Option<f64>,
    timer: Option<AbortHandle>,
    clock: GuestClock,
    doubts: Doubts,
    arrivals: mpsc::UnboundedSender<InputArrival>,
    /// Becomes true when the whole journal has been replayed.
    is_live: watch::Sender<bool>,
}

impl RunBridge {
    /// A bridge for a run that leaves no journal.
    pub fn plain(
        bridge: &Bridge,
        run: RunContext,
        out: impl Fn(GuestInput) + Send + Sync + 'static,
    ) -> Self {
        Self {
            bridge: bridge.clone(),
            run: Arc::new(run),
            out: Arc::new(out),
            waiting: Arc::default(),
            calls: JoinSet::new(),
            fetches: None,
            durable: None,
            has_diverged: false,
        }
    }

    /// A bridge for a durable run, new or resumed, whose clock starts at `began_ms`.
    pub async fn durable(
        bridge: &Bridge,
        run: RunContext,
        (store, lease): (Store, Lease),
        began_ms: f64,
        out: impl Fn(GuestInput) + Send + Sync + 'static,
    ) -> Result<Self, JournalError> {
        let rows = store.journal(&lease.run_id).await?;
        let entries = rows.into_iter().map(|(_, row)| JournalEntry::from_row(row));
        let replay = Replay::new(entries.collect::<Result<Vec<_>, _>>()?);
        let mut this = Self::plain(bridge, run, out);
        let (arrivals, arrived) = mpsc::unbounded_channel();
        let (is_live, live) = watch::channel(replay.is_over());
        let last_ms = replay.last_now_ms().unwrap_or(began_ms).max(began_ms);
        let clock = GuestClock::new(bridge.config.now_ms, last_ms);
        let sequencer = Sequencer {
            store: store.clone(),
            lease: lease.clone(),
            out: this.out.clone(),
            clock: clock.clone(),
        };
        this.calls.spawn(sequencer.run(arrived, live));
        this.durable = Some(DurableState {
            store,
            lease,
            wanted: None,
            timer: None,
            clock,
            doubts: Doubts::new(replay.doubts()),
            replay,
            arrivals,
            is_live,
        });
        Ok(this)
    }

    /// The same bridge for a run whose code may also fetch.
    #[must_use]
    pub fn with_fetches(mut self, port: Arc<dyn FetchPort>) -> Self {
        self.fetches = Some(RunFetches { port, open: BTreeMap::new(), held: Arc::default() });
        self
    }

    /// Takes a request of the code.
    pub fn ask(&mut self, ask: GuestAsk) {
        // Drop the tasks of finished calls.
        while self.calls.try_join_next().is_some() {}
        if self.has_diverged {
            return;
        }
        match ask {
            GuestAsk::Call(call) => {
                let CallArguments { text: arguments, read } = CallArguments::parse(call.arguments);
                let call = ToolCall { arguments, ..call };
                match self.durable {
                    Some(_) => self.start_durable(call, read),
                    None => self.start_plain(call, read),
                }
            }
            GuestAsk::Fetch(ask) => self.start_fetch(ask),
            GuestAsk::FetchCancelled(fetch) => {
                if let Some(cancel) = self.fetches.as_mut().and_then(|it| it.open.remove(&fetch)) {
                    cancel.send_replace(true);
                }
            }
            GuestAsk::Timer(at_ms) => {
                if let Some(durable) = &mut self.durable {
                    durable.replay.want_timer();
                    durable.wanted = Some(at_ms);
                }
                self.advance();
            }
        }
    }

    /// To be called when the code has ended: fails if it left out a recorded call.
    pub fn finish(&self) -> Result<(), ToolFault> {
        let not_asked = self.durable.as_ref().and_then(|durable| durable.replay.not_asked());
        not_asked.map_or(Ok(()), |diverged| Err(describe(&diverged)))
    }

    fn start_plain(&mut self, call: ToolCall, arguments: ReadArguments) {
        let (bridge, run, out) = (self.bridge.clone(), self.run.clone(), self.out.clone());
        let gate = OpenGate::new(&self.bridge, self.waits());
        let mut making = Box::pin(async move {
            let outcome = if call.server.as_deref() == Some(built_in::SERVER) {
                bridge.built_in(&run, &call, arguments).await
            } else {
                bridge.perform(&run, &call, arguments, &gate).await
            };
            let outcome = outcome.map(ToolValue::into_json).map_err(|fault| fault.to_json());
            out(GuestInput::Reply(ToolReply { call: call.call, now_ms: None, outcome }));
        });
        // A local tool often answers at once, and then needs no task. Otherwise the task polls it again.
        let mut at_once = Context::from_waker(Waker::noop());
        if making.as_mut().poll(&mut at_once).is_pending() {
            self.calls.spawn(making);
        }
    }

    /// Starts a fetch of a durable run, or finds it in the journal.
    fn start_fetch(&mut self, ask: FetchAsk) {
        let number = ask.call;
        let Some(request) = fetch::request_of(ask) else {
            let message = "the code of a durable run must send and take bodies whole";
            let fault = ToolFault::new(ErrorCode::FetchFailed, message);
            (self.out)(GuestInput::Stop(StopReason::Diverged(fault)));
            return;
        };
        let call = fetch::recorded(number, &request);
        let Some(step) = self.replayed(&call) else { return };
        let (cancel, is_cancelled) = watch::channel(false);
        if let (Some(durable), Some(fetches)) = (&self.durable, &self.fetches)
            && step != ReplayStep::Recorded
        {
            let task = DurableFetch {
                bridge: self.bridge.clone(),
                run: self.run.clone(),
                out: self.out.clone(),
                doubts: durable.doubts.clone(),
                gate: self.journal_gate(durable, &call, step),
                port: fetches.port.clone(),
                is_cancelled,
                held: fetches.held.clone(),
            };
            self.calls.spawn(task.make((call, request), step, durable.arrivals.clone()));
        }
        if let Some(fetches) = &mut self.fetches {
            fetches.open.retain(|_, cancel| !cancel.is_closed());
            fetches.open.insert(number, cancel);
        }
        self.advance();
    }

    /// The journal's step for a call; `None` if the code is not the recorded one, or nothing is recorded.
    fn replayed(&mut self, call: &ToolCall) -> Option<ReplayStep> {
        match self.durable.as_mut()?.replay.ask(call) {
            Ok(step) => Some(step),
            Err(diverged) => {
                self.has_diverged = true;
                (self.out)(GuestInput::Stop(StopReason::Diverged(describe(&diverged))));
                None
            }
        }
    }

    /// Starts a call of a durable run, or finds it in the journal.
    pub(super) fn start_durable(&mut self, call: ToolCall, arguments: ReadArguments) {
        let Some(step) = self.replayed(&call) else { return };
        let Some(durable) = &self.durable else { return };
        if step != ReplayStep::Recorded {
            let (doubts, arrivals) = (durable.doubts.clone(), durable.arrivals.clone());
            let gate = self.journal_gate(durable, &call, step);
            let out = self.out.clone();
            let (bridge, run) = (self.bridge.clone(), self.run.clone());
            let task = DurableCall { bridge, run, out, doubts, gate };
            self.calls.spawn(task.make(call, arguments, step, arrivals));
        }
        self.advance();
    }

    fn journal_gate(
        &self,
        durable: &DurableState,
        call: &ToolCall,
        step: ReplayStep,
    ) -> JournalGate {
        let journal = (durable.store.clone(), durable.lease.clone());
        let (now_ms, out) = (self.bridge.config.now_ms, self.out.clone());
        JournalGate::new(call, step, journal, now_ms, out, self.waits())
    }

    /// Delivers recorded inputs that the code has asked for; after the last one, timers are real.
    fn advance(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        while let Some(input) = durable.replay.next_input() {
            (self.out)(match input {
                RecordedInput::Ended(ended) => GuestInput::Reply(ToolReply {
                    call: ended.call,
                    now_ms: Some(ended.now_ms),
                    outcome: ended.outcome,
                }),
                RecordedInput::Timer { now_ms } => {
                    durable.wanted = None;
                    GuestInput::Timer { now_ms }
                }
            });
        }
        if !durable.replay.is_over() {
            return;
        }
        durable.is_live.send_replace(true);
        let Some(at_ms) = durable.wanted.take() else { return };
        if let Some(earlier) = durable.timer.take() {
            earlier.abort();
        }
        // By the code's clock: the machine's clock may have been set back since.
        let left_ms = (at_ms - durable.clock.now_ms()).max(0.0);
        let left = Duration::try_from_secs_f64(left_ms / 1e3).unwrap_or(Duration::MAX);
        let arrivals = durable.arrivals.clone();
        durable.timer = Some(self.calls.spawn(async move {
            tokio::time::sleep(left).await;
            let _ = arrivals.send(InputArrival::Timer { at_ms });
        }));
    }

    /// Reports when the first call begins to wait for a person, and when the last one stops.
    fn waits(&self) -> impl Fn(bool) + Send + Sync + 'static {
        let (waiting, out) = (self.waiting.clone(), self.out.clone());
        move |begins| {
            let changed = match begins {
                true => waiting.fetch_add(1, Ordering::SeqCst) == 0,
                false => waiting.fetch_sub(1, Ordering::SeqCst) == 1,
            };
            if changed {
                out(GuestInput::WaitsForPerson(begins));
            }
        }
    }
}

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The journal could not be read from the store.
    #[error(transparent)]
    Store(#[from] belljar_store::StoreError),
    /// The journal is of another version, or damaged.
    #[error(transparent)]
    Row(#[from] UnreadableRow),
}

fn describe(diverged: &Divergence) -> ToolFault {
    let Divergence { call, before, now } = diverged;
    let message = format!("call {call} was {before} in the recorded run, but is {now} now");
    ToolFault::new(ErrorCode::ReplayDiverged, message)
        .with_hint("a run can only be resumed with the code it was started with")
}
