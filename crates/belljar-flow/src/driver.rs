//! Who drives a workflow: claims it, has the machine back, and does what the machine says.
//!
//! The order is always the same: what is ready goes into the machine, what the machine says is
//! committed as one batch, and only then is it performed. Whatever ends the driver, the next one
//! finds either nothing of a step or all of it. A commit that fails ends the driver: nothing is
//! performed that is not durable.

mod clock;
mod inbox;
mod performer;
mod replay;
mod round;
mod session;
mod tasks;

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{
    effect::{Failure, Status},
    engine::{DurableEngine, EngineError, GiveBack, Lease, LeaseRequest, Why},
    machine::{Machine, Refusal},
};

pub use clock::{Clock, SystemClock};
pub use performer::{Job, Performer, Place};
pub(crate) use replay::rebuild;
pub(crate) use round::encode;

/// How a driver works.
#[derive(Debug, Clone)]
pub struct DriverOptions {
    /// Who it is, unique among all that share the engine.
    pub owner: String,
    /// For how long it claims a workflow at a time. It renews the claim while it lives.
    pub lease_ms: u64,
    /// Whether it takes workflows from owners whose lease is live.
    pub take_over: bool,
    /// What it does when nothing runs and only a command can change that.
    pub idle: WhenIdle,
    /// Whether somebody asked for what it does, or it found something to do.
    pub why: Why,
    /// How long a task that was cancelled may take to end before it is dropped, and how long a
    /// driver that is stopped waits for its tasks.
    pub grace_ms: u64,
}

impl DriverOptions {
    /// The usual, for this owner.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            lease_ms: 30_000,
            take_over: false,
            idle: WhenIdle::Stay,
            why: Why::Asked,
            grace_ms: 2_000,
        }
    }
}

/// What a driver does when only a command can change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenIdle {
    /// It waits for the command.
    Stay,
    /// It gives the workflow back; a command makes it due again.
    Leave,
    /// The same, also while a timer waits for at least this long; and its host goes on to look after
    /// it. Not while something is kept for it in memory: [`Performer::keeps`].
    Rest {
        /// A timer that goes off sooner is waited for.
        at_least_ms: u64,
    },
}

/// How driving ended, when nothing went wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Driven {
    /// Why the driver left.
    pub left: Left,
    /// Where the workflow is.
    pub status: Status,
    /// What it gave, if it has ended.
    pub output: Value,
    /// Why it failed or was aborted.
    pub failure: Option<Failure>,
    /// Batches that were committed.
    pub commits: u64,
}

/// A workflow that is claimed and not driven yet.
#[derive(Debug)]
pub struct Claim {
    lease: Lease,
    /// When it lapses, by the driver's own time.
    until_ms: i64,
}

/// Why a driver left a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The workflow has ended.
    Ended,
    /// Only a command, or a time that is far off, can change anything.
    Idle,
    /// The driver was asked to stop; the workflow can be resumed.
    Stopped,
}

/// Why a workflow could not be driven on. It can be resumed from what was committed.
#[derive(Debug, Error)]
pub enum DriveError {
    /// Somebody else has claimed the workflow: what this driver was doing was cancelled.
    #[error("workflow {flow} was taken over by another host: fence {held} < {current}")]
    Superseded {
        /// The workflow.
        flow: String,
        /// The fence this driver had.
        held: i64,
        /// The fence there is.
        current: i64,
    },
    /// The engine failed or refused.
    #[error("the durable engine did not do it")]
    Engine(#[source] EngineError),
    /// What the engine kept is not what was put there, or cannot be kept.
    #[error("workflow {flow} is damaged: {reason}")]
    Damaged {
        /// The workflow.
        flow: String,
        /// What is wrong.
        reason: String,
    },
    /// The machine refused what only the driver says.
    #[error("workflow {flow} is not where its driver thought")]
    Refused {
        /// The workflow.
        flow: String,
        /// Why.
        source: Refusal,
    },
}

impl From<EngineError> for DriveError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Superseded { flow, held, current } => {
                Self::Superseded { flow, held, current }
            }
            other @ (EngineError::Held { .. }
            | EngineError::Unknown(_)
            | EngineError::Exists(_)
            | EngineError::NoCheckpoint { .. }
            | EngineError::Conflict(_)
            | EngineError::Failed(_)) => Self::Engine(other),
        }
    }
}

/// Drives workflows: an engine keeps them, a performer does what they ask for.
#[derive(Debug)]
pub struct Driver<E, P, C = SystemClock> {
    engine: Arc<E>,
    performer: Arc<P>,
    clock: C,
    options: DriverOptions,
}

impl<E, P> Driver<E, P>
where
    E: DurableEngine + 'static,
    P: Performer + 'static,
{
    /// A driver by the machine's own clock.
    pub fn new(engine: Arc<E>, performer: Arc<P>, options: DriverOptions) -> Self {
        Self::with_clock(engine, performer, SystemClock, options)
    }
}

impl<E, P, C> Driver<E, P, C>
where
    E: DurableEngine + 'static,
    P: Performer + 'static,
    C: Clock,
{
    /// A driver by this clock.
    pub fn with_clock(engine: Arc<E>, performer: Arc<P>, clock: C, options: DriverOptions) -> Self {
        Self { engine, performer, clock, options }
    }

    /// Drives a workflow until it has ended, from wherever it is: new, under way, or over with
    /// commands that wait for an answer. When `stop` is cancelled, the driver leaves it so that it
    /// can be resumed. Dropping the future is like killing the host.
    pub async fn run(&self, flow: &str, stop: &CancellationToken) -> Result<Driven, DriveError> {
        let claim = self.claim(flow).await?;
        self.drive(claim, stop).await
    }

    /// Claims a workflow before it is so much as read: [`drive`](Self::drive) goes on with it, or
    /// [`give_up`](Self::give_up) says that it could not be.
    pub async fn claim(&self, flow: &str) -> Result<Claim, DriveError> {
        let until_ms = self.clock.now_ms().saturating_add(self.lease_ms());
        let request = LeaseRequest {
            owner: self.options.owner.clone(),
            now_ms: self.clock.wall_ms(),
            until_ms: self.lapses_ms(),
            take_over: self.options.take_over,
            why: self.options.why,
        };
        Ok(Claim { lease: self.engine.claim(flow, request).await?, until_ms })
    }

    /// Gives back what was claimed and not driven.
    pub async fn give_up(&self, claim: Claim) {
        // Who has it now, or looks for it when the claim has lapsed, needs no word.
        let _ = self.engine.release(&claim.lease, GiveBack::Failed).await;
    }

    /// Drives what was claimed, as [`run`](Self::run) does.
    pub async fn drive(
        &self,
        claim: Claim,
        stop: &CancellationToken,
    ) -> Result<Driven, DriveError> {
        let Claim { lease, until_ms: mut lease_until_ms } = claim;
        let flow = &lease.workflow_id;
        let now_ms = self.clock.now_ms();
        if now_ms >= lease_until_ms.saturating_sub(self.lease_ms() / 3 * 2) {
            // It took a while to get here: somebody else may have it.
            lease_until_ms = now_ms.saturating_add(self.lease_ms());
            self.engine.renew(&lease, self.lapses_ms()).await?;
        }
        let loaded = self.engine.load(flow, None).await.map_err(DriveError::from);
        let (loaded, machine) = match loaded.and_then(|loaded| Ok((rebuild(&loaded)?, loaded))) {
            Ok((machine, loaded)) => (loaded, machine),
            Err(error) => {
                // What cannot be read is not kept from others who may be able to.
                let _ = self.engine.release(&lease, GiveBack::Failed).await;
                return Err(error);
            }
        };
        let mut session = session::Session::new(self, lease, lease_until_ms, machine, &loaded);
        let outcome = session.drive(loaded, stop).await;
        session.leave(outcome).await
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.options.lease_ms).unwrap_or(i64::MAX)
    }

    /// When a claim that is made or renewed now lapses, for those who look at the wall.
    fn lapses_ms(&self) -> i64 {
        self.clock.wall_ms().saturating_add(self.lease_ms())
    }

    fn grace_ms(&self) -> i64 {
        i64::try_from(self.options.grace_ms).unwrap_or(i64::MAX)
    }
}

fn driven(machine: &Machine, left: Left, commits: u64) -> Driven {
    Driven {
        left,
        status: machine.status(),
        output: machine.output().clone(),
        failure: machine.failure().cloned(),
        commits,
    }
}
