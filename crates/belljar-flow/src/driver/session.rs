//! One driver with one workflow, from the claim until it leaves.
//!
//! Here is when it does something; what it does then is in `step.rs`.

mod step;

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use crate::{
    driver::{
        Clock, DriveError, Driven, Driver, Left, Performer, WhenIdle, driven,
        inbox::Inbox,
        round::{Round, read_open},
        tasks::{Ended, Tasks},
    },
    effect::{Again, Open, Start, Status, What, Work},
    engine::{DurableEngine, EngineError, GiveBack, IntentRow, Lease, Loaded, QueuedCommand},
    machine::{Machine, Refusal},
};

/// Inputs after which there is a snapshot, whatever their size; a large state waits for more.
const SNAPSHOT_INPUTS: u64 = 64;
/// For each so many bytes of the last snapshot, one input more.
const SNAPSHOT_BYTES_PER_INPUT: u64 = 1024;
/// Inputs of fewer bytes than this are no reason for one.
const SNAPSHOT_MIN_BYTES: u64 = 16 * 1024;
/// Inputs in one batch.
const ROUND_INPUTS: usize = 512;

pub(super) struct Session<'d, E, P, C> {
    driver: &'d Driver<E, P, C>,
    flow: String,
    lease: Lease,
    /// When the claim lapses, by the driver's own time.
    lease_until_ms: i64,
    machine: Machine,
    tasks: Tasks,
    /// Timers by id: when they go off.
    timers: BTreeMap<u64, i64>,
    inbox: Inbox,
    since: SinceSnapshot,
    is_stopping: bool,
    /// What the machine says is not done yet: it will say all of it again.
    is_taking_up: bool,
    /// What it wanted begun meanwhile.
    wanted: Vec<Start>,
    commits: u64,
}

/// What a snapshot would save the next driver from replaying.
#[derive(Debug, Clone, Copy, Default)]
struct SinceSnapshot {
    inputs: u64,
    bytes: u64,
    /// The size of the last one.
    size: u64,
}

impl SinceSnapshot {
    fn is_due(self) -> bool {
        self.bytes > self.size.max(SNAPSHOT_MIN_BYTES)
            || self.inputs >= SNAPSHOT_INPUTS + self.size / SNAPSHOT_BYTES_PER_INPUT
    }
}

/// Something that is ready.
enum Arrival {
    Ended(Ended),
    Fired(u64),
    Command(QueuedCommand),
}

/// Why a session woke up.
enum Wake {
    Arrivals(Vec<Arrival>),
    /// A claim has to be renewed, or a task that was cancelled is late.
    Time,
    Stop,
}

impl<'d, E, P, C> Session<'d, E, P, C>
where
    E: DurableEngine + 'static,
    P: Performer + 'static,
    C: Clock,
{
    pub(super) fn new(
        driver: &'d Driver<E, P, C>,
        lease: Lease,
        lease_until_ms: i64,
        machine: Machine,
        loaded: &Loaded,
    ) -> Self {
        let flow = lease.workflow_id.clone();
        let last_command = loaded.commands.last().map_or(0, |command| command.seq);
        let bytes = loaded.inputs.iter().map(|row| row.body.len() as u64).sum();
        let (inputs, size) = (loaded.inputs.len() as u64, loaded.snapshot.1.len() as u64);
        Self {
            driver,
            lease,
            lease_until_ms,
            machine,
            tasks: Tasks::default(),
            timers: BTreeMap::new(),
            inbox: Inbox::open(driver.engine.clone(), flow.clone(), last_command),
            flow,
            since: SinceSnapshot { inputs, bytes, size },
            is_stopping: false,
            is_taking_up: false,
            wanted: Vec::new(),
            commits: 0,
        }
    }

    /// Drives until there is a reason to leave.
    pub(super) async fn drive(
        &mut self,
        loaded: Loaded,
        stop: &CancellationToken,
    ) -> Result<Left, DriveError> {
        self.is_stopping = stop.is_cancelled();
        self.pick_up(loaded).await?;
        loop {
            let arrivals = match self.wake(stop).await? {
                Wake::Arrivals(arrivals) => arrivals,
                Wake::Time => {
                    self.keep().await?;
                    continue;
                }
                Wake::Stop => return self.stop().await,
            };
            if arrivals.is_empty() {
                if let Some(left) = self.reason_to_leave() {
                    return Ok(left);
                }
                continue;
            }
            self.take(arrivals).await?;
        }
    }

    /// Ends what is under way and gives the workflow back.
    pub(super) async fn leave(
        mut self,
        outcome: Result<Left, DriveError>,
    ) -> Result<Driven, DriveError> {
        match outcome {
            Ok(left) => {
                let rests = matches!(self.driver.options.idle, WhenIdle::Rest { .. });
                let how = match left {
                    Left::Idle if rests => GiveBack::Resting,
                    Left::Idle | Left::Ended | Left::Stopped => GiveBack::Free,
                };
                match self.driver.engine.release(&self.lease, how).await {
                    // All of it is committed: who has it now goes on from there.
                    Ok(()) | Err(EngineError::Superseded { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                Ok(driven(&self.machine, left, self.commits))
            }
            Err(error) => {
                self.tasks.cancel_all();
                let late = self.now().saturating_add(self.driver.grace_ms());
                while !self.tasks.is_empty() {
                    tokio::select! {
                        _ = self.tasks.next() => {}
                        () = self.driver.clock.sleep_until(late) => {
                            if self.now() >= late {
                                self.tasks.drop_all();
                            }
                        }
                    }
                }
                if !matches!(error, DriveError::Superseded { .. }) {
                    // Another host may go on at once, if the engine still answers.
                    let _ = self.driver.engine.release(&self.lease, GiveBack::Failed).await;
                }
                Err(error)
            }
        }
    }

    /// The first step: the workflow begins if it is new, the commands that waited are taken, and then
    /// what is under way is looked at. So whatever they stop is not started.
    async fn pick_up(&mut self, loaded: Loaded) -> Result<(), DriveError> {
        let mut round = self.round();
        let Loaded { commands, open, .. } = loaded;
        let is_new = self.machine.status() == Status::New;
        // All that is to be done is said by the machine once more when it is resumed. What begins and
        // was sent nothing need not be.
        self.is_taking_up = !is_new || !commands.is_empty();
        if is_new {
            self.apply(&mut round, What::Begin).map_err(|source| self.refused(source))?;
        }
        self.is_taking_up &= !self.machine.status().is_over();
        for command in commands {
            round = self.obey(round, command).await?;
        }
        if !std::mem::take(&mut self.is_taking_up) {
            return self.commit(round, step::Snapshot::IfDue).await;
        }
        if !self.machine.status().is_over() {
            let what = What::Resumed { open: self.under_way(&open)? };
            self.apply(&mut round, what).map_err(|source| self.refused(source))?;
        }
        // What was under way is under way no more: the machine starts again what it wants.
        let at = self.machine.taken();
        let opened = std::mem::take(&mut round.batch.intents);
        open.into_iter().for_each(|row| round.close(row.key, at));
        round.batch.intents.extend(opened);
        self.commit(round, step::Snapshot::IfDue).await
    }

    fn refused(&self, source: Refusal) -> DriveError {
        DriveError::Refused { flow: self.flow.clone(), source }
    }

    /// What had been started, and whether it may be started again. What has no intent was not begun:
    /// a fork finds the tasks of the other so.
    fn under_way(&self, open: &[IntentRow]) -> Result<Vec<Open>, DriveError> {
        let open = open.iter().map(|row| read_open(&self.flow, &row.body));
        let mut open: Vec<Open> = open.collect::<Result<_, _>>()?;
        for (instance, attempt) in self.machine.running() {
            if !open.iter().any(|open| open.instance == instance && open.attempt == attempt) {
                let is_it = |s: &&Start| s.instance == instance && s.attempt == attempt;
                let again = self.wanted.iter().rfind(is_it).map_or(Again::NotBegun, known_before);
                open.push(Open { instance, attempt, again });
            }
        }
        Ok(open)
    }

    /// Waits until something is ready, and takes all that is.
    async fn wake(&mut self, stop: &CancellationToken) -> Result<Wake, DriveError> {
        let mut arrivals = self.ready()?;
        if stop.is_cancelled() {
            // What has ended already is not lost by stopping, and nothing starts any more.
            self.is_stopping = true;
            self.take(arrivals).await?;
            return Ok(Wake::Stop);
        }
        if !arrivals.is_empty() || self.reason_to_leave().is_some() {
            return Ok(Wake::Arrivals(arrivals));
        }
        let wake_ms = self.next_wake();
        let first = tokio::select! {
            Some(ended) = self.tasks.next() => Arrival::Ended(ended),
            command = self.inbox.next() => match command {
                Some(command) => Arrival::Command(command?),
                None => return Err(gone(&self.flow)),
            },
            () = self.driver.clock.sleep_until(wake_ms) => return Ok(Wake::Time),
            () = stop.cancelled() => return Ok(Wake::Stop),
        };
        // Others that are about to end share the commit.
        tokio::task::yield_now().await;
        arrivals.push(first);
        arrivals.extend(self.ready()?);
        Ok(Wake::Arrivals(arrivals))
    }

    /// All that is ready now, without waiting.
    fn ready(&mut self) -> Result<Vec<Arrival>, DriveError> {
        let mut arrivals = Vec::new();
        while arrivals.len() < ROUND_INPUTS
            && let Some(ended) = self.tasks.try_next()
        {
            arrivals.push(Arrival::Ended(ended));
        }
        let now_ms = self.now();
        let mut due: Vec<(i64, u64)> = self
            .timers
            .iter()
            .filter(|(_, at_ms)| **at_ms <= now_ms)
            .map(|(timer, at_ms)| (*at_ms, *timer))
            .collect();
        due.sort_unstable();
        for (_, timer) in due {
            self.timers.remove(&timer);
            arrivals.push(Arrival::Fired(timer));
        }
        while arrivals.len() < ROUND_INPUTS
            && let Some(command) = self.inbox.try_next()
        {
            arrivals.push(Arrival::Command(command?));
        }
        Ok(arrivals)
    }

    /// Gives the machine what has arrived, commits, performs.
    async fn take(&mut self, arrivals: Vec<Arrival>) -> Result<(), DriveError> {
        let mut round = self.round();
        for arrival in arrivals {
            match arrival {
                Arrival::Ended(Ended { instance, attempt, key, outcome }) => {
                    let next = self.machine.taken() + 1;
                    // A machine that waits for it no more has nothing to say to it.
                    let _ = self.apply(&mut round, What::Ended { instance, attempt, outcome });
                    round.close(key, next);
                }
                Arrival::Fired(timer) => {
                    let _ = self.apply(&mut round, What::Fired { timer });
                }
                Arrival::Command(queued) => round = self.obey(round, queued).await?,
            }
        }
        self.commit(round, step::Snapshot::IfDue).await
    }

    /// Stops in good order: tasks get a little time to end, and what would start now is noted as
    /// not begun.
    async fn stop(&mut self) -> Result<Left, DriveError> {
        self.is_stopping = true;
        let late = self.now().saturating_add(self.driver.grace_ms());
        while !self.tasks.is_empty() && self.now() < late {
            let wake_ms = late.min(self.next_wake());
            tokio::select! {
                Some(ended) = self.tasks.next() => self.take(vec![Arrival::Ended(ended)]).await?,
                () = self.driver.clock.sleep_until(wake_ms) => self.keep().await?,
            }
        }
        self.tasks.cancel_all();
        self.tasks.drop_all();
        Ok(Left::Stopped)
    }

    /// Why there is nothing more to do here.
    fn reason_to_leave(&self) -> Option<Left> {
        if !self.tasks.is_empty() {
            return None;
        }
        if self.machine.status().is_over() {
            return Some(Left::Ended);
        }
        let leaves = match self.driver.options.idle {
            WhenIdle::Stay => false,
            WhenIdle::Leave => self.timers.is_empty(),
            WhenIdle::Rest { at_least_ms } => {
                let until = self.now().saturating_add_unsigned(at_least_ms);
                let is_far = self.timers.values().all(|at_ms| *at_ms > until);
                is_far && !self.driver.performer.keeps(&self.flow)
            }
        };
        leaves.then_some(Left::Idle)
    }

    /// When time alone is a reason to wake up: a timer, a renewal, a task that is late.
    fn next_wake(&self) -> i64 {
        let renewal = self.lease_until_ms.saturating_sub(self.driver.lease_ms() / 3 * 2);
        let timer = self.timers.values().copied().min();
        [timer, self.tasks.patience_ends()].into_iter().flatten().fold(renewal, i64::min)
    }

    fn now(&self) -> i64 {
        self.driver.clock.now_ms()
    }

    fn round(&self) -> Round {
        Round::new(self.now(), self.driver.clock.wall_ms())
    }
}

/// What is known of something that is wanted: a host before this one may have begun it, and then it
/// does no harm to begin it again.
fn known_before(start: &Start) -> Again {
    let is_code = matches!(start.work, Work::CodeExecution(_));
    let is_harmless = start.idempotent != Some(false) || is_code;
    if start.again && is_harmless { Again::Harmless } else { Again::NotBegun }
}

fn gone(flow: &str) -> DriveError {
    let reason = format!("nobody fetches the commands of {flow}");
    DriveError::Engine(EngineError::Failed(reason.into()))
}
