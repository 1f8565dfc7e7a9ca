//! The driver of a workflow: claims it, rebuilds its machine, and performs what the machine wants.
//!
//! Every step has the same order: the driver gives ready inputs to the machine, commits the
//! machine's answer as one batch, and only then performs it. Whatever ends the driver, the next one
//! finds either nothing of a step or all of it. A failed commit ends the driver: it performs
//! nothing that is not durable.

mod clock;
mod drive_loop;
mod inbox;
mod performer;
mod replay;
mod round;
mod tasks;

use std::sync::Arc;

use belljar_contract::JsonValue;
use belljar_contract::WorkflowStatus;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{
    effect::TaskFailure,
    machine::{InputRefusal, Machine},
    workflow_store::{
        ClaimReason, GiveBack, LeaseRequest, LoadedWorkflow, WorkflowLease, WorkflowStore,
        WorkflowStoreError,
    },
};

use drive_loop::DriveLoop;

pub use clock::{DriverClock, SystemClock};
pub use performer::{CommitPoint, Job, Performer};
pub(crate) use replay::rebuild;
pub(crate) use round::encode;

/// Settings of a driver.
#[derive(Debug, Clone)]
pub struct DriverOptions {
    /// The name under which it claims workflows, unique among all hosts that share the store.
    pub owner: String,
    /// How long one claim lasts. The driver renews it while it lives.
    pub lease_ms: u64,
    /// Whether the driver takes workflows from hosts whose claim is still valid.
    pub take_over: bool,
    /// The behaviour of the driver when nothing runs and only a command can change that.
    pub idle: WhenIdle,
    /// Whether a caller asked for the workflow, or the host found it unattended.
    pub why: ClaimReason,
    /// How long a cancelled task may take to end before it is dropped, and how long a stopped
    /// driver waits for its tasks.
    pub grace_ms: u64,
}

impl DriverOptions {
    /// The defaults, for this owner.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            lease_ms: 30_000,
            take_over: false,
            idle: WhenIdle::Stay,
            why: ClaimReason::Asked,
            grace_ms: 2_000,
        }
    }
}

/// The behaviour of a driver when only a command can change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenIdle {
    /// Wait for the command.
    Stay,
    /// Give the workflow back; a command makes it due again.
    Leave,
    /// Give the workflow back, also while its next timer is at least this far away; the host
    /// resumes it in time. Not while the performer holds something in memory for it:
    /// [`Performer::keeps`].
    Rest {
        /// The driver waits for timers that are nearer than this.
        at_least_ms: u64,
    },
}

/// How driving ended without an error.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveResult {
    /// Why the driver left the workflow.
    pub reason: LeaveReason,
    /// The status of the workflow at that moment.
    pub status: WorkflowStatus,
    /// The output of the workflow; null until it has completed.
    pub output: JsonValue,
    /// Why the workflow failed or was aborted.
    pub failure: Option<TaskFailure>,
    /// How many batches this driver committed.
    pub commits: u64,
}

/// A workflow that is claimed and not driven yet.
#[derive(Debug)]
pub struct Claim {
    lease: WorkflowLease,
    /// When the claim lapses, by [`DriverClock::now_ms`].
    until_ms: i64,
}

/// A claimed workflow as the store has it, read once.
#[derive(Debug)]
pub struct ClaimedWorkflow {
    claim: Claim,
    loaded: LoadedWorkflow,
    machine: Machine,
}

impl ClaimedWorkflow {
    /// Its machine, for what has to be prepared before it is driven.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// Why a driver left a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// The workflow has ended.
    Ended,
    /// Only a command, or a timer that is far off, can change anything.
    Idle,
    /// The driver was asked to stop; the workflow can be resumed.
    Stopped,
}

/// Why a workflow could not be driven further. It can be resumed from its last commit.
#[derive(Debug, Error)]
pub enum DriveError {
    /// Another host has claimed the workflow; the tasks of this driver were cancelled.
    #[error("workflow {flow} was taken over by another host: fence {held} < {current}")]
    Superseded {
        /// The id of the workflow.
        flow: String,
        /// The fence of this driver's claim.
        held: i64,
        /// The fence of the newest claim.
        current: i64,
    },
    /// The store failed or refused.
    #[error("the workflow store failed or refused")]
    Store(#[source] WorkflowStoreError),
    /// The stored workflow cannot be read or replayed, or its state cannot be written.
    #[error("workflow {flow} is damaged: {reason}")]
    Damaged {
        /// The id of the workflow.
        flow: String,
        /// The record that cannot be read or written, and the cause.
        reason: String,
    },
    /// The machine refused an input that only the driver gives: the two disagree about its state.
    #[error("workflow {flow} refused an input of its driver")]
    Refused {
        /// The id of the workflow.
        flow: String,
        /// The reason the machine gave.
        source: InputRefusal,
    },
}

impl From<WorkflowStoreError> for DriveError {
    fn from(error: WorkflowStoreError) -> Self {
        match error {
            WorkflowStoreError::Superseded { flow, held, current } => {
                Self::Superseded { flow, held, current }
            }
            other @ (WorkflowStoreError::Held { .. }
            | WorkflowStoreError::Unknown(_)
            | WorkflowStoreError::Exists(_)
            | WorkflowStoreError::NoCheckpoint { .. }
            | WorkflowStoreError::Conflict(_)
            | WorkflowStoreError::Failed(_)) => Self::Store(other),
        }
    }
}

/// Drives workflows: the store makes them durable, the performer carries out their tasks.
#[derive(Debug)]
pub struct Driver<S, P, C = SystemClock> {
    store: Arc<S>,
    performer: Arc<P>,
    clock: C,
    options: DriverOptions,
}

impl<S, P> Driver<S, P>
where
    S: WorkflowStore + 'static,
    P: Performer + 'static,
{
    /// A driver with the clock of the operating system.
    pub fn new(store: Arc<S>, performer: Arc<P>, options: DriverOptions) -> Self {
        Self::with_clock(store, performer, SystemClock, options)
    }
}

impl<S, P, C> Driver<S, P, C>
where
    S: WorkflowStore + 'static,
    P: Performer + 'static,
    C: DriverClock,
{
    /// A driver with a clock of the caller's, for tests.
    pub fn with_clock(store: Arc<S>, performer: Arc<P>, clock: C, options: DriverOptions) -> Self {
        Self { store, performer, clock, options }
    }

    /// Drives a workflow until it has ended, whatever its state: new, under way, or ended with
    /// commands that wait for an answer. When `stop` is cancelled, the driver leaves the workflow
    /// so that it can be resumed. Dropping the future has the effect of killing the host.
    pub async fn run(
        &self,
        flow: &str,
        stop: &CancellationToken,
    ) -> Result<DriveResult, DriveError> {
        let claim = self.claim(flow).await?;
        self.drive(self.read(claim).await?, stop).await
    }

    /// Claims a workflow without reading it. Call [`read`](Self::read) next, or
    /// [`give_up`](Self::give_up) if the workflow cannot be driven.
    pub async fn claim(&self, flow: &str) -> Result<Claim, DriveError> {
        let until_ms = self.clock.now_ms().saturating_add(self.lease_ms());
        let request = LeaseRequest {
            owner: self.options.owner.clone(),
            now_ms: self.clock.wall_ms(),
            until_ms: self.lapses_ms(),
            take_over: self.options.take_over,
            why: self.options.why,
        };
        Ok(Claim { lease: self.store.claim(flow, request).await?, until_ms })
    }

    /// Gives back a claimed workflow without driving it.
    pub async fn give_up(&self, claim: Claim) {
        // If this fails, the claim lapses, and other hosts look for the workflow then.
        let _ = self.store.release(&claim.lease, GiveBack::Failed).await;
    }

    /// Reads a claimed workflow; [`drive`](Self::drive) it next. One that cannot be read is given back:
    /// another host may be able to read it.
    pub async fn read(&self, claim: Claim) -> Result<ClaimedWorkflow, DriveError> {
        let loaded = self.store.load(&claim.lease.workflow_id, None).await;
        let read = loaded.map_err(DriveError::from);
        match read.and_then(|loaded| Ok((rebuild(&loaded)?, loaded))) {
            Ok((machine, loaded)) => Ok(ClaimedWorkflow { claim, loaded, machine }),
            Err(error) => {
                self.give_up(claim).await;
                Err(error)
            }
        }
    }

    /// Drives a claimed workflow, as [`run`](Self::run) does.
    pub async fn drive(
        &self,
        claimed: ClaimedWorkflow,
        stop: &CancellationToken,
    ) -> Result<DriveResult, DriveError> {
        let ClaimedWorkflow { claim, loaded, machine } = claimed;
        let Claim { lease, until_ms: mut lease_until_ms } = claim;
        let now_ms = self.clock.now_ms();
        if now_ms >= lease_until_ms.saturating_sub(self.lease_ms() / 3 * 2) {
            // It took a while to get here: another host may have claimed it.
            lease_until_ms = now_ms.saturating_add(self.lease_ms());
            self.store.renew(&lease, self.lapses_ms()).await?;
        }
        let mut drive_loop = DriveLoop::new(self, lease, lease_until_ms, machine, &loaded);
        let outcome = drive_loop.drive(loaded, stop).await;
        drive_loop.leave(outcome).await
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.options.lease_ms).unwrap_or(i64::MAX)
    }

    /// When a claim made or renewed now lapses, by the wall clock that other hosts read.
    fn lapses_ms(&self) -> i64 {
        self.clock.wall_ms().saturating_add(self.lease_ms())
    }

    fn grace_ms(&self) -> i64 {
        i64::try_from(self.options.grace_ms).unwrap_or(i64::MAX)
    }
}

fn result_of(machine: &Machine, reason: LeaveReason, commits: u64) -> DriveResult {
    DriveResult {
        reason,
        status: machine.status(),
        output: machine.output().clone(),
        failure: machine.failure().cloned(),
        commits,
    }
}
