//! The loop of one driver with one workflow, from the claim until it leaves.
//!
//! This file decides when the driver acts; `step.rs` holds what it does then.

mod step;

use std::collections::BTreeMap;

use belljar_contract::WorkflowStatus;
use tokio_util::sync::CancellationToken;

use crate::{
    driver::{
        DriveError, DriveResult, Driver, DriverClock, LeaveReason, Performer, WhenIdle,
        inbox::Inbox,
        result_of,
        round::{Round, read_open},
        tasks::{FinishedTask, RunningTasks},
    },
    effect::{InputKind, OpenIntent, Repeatability, TaskStart, TaskWork},
    machine::{InputRefusal, Machine},
    workflow_store::{
        GiveBack, IntentRow, LoadedWorkflow, QueuedCommand, WorkflowLease, WorkflowStore,
        WorkflowStoreError,
    },
};

/// A snapshot is due after this many inputs; for a large state, after more.
const SNAPSHOT_INPUTS: u64 = 64;
/// For every so many bytes of the last snapshot, one input more.
const SNAPSHOT_BYTES_PER_INPUT: u64 = 1024;
/// Inputs with fewer bytes than this do not make a snapshot due.
const SNAPSHOT_MIN_BYTES: u64 = 16 * 1024;
/// The most inputs in one batch.
const ROUND_INPUTS: usize = 512;

pub(super) struct DriveLoop<'d, S, P, C> {
    driver: &'d Driver<S, P, C>,
    flow: String,
    lease: WorkflowLease,
    /// When the claim lapses, by [`DriverClock::now_ms`].
    lease_until_ms: i64,
    machine: Machine,
    tasks: RunningTasks,
    /// When each timer goes off, by its id.
    timers: BTreeMap<u64, i64>,
    inbox: Inbox,
    since: SinceSnapshot,
    is_stopping: bool,
    /// While the driver resumes a workflow, its effects are dropped: the machine repeats them all
    /// at the end.
    is_resuming: bool,
    /// Tasks the machine wanted to start meanwhile.
    wanted: Vec<TaskStart>,
    commits: u64,
}

/// How much the next driver would have to replay.
#[derive(Debug, Clone, Copy, Default)]
struct SinceSnapshot {
    inputs: u64,
    bytes: u64,
    /// Bytes of the last snapshot.
    size: u64,
}

impl SinceSnapshot {
    fn is_due(self) -> bool {
        self.bytes > self.size.max(SNAPSHOT_MIN_BYTES)
            || self.inputs >= SNAPSHOT_INPUTS + self.size / SNAPSHOT_BYTES_PER_INPUT
    }
}

/// An input that is ready.
enum Arrival {
    Ended(FinishedTask),
    Fired(u64),
    Command(QueuedCommand),
}

/// Why the loop woke up.
enum Wake {
    Arrivals(Vec<Arrival>),
    /// The claim has to be renewed, or a cancelled task is late.
    Time,
    Stop,
}

impl<'d, S, P, C> DriveLoop<'d, S, P, C>
where
    S: WorkflowStore + 'static,
    P: Performer + 'static,
    C: DriverClock,
{
    pub(super) fn new(
        driver: &'d Driver<S, P, C>,
        lease: WorkflowLease,
        lease_until_ms: i64,
        machine: Machine,
        loaded: &LoadedWorkflow,
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
            tasks: RunningTasks::default(),
            timers: BTreeMap::new(),
            inbox: Inbox::open(driver.store.clone(), flow.clone(), last_command),
            flow,
            since: SinceSnapshot { inputs, bytes, size },
            is_stopping: false,
            is_resuming: false,
            wanted: Vec::new(),
            commits: 0,
        }
    }

    /// Drives until there is a reason to leave.
    pub(super) async fn drive(
        &mut self,
        loaded: LoadedWorkflow,
        stop: &CancellationToken,
    ) -> Result<LeaveReason, DriveError> {
        self.is_stopping = stop.is_cancelled();
        self.resume(loaded).await?;
        loop {
            let arrivals = match self.wake(stop).await? {
                Wake::Arrivals(arrivals) => arrivals,
                Wake::Time => {
                    self.renew_if_due().await?;
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
            self.apply_arrivals(arrivals).await?;
        }
    }

    /// Cancels running tasks and gives the workflow back.
    pub(super) async fn leave(
        mut self,
        outcome: Result<LeaveReason, DriveError>,
    ) -> Result<DriveResult, DriveError> {
        match outcome {
            Ok(left) => {
                let rests = matches!(self.driver.options.idle, WhenIdle::Rest { .. });
                let how = match left {
                    LeaveReason::Idle if rests => GiveBack::Resting,
                    LeaveReason::Idle | LeaveReason::Ended | LeaveReason::Stopped => GiveBack::Free,
                };
                match self.driver.store.release(&self.lease, how).await {
                    // Everything is committed: the new owner continues from there.
                    Ok(()) | Err(WorkflowStoreError::Superseded { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                Ok(result_of(&self.machine, left, self.commits))
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
                    // Another host may continue at once, if the store still answers.
                    let _ = self.driver.store.release(&self.lease, GiveBack::Failed).await;
                }
                Err(error)
            }
        }
    }

    /// The first step. A new workflow begins; then waiting commands are applied; then the tasks
    /// under way are resumed. So a task that a command stops is not started.
    async fn resume(&mut self, loaded: LoadedWorkflow) -> Result<(), DriveError> {
        let mut round = self.round();
        let LoadedWorkflow { commands, open, .. } = loaded;
        let is_new = self.machine.status() == WorkflowStatus::New;
        // A resumed machine repeats all its effects. A new workflow without commands need not be
        // resumed.
        self.is_resuming = !is_new || !commands.is_empty();
        if is_new {
            self.apply(&mut round, InputKind::Begin).map_err(|source| self.refused(source))?;
        }
        self.is_resuming &= !self.machine.status().is_over();
        for command in commands {
            round = self.apply_command(round, command).await?;
        }
        if !std::mem::take(&mut self.is_resuming) {
            return self.commit(round, step::Snapshot::IfDue).await;
        }
        if !self.machine.status().is_over() {
            let what = InputKind::Resumed { open: self.under_way(&open)? };
            self.apply(&mut round, what).map_err(|source| self.refused(source))?;
        }
        // Close the old intents: the machine has started again the tasks it wants.
        let at = self.machine.taken();
        let opened = std::mem::take(&mut round.batch.intents);
        open.into_iter().for_each(|row| round.close(row.key, at));
        round.batch.intents.extend(opened);
        self.commit(round, step::Snapshot::IfDue).await
    }

    fn refused(&self, source: InputRefusal) -> DriveError {
        DriveError::Refused { flow: self.flow.clone(), source }
    }

    /// Tasks that had been started, and whether each may be started again. A task without an intent
    /// was not begun: that is how a fork finds the tasks of its parent.
    fn under_way(&self, open: &[IntentRow]) -> Result<Vec<OpenIntent>, DriveError> {
        let open = open.iter().map(|row| read_open(&self.flow, &row.body));
        let mut open: Vec<OpenIntent> = open.collect::<Result<_, _>>()?;
        for (instance, attempt) in self.machine.running() {
            if !open.iter().any(|open| open.instance == instance && open.attempt == attempt) {
                let is_it = |s: &&TaskStart| s.instance == instance && s.attempt == attempt;
                let again = self
                    .wanted
                    .iter()
                    .rfind(is_it)
                    .map_or(Repeatability::NotBegun, repeatability_of);
                open.push(OpenIntent { instance, attempt, again });
            }
        }
        Ok(open)
    }

    /// Waits for the next input, and takes all that are ready.
    async fn wake(&mut self, stop: &CancellationToken) -> Result<Wake, DriveError> {
        let mut arrivals = self.ready()?;
        if stop.is_cancelled() {
            // Outcomes that have arrived are not lost by stopping, and nothing starts any more.
            self.is_stopping = true;
            self.apply_arrivals(arrivals).await?;
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
                None => return Err(inbox_closed(&self.flow)),
            },
            () = self.driver.clock.sleep_until(wake_ms) => return Ok(Wake::Time),
            () = stop.cancelled() => return Ok(Wake::Stop),
        };
        // Tasks that are about to end share the commit.
        tokio::task::yield_now().await;
        arrivals.push(first);
        arrivals.extend(self.ready()?);
        Ok(Wake::Arrivals(arrivals))
    }

    /// All inputs that are ready now, without waiting.
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

    /// Applies inputs to the machine, commits, and performs the effects.
    async fn apply_arrivals(&mut self, arrivals: Vec<Arrival>) -> Result<(), DriveError> {
        let mut round = self.round();
        for arrival in arrivals {
            match arrival {
                Arrival::Ended(FinishedTask { instance, attempt, key, outcome }) => {
                    let next = self.machine.taken() + 1;
                    // The machine refuses an outcome that it no longer waits for.
                    let _ = self.apply(&mut round, InputKind::Ended { instance, attempt, outcome });
                    round.close(key, next);
                }
                Arrival::Fired(timer) => {
                    let _ = self.apply(&mut round, InputKind::Fired { timer });
                }
                Arrival::Command(queued) => round = self.apply_command(round, queued).await?,
            }
        }
        self.commit(round, step::Snapshot::IfDue).await
    }

    /// Stops in an orderly way: running tasks get some time to end, and tasks that would start now
    /// are recorded as not begun.
    async fn stop(&mut self) -> Result<LeaveReason, DriveError> {
        self.is_stopping = true;
        let late = self.now().saturating_add(self.driver.grace_ms());
        while !self.tasks.is_empty() && self.now() < late {
            let wake_ms = late.min(self.next_wake());
            tokio::select! {
                Some(ended) = self.tasks.next() => self.apply_arrivals(vec![Arrival::Ended(ended)]).await?,
                () = self.driver.clock.sleep_until(wake_ms) => self.renew_if_due().await?,
            }
        }
        self.tasks.cancel_all();
        self.tasks.drop_all();
        Ok(LeaveReason::Stopped)
    }

    /// The reason to leave the workflow, if there is one.
    fn reason_to_leave(&self) -> Option<LeaveReason> {
        if !self.tasks.is_empty() {
            return None;
        }
        if self.machine.status().is_over() {
            return Some(LeaveReason::Ended);
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
        leaves.then_some(LeaveReason::Idle)
    }

    /// When the loop has to wake up without an input: for a timer, a renewal or a late task.
    fn next_wake(&self) -> i64 {
        let renewal = self.lease_until_ms.saturating_sub(self.driver.lease_ms() / 3 * 2);
        let timer = self.timers.values().copied().min();
        [timer, self.tasks.next_drop_ms()].into_iter().flatten().fold(renewal, i64::min)
    }

    fn now(&self) -> i64 {
        self.driver.clock.now_ms()
    }

    fn round(&self) -> Round {
        Round::new(self.now(), self.driver.clock.wall_ms())
    }
}

/// Whether a task that is about to start may have been begun by an earlier host; if so, repeating
/// it does no harm.
fn repeatability_of(start: &TaskStart) -> Repeatability {
    let is_code = matches!(start.work, TaskWork::CodeExecution(_));
    let is_harmless = start.idempotent != Some(false) || is_code;
    if start.again && is_harmless { Repeatability::Harmless } else { Repeatability::NotBegun }
}

fn inbox_closed(flow: &str) -> DriveError {
    let reason = format!("fetching the commands of {flow} has stopped");
    DriveError::Store(WorkflowStoreError::Failed(reason.into()))
}
