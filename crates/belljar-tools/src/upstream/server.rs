//! One upstream: connected on demand, retried with growing delays, ended when idle.

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
    connection::{Handshake, UpstreamConnection},
    deadline::{CallTime, Deadline},
    error::{StartError, UpstreamError, WaitStage, WasSent},
    rate::CallRate,
    tool_cache::ServerToolCache,
};
use crate::ServerSpec;

/// Enough for a server that has to be downloaded first.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The delay after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A call waits this long for a retry delay to end; a longer delay is an error.
const LONGEST_WAIT_FOR_PAUSE: Duration = Duration::from_secs(1);
/// How long a call may wait for a free place among the parallel calls. The call's own time starts
/// after that.
const TURN_TIMEOUT: Duration = Duration::from_secs(600);
/// How often an idle server is asked whether it still answers.
const HEALTH_INTERVAL: Duration = Duration::from_secs(60);

/// An upstream: its configuration, its connection and its cached tools.
pub(super) struct Server {
    pub(super) spec: ServerSpec,
    launcher: PathBuf,
    phase: Mutex<ConnectionPhase>,
    /// Failures since the last good answer.
    failures: AtomicU32,
    turns: Semaphore,
    rate: Option<Mutex<CallRate>>,
    pub(super) tool_cache: ServerToolCache,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("spec", &self.spec).finish_non_exhaustive()
    }
}

type StartOutcome = Option<Result<(), StartError>>;

/// Whether there is a connection.
enum ConnectionPhase {
    /// There is none: why the last one ended, and when a new one may be tried.
    Down {
        why: String,
        not_before: Instant,
    },
    /// One is being made.
    Starting(watch::Receiver<StartOutcome>),
    Up(Arc<UpstreamConnection>),
    /// The host ends: no connection is made again.
    ShutDown,
}

/// How to get a connection.
enum NextStep {
    Use(ConnectionLease),
    Wait(watch::Receiver<StartOutcome>),
    Pause { until: Instant, why: String },
    ShutDown,
}

/// A connection that is in use: it is not ended for being idle.
pub(super) struct ConnectionLease {
    pub(super) connection: Arc<UpstreamConnection>,
    number: u64,
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        self.connection.let_go(self.number);
    }
}

impl Server {
    pub(super) fn new(spec: ServerSpec, launcher: PathBuf, tool_cache: ServerToolCache) -> Self {
        Self {
            launcher,
            phase: Mutex::new(ConnectionPhase::Down {
                why: String::new(),
                not_before: Instant::now(),
            }),
            failures: AtomicU32::new(0),
            turns: Semaphore::new(spec.max_concurrent),
            rate: spec.rate_per_minute.map(|rate| Mutex::new(CallRate::new(rate))),
            tool_cache,
            spec,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.spec.name()
    }

    /// Calls a tool. If the connection was lost before the call was sent, it is sent once more on a new
    /// connection.
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
            Err(UpstreamError::Lost { sent: WasSent::No, why, .. }) => {
                // The end of the process may not be noticed yet: this connection must not be used again.
                lease.connection.give_up(why);
                drop(lease);
                let lease = self.lease(deadline).await?;
                self.judge(&lease, lease.connection.call(tool, arguments, deadline).await)
            }
            other => self.judge(&lease, other),
        }
    }

    /// Any answer resets the failure count; a timeout starts a health check.
    pub(super) fn judge<T>(
        &self,
        lease: &ConnectionLease,
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
        let deadline = Deadline::in_time(TURN_TIMEOUT);
        match timeout_at(deadline.at, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) => Err(UpstreamError::ShutDown { server: self.name().to_owned() }),
            Err(_) => Err(deadline.missed(self.name(), WaitStage::Turn, WasSent::No)),
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
            // Waiting longer than the deadline is pointless.
            Err(at) => {
                let (server, retry_in) = (self.name().to_owned(), at - now);
                return Err(UpstreamError::RateLimited { server, per_minute, retry_in });
            }
        }
        Ok(())
    }

    /// The event that a caller of the list of tools waits for.
    pub(super) fn listing_stage(&self) -> WaitStage {
        match &*lock(&self.phase) {
            ConnectionPhase::Starting(_) | ConnectionPhase::Down { .. } => WaitStage::Start,
            ConnectionPhase::Up(_) | ConnectionPhase::ShutDown => WaitStage::List,
        }
    }

    /// The current connection or a new one. Concurrent callers share one attempt, which continues even if
    /// all of them stop waiting.
    pub(super) async fn lease(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> Result<ConnectionLease, UpstreamError> {
        let late = |stage| deadline.missed(self.name(), stage, WasSent::No);
        loop {
            let step = self.step();
            match step {
                NextStep::Use(lease) if lease.connection.is_suspected() => {
                    let connection = lease.connection.clone();
                    drop(lease);
                    let examined = timeout_at(deadline.at, connection.examined()).await;
                    examined.map_err(|_| late(WaitStage::Health))?;
                }
                NextStep::Use(lease) => return Ok(lease),
                NextStep::ShutDown => {
                    return Err(UpstreamError::ShutDown { server: self.name().to_owned() });
                }
                NextStep::Pause { until, why } => {
                    let retry_in = until.saturating_duration_since(Instant::now());
                    if retry_in > LONGEST_WAIT_FOR_PAUSE || until > deadline.at {
                        let server = self.name().to_owned();
                        return Err(UpstreamError::BackingOff { server, retry_in, why });
                    }
                    sleep_until(until).await;
                }
                NextStep::Wait(mut outcome) => {
                    let outcome = timeout_at(deadline.at, outcome.wait_for(Option::is_some)).await;
                    let outcome = outcome.map_err(|_| late(WaitStage::Start))?;
                    let outcome = outcome.map_or(StartOutcome::None, |outcome| outcome.clone());
                    if let Some(Err(error)) = outcome {
                        return Err(error.of(self.name()));
                    }
                }
            }
        }
    }

    fn step(self: &Arc<Self>) -> NextStep {
        let mut phase = lock(&self.phase);
        if let ConnectionPhase::Up(connection) = &*phase
            && let Some(why) = connection.stopped()
        {
            let was_good = connection.was_good();
            let ended = connection.clone();
            tokio::spawn(async move { ended.close().await });
            *phase = self.down(why, was_good);
        }
        match &*phase {
            ConnectionPhase::ShutDown => NextStep::ShutDown,
            ConnectionPhase::Up(connection) => {
                // Under the lock, so that it is not found idle in between.
                let number = connection.take();
                NextStep::Use(ConnectionLease { connection: connection.clone(), number })
            }
            ConnectionPhase::Starting(outcome) => NextStep::Wait(outcome.clone()),
            ConnectionPhase::Down { why, not_before } if *not_before > Instant::now() => {
                NextStep::Pause { until: *not_before, why: why.clone() }
            }
            ConnectionPhase::Down { .. } => {
                let (tell, outcome) = watch::channel(None);
                *phase = ConnectionPhase::Starting(outcome.clone());
                tokio::spawn(self.clone().start(tell));
                NextStep::Wait(outcome)
            }
        }
    }

    /// The phase after a connection was lost or not made.
    fn down(&self, why: String, was_good: bool) -> ConnectionPhase {
        if was_good {
            return ConnectionPhase::Down { why, not_before: Instant::now() };
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed);
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(20)).min(LONGEST_PAUSE);
        ConnectionPhase::Down { why, not_before: Instant::now() + pause }
    }

    async fn start(self: Arc<Self>, tell: watch::Sender<StartOutcome>) {
        let begun = Instant::now();
        let opened = timeout(START_TIMEOUT, self.open()).await.unwrap_or_else(|_| {
            let why = format!("it did not answer within {} s", START_TIMEOUT.as_secs());
            Err(StartError::new(why).with_hint(
                "start it by hand to see what it does: a server speaks MCP on its standard streams",
            ))
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
                (ConnectionPhase::Up(Arc::new(connection)), Ok(()))
            }
            Err(error) => {
                tracing::warn!(server = self.name(), why = %error.why, "not connected");
                (self.down(error.why.clone(), false), Err(error))
            }
        };
        let connection = match &phase {
            ConnectionPhase::Up(connection) => Some(connection.clone()),
            ConnectionPhase::Down { .. }
            | ConnectionPhase::Starting(_)
            | ConnectionPhase::ShutDown => None,
        };
        let was_shut_down = {
            let mut current = lock(&self.phase);
            let was_shut_down = matches!(*current, ConnectionPhase::ShutDown);
            if !was_shut_down {
                *current = phase;
            }
            was_shut_down
        };
        match connection {
            Some(connection) if was_shut_down => connection.close().await,
            Some(connection) => {
                let watched = Arc::downgrade(&connection);
                tokio::spawn(check_health_periodically(watched.clone()));
                tokio::spawn(end_when_idle(Arc::downgrade(&self), watched, self.spec.idle));
                self.tool_cache.check_again(&self);
            }
            None => {}
        }
        tell.send_replace(Some(outcome));
    }

    async fn open(self: &Arc<Self>) -> Result<UpstreamConnection, StartError> {
        self.tool_cache.read_file().await;
        let mut openings = [Handshake::Current, Handshake::Initialize];
        // Some servers never answer a handshake they do not understand, so the known one comes first.
        if self.tool_cache.speaks_older_protocol() {
            openings.reverse();
        }
        let [first, second] = openings;
        match self.open_by(first).await {
            Err(error) if error.is_handshake => {
                tracing::debug!(server = self.name(), why = %error.why, "handshake failed; trying the other one");
                // If the first handshake is the wrong one, the second error says more.
                self.open_by(second).await
            }
            other => other,
        }
    }

    async fn open_by(
        self: &Arc<Self>,
        opening: Handshake,
    ) -> Result<UpstreamConnection, StartError> {
        let server = Arc::downgrade(self);
        let tools_changed = Arc::new(move || {
            if let Some(server) = server.upgrade() {
                server.tool_cache.has_changed(&server);
            }
        });
        UpstreamConnection::open(&self.spec, &self.launcher, opening, tools_changed).await
    }

    /// Ends the connection, if there is one, and makes no other.
    pub(super) async fn shut_down(&self) {
        self.turns.close();
        let phase = std::mem::replace(&mut *lock(&self.phase), ConnectionPhase::ShutDown);
        match phase {
            ConnectionPhase::Up(connection) => connection.close().await,
            ConnectionPhase::Starting(mut outcome) => {
                // The starting task closes it; the runtime must not end before that.
                let _ = timeout(Duration::from_secs(5), outcome.wait_for(Option::is_some)).await;
            }
            ConnectionPhase::Down { .. } | ConnectionPhase::ShutDown => {}
        }
    }

    /// Removes a connection that has been idle for long enough; else returns when to check again.
    fn take_idle(
        &self,
        connection: &Arc<UpstreamConnection>,
        idle: Duration,
    ) -> Result<(), Instant> {
        let mut phase = lock(&self.phase);
        let ConnectionPhase::Up(current) = &*phase else { return Ok(()) };
        if !Arc::ptr_eq(current, connection) {
            return Ok(());
        }
        let now = Instant::now();
        let due = connection.unused_since().map_or(now + idle, |since| since + idle);
        if due > now {
            return Err(due);
        }
        *phase = ConnectionPhase::Down { why: String::new(), not_before: Instant::now() };
        Ok(())
    }
}

async fn end_when_idle(server: Weak<Server>, connection: Weak<UpstreamConnection>, idle: Duration) {
    let mut due = Instant::now() + idle;
    loop {
        sleep_until(due).await;
        let (Some(server), Some(connection)) = (server.upgrade(), connection.upgrade()) else {
            return;
        };
        match server.take_idle(&connection, idle) {
            Err(later) => due = later,
            Ok(()) => {
                tracing::debug!(server = server.name(), "ended: idle");
                return connection.close().await;
            }
        }
    }
}

/// Finds a server that hangs before a call has to wait for it.
async fn check_health_periodically(connection: Weak<UpstreamConnection>) {
    loop {
        tokio::time::sleep(HEALTH_INTERVAL).await;
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
