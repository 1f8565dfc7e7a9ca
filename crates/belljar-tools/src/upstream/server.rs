//! One upstream: connected when it is needed, left alone when it fails, ended when nobody calls it.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    time::{Instant, sleep_until, timeout, timeout_at},
};

use super::{
    answer::ToolAnswer,
    connection::{Connection, Opening},
    error::{Sent, Stage, StartError, UpstreamError},
    known::Known,
    patience::{CallTime, Deadline},
    rate::Rate,
};
use crate::ServerSpec;

/// Longer than a server takes that first has to be downloaded.
const START: Duration = Duration::from_secs(120);
/// How long a server is left alone after its first failure; twice as long after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Who calls waits so long for a pause to end; a longer one is an error.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a call may wait for a place among those the server gets at once. That is no fault of the
/// call, and its own time only begins when it has one.
const TURN: Duration = Duration::from_secs(600);
/// How often a server that nobody calls is asked whether it still answers.
const EXAMINED: Duration = Duration::from_secs(60);

/// An upstream and everything known of it.
pub(super) struct Server {
    pub(super) spec: ServerSpec,
    launcher: PathBuf,
    phase: Mutex<Phase>,
    /// Failures since the last good answer.
    failures: AtomicU32,
    turns: Semaphore,
    rate: Option<Mutex<Rate>>,
    pub(super) known: Known,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("spec", &self.spec).finish_non_exhaustive()
    }
}

type Outcome = Option<Result<(), StartError>>;

/// Whether there is a connection.
enum Phase {
    /// No, and why the last one ended, if it did not end well; not to be tried before a time.
    Down {
        why: String,
        not_before: Instant,
    },
    /// One is being made.
    Starting(watch::Receiver<Outcome>),
    Up(Arc<Connection>),
    /// The host ends: no connection is made again.
    ShutDown,
}

/// What to do to get a connection.
enum Step {
    Use(Lease),
    Wait(watch::Receiver<Outcome>),
    Pause { until: Instant, why: String },
    ShutDown,
}

/// A connection that is in use: it is not ended for being idle.
pub(super) struct Lease {
    pub(super) connection: Arc<Connection>,
    number: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.connection.let_go(self.number);
    }
}

impl Server {
    pub(super) fn new(spec: ServerSpec, launcher: PathBuf, known: Known) -> Self {
        Self {
            launcher,
            phase: Mutex::new(Phase::Down { why: String::new(), not_before: Instant::now() }),
            failures: AtomicU32::new(0),
            turns: Semaphore::new(spec.max_concurrent),
            rate: spec.rate_per_minute.map(|rate| Mutex::new(Rate::new(rate))),
            known,
            spec,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.spec.name()
    }

    /// Calls a tool. A call that certainly did not happen because its connection was lost is made once
    /// more, on a new connection.
    pub(super) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: Map<String, Value>,
        time: CallTime,
    ) -> Result<ToolAnswer, UpstreamError> {
        let _turn = self.turn().await?;
        let deadline = Deadline::of_call(time, self.spec.timeout);
        self.wait_for_rate(deadline.at).await?;
        let lease = self.lease(deadline).await?;
        match lease.connection.call(tool, arguments.clone(), deadline).await {
            Err(UpstreamError::Lost { sent: Sent::No, why, .. }) => {
                // The end of its process may be noticed later: nobody shall get this one again.
                lease.connection.give_up(why);
                drop(lease);
                let lease = self.lease(deadline).await?;
                self.judge(&lease, lease.connection.call(tool, arguments, deadline).await)
            }
            other => self.judge(&lease, other),
        }
    }

    /// An answer, even a bad one, shows that the server works; none in time, that it may not.
    pub(super) fn judge<T>(
        &self,
        lease: &Lease,
        answer: Result<T, UpstreamError>,
    ) -> Result<T, UpstreamError> {
        match &answer {
            Ok(_) | Err(UpstreamError::Refused { .. }) => {
                self.failures.store(0, Ordering::Relaxed);
            }
            Err(UpstreamError::TimedOut { .. }) => lease.connection.examine(),
            Err(_) => {}
        }
        answer
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, UpstreamError> {
        if let Ok(turn) = self.turns.try_acquire() {
            return Ok(turn);
        }
        let deadline = Deadline::in_time(TURN);
        match timeout_at(deadline.at, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) => Err(UpstreamError::ShutDown { server: self.name().to_owned() }),
            Err(_) => Err(deadline.missed(self.name(), Stage::Turn, Sent::No)),
        }
    }

    async fn wait_for_rate(&self, latest: Instant) -> Result<(), UpstreamError> {
        let (Some(rate), Some(per_minute)) = (&self.rate, self.spec.rate_per_minute) else {
            return Ok(());
        };
        let now = Instant::now();
        let at = lock(rate).take(now, latest);
        match at {
            Ok(at) => sleep_until(at).await,
            // There is no point in waiting for a time that comes too late.
            Err(at) => {
                let (server, retry_in) = (self.name().to_owned(), at - now);
                return Err(UpstreamError::RateLimited { server, per_minute, retry_in });
            }
        }
        Ok(())
    }

    /// What somebody waits for who waits for the list of tools.
    pub(super) fn listing_stage(&self) -> Stage {
        match &*lock(&self.phase) {
            Phase::Starting(_) | Phase::Down { .. } => Stage::Start,
            Phase::Up(_) | Phase::ShutDown => Stage::List,
        }
    }

    /// A connection to use: the one there is, or a new one. However many ask, one is made, and it is
    /// made even if all of them stop waiting.
    pub(super) async fn lease(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> Result<Lease, UpstreamError> {
        let late = |stage| deadline.missed(self.name(), stage, Sent::No);
        loop {
            let step = self.step();
            match step {
                Step::Use(lease) if lease.connection.is_suspected() => {
                    let connection = lease.connection.clone();
                    drop(lease);
                    let examined = timeout_at(deadline.at, connection.examined()).await;
                    examined.map_err(|_| late(Stage::Health))?;
                }
                Step::Use(lease) => return Ok(lease),
                Step::ShutDown => {
                    return Err(UpstreamError::ShutDown { server: self.name().to_owned() });
                }
                Step::Pause { until, why } => {
                    let retry_in = until.saturating_duration_since(Instant::now());
                    if retry_in > PATIENCE || until > deadline.at {
                        let server = self.name().to_owned();
                        return Err(UpstreamError::BackingOff { server, retry_in, why });
                    }
                    sleep_until(until).await;
                }
                Step::Wait(mut outcome) => {
                    let outcome = timeout_at(deadline.at, outcome.wait_for(Option::is_some)).await;
                    let outcome = outcome.map_err(|_| late(Stage::Start))?;
                    let outcome = outcome.map_or(Outcome::None, |outcome| outcome.clone());
                    if let Some(Err(error)) = outcome {
                        return Err(error.of(self.name()));
                    }
                }
            }
        }
    }

    fn step(self: &Arc<Self>) -> Step {
        let mut phase = lock(&self.phase);
        if let Phase::Up(connection) = &*phase
            && let Some(why) = connection.stopped()
        {
            let was_good = connection.was_good();
            let ended = connection.clone();
            tokio::spawn(async move { ended.close().await });
            *phase = self.down(why, was_good);
        }
        match &*phase {
            Phase::ShutDown => Step::ShutDown,
            Phase::Up(connection) => {
                // Under the lock: nobody finds it idle in between.
                let number = connection.take();
                Step::Use(Lease { connection: connection.clone(), number })
            }
            Phase::Starting(outcome) => Step::Wait(outcome.clone()),
            Phase::Down { why, not_before } if *not_before > Instant::now() => {
                Step::Pause { until: *not_before, why: why.clone() }
            }
            Phase::Down { .. } => {
                let (tell, outcome) = watch::channel(None);
                *phase = Phase::Starting(outcome.clone());
                tokio::spawn(self.clone().start(tell));
                Step::Wait(outcome)
            }
        }
    }

    /// The phase after a connection was lost or not made.
    fn down(&self, why: String, was_good: bool) -> Phase {
        if was_good {
            return Phase::Down { why, not_before: Instant::now() };
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed);
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(20)).min(LONGEST_PAUSE);
        Phase::Down { why, not_before: Instant::now() + pause }
    }

    async fn start(self: Arc<Self>, tell: watch::Sender<Outcome>) {
        let begun = Instant::now();
        let opened = timeout(START, self.open()).await.unwrap_or_else(|_| {
            Err(StartError::new(format!("it said nothing in {} s", START.as_secs())))
        });
        let (phase, outcome) = match opened {
            Ok(connection) => {
                let version = connection.version();
                tracing::info!(
                    server = self.name(),
                    name = %version.name,
                    version = %version.version,
                    protocol = %version.protocol,
                    milliseconds = begun.elapsed().as_millis(),
                    "connected"
                );
                (Phase::Up(Arc::new(connection)), Ok(()))
            }
            Err(error) => {
                tracing::warn!(server = self.name(), why = %error.why, "not connected");
                (self.down(error.why.clone(), false), Err(error))
            }
        };
        let connection = match &phase {
            Phase::Up(connection) => Some(connection.clone()),
            Phase::Down { .. } | Phase::Starting(_) | Phase::ShutDown => None,
        };
        let was_shut_down = {
            let mut current = lock(&self.phase);
            let was_shut_down = matches!(*current, Phase::ShutDown);
            if !was_shut_down {
                *current = phase;
            }
            was_shut_down
        };
        match connection {
            Some(connection) if was_shut_down => connection.close().await,
            Some(connection) => {
                let watched = Arc::downgrade(&connection);
                tokio::spawn(examine_now_and_then(watched.clone()));
                tokio::spawn(end_when_idle(Arc::downgrade(&self), watched, self.spec.idle));
                self.known.check_again(&self);
            }
            None => {}
        }
        tell.send_replace(Some(outcome));
    }

    async fn open(self: &Arc<Self>) -> Result<Connection, StartError> {
        self.known.read_file().await;
        let mut openings = [Opening::Current, Opening::Initialize];
        // A probe that a server is known not to understand is not made, for some never answer it.
        if self.known.speaks_older_protocol() {
            openings.reverse();
        }
        let [first, second] = openings;
        match self.open_by(first).await {
            Err(error) if error.is_handshake => {
                tracing::debug!(server = self.name(), why = %error.why, "tried another way");
                // The second error says more where the first way is the wrong one.
                self.open_by(second).await
            }
            other => other,
        }
    }

    async fn open_by(self: &Arc<Self>, opening: Opening) -> Result<Connection, StartError> {
        let server = Arc::downgrade(self);
        let tools_changed = Arc::new(move || {
            if let Some(server) = server.upgrade() {
                server.known.has_changed(&server);
            }
        });
        Connection::open(&self.spec, &self.launcher, opening, tools_changed).await
    }

    /// Ends the connection, if there is one, and makes no other.
    pub(super) async fn shut_down(&self) {
        self.turns.close();
        let phase = std::mem::replace(&mut *lock(&self.phase), Phase::ShutDown);
        match phase {
            Phase::Up(connection) => connection.close().await,
            Phase::Starting(mut outcome) => {
                // Whoever starts it closes it; the runtime must not go away before.
                let _ = timeout(Duration::from_secs(5), outcome.wait_for(Option::is_some)).await;
            }
            Phase::Down { .. } | Phase::ShutDown => {}
        }
    }

    /// Takes a connection away that nobody has used for a while.
    fn take_idle(&self, connection: &Arc<Connection>, idle: Duration) -> Result<(), Instant> {
        let mut phase = lock(&self.phase);
        let Phase::Up(current) = &*phase else { return Ok(()) };
        if !Arc::ptr_eq(current, connection) {
            return Ok(());
        }
        let now = Instant::now();
        let due = connection.unused_since().map_or(now + idle, |since| since + idle);
        if due > now {
            return Err(due);
        }
        *phase = Phase::Down { why: String::new(), not_before: Instant::now() };
        Ok(())
    }
}

async fn end_when_idle(server: Weak<Server>, connection: Weak<Connection>, idle: Duration) {
    let mut due = Instant::now() + idle;
    loop {
        sleep_until(due).await;
        let (Some(server), Some(connection)) = (server.upgrade(), connection.upgrade()) else {
            return;
        };
        match server.take_idle(&connection, idle) {
            Err(later) => due = later,
            Ok(()) => {
                tracing::debug!(server = server.name(), "ended, nobody uses it");
                return connection.close().await;
            }
        }
    }
}

/// Finds a server that hangs before somebody waits for it in vain.
async fn examine_now_and_then(connection: Weak<Connection>) {
    loop {
        tokio::time::sleep(EXAMINED).await;
        match connection.upgrade() {
            Some(connection) if connection.stopped().is_none() => {
                if connection.unused_since().is_some() {
                    connection.examine();
                }
            }
            _ => return,
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
