//! Who of this host drives which workflow, and what is taken over from hosts that died.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use belljar_flow::{
    Clock as _, DriveError, Driven, Driver, DriverOptions, DurableEngine as _, Embedded,
    EngineError, SystemClock, WhenIdle, WorkflowError,
    engine::{Filter, FlowRow, GiveBack, Lease, LeftAlone, Why},
};
use tokio_util::sync::CancellationToken;

use super::{Shared, retention, walk};
use crate::{
    active::ActiveIds,
    executor::{is_owner_this_process, this_process},
    is_owner_alive, now_ms,
};

/// Who asks when a person at a command line does. Workflows they stop stay stopped.
const PERSON: &str = "cli";
/// After so many times in a row without getting further, a workflow is left alone.
const MOST_IN_VAIN: u32 = 3;
/// What the store calls one that was made and has not begun.
const CREATED: &str = "created";
/// Workflows of one status that are looked at when some are taken over.
const MOST: u32 = 1000;
/// A workflow that is due, or whose lease has lapsed, is taken from an owner that lives if nothing was
/// written about it for so long: twice the time after which a host renews its leases.
const STALE_AFTER: Duration = Duration::from_secs(20);
/// A timer that goes off sooner is waited for.
const SHORTEST_REST_MS: u64 = 10_000;

/// When a driver leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// When the workflow has ended.
    Ended,
    /// When only a command could change anything.
    Idle,
    /// When nothing is to be done for a while. It is still looked after here.
    Resting,
}

/// Drives a workflow until there is a reason to leave it.
pub(super) async fn run(
    shared: &Shared,
    id: &str,
    stop: &CancellationToken,
    (until, why): (Until, Why),
) -> Result<Driven, DriveError> {
    let Some(_entered) = shared.under_way.enter(id) else {
        let (flow, owner) = (id.to_owned(), this_process());
        return Err(EngineError::Held { flow, owner, until_ms: i64::MAX }.into());
    };
    let engine = shared.workflows.engine();
    let row = engine.find(id).await?.ok_or_else(|| EngineError::Unknown(id.to_owned()))?;
    free(engine, &row).await;
    let mut options = DriverOptions { why, ..DriverOptions::new(this_process()) };
    options.idle = match until {
        Until::Ended => WhenIdle::Stay,
        Until::Idle => WhenIdle::Leave,
        Until::Resting => WhenIdle::Rest { at_least_ms: SHORTEST_REST_MS },
    };
    let driver = Driver::new(Arc::clone(engine), Arc::clone(&shared.hands), options);
    // That it is taken up is counted before it is so much as read: that may be what ends its host. The
    // claim is kept, so that nobody else counts the same.
    let claim = driver.claim(id).await?;
    if let Err(error) = prepare(shared, &row).await {
        driver.give_up(claim).await;
        return Err(error);
    }
    let halt = stop.child_token();
    let driving = driver.drive(claim, &halt);
    let mut driving = std::pin::pin!(driving);
    let driven = loop {
        tokio::select! {
            driven = &mut driving => break driven,
            () = shared.stop.cancelled(), if !halt.is_cancelled() => halt.cancel(),
        }
    };
    shared.hands.leave(id).await;
    if driven.is_ok() {
        retention::sweep(engine, id, &shared.hands.options.scratch).await;
    }
    driven
}

/// The same in the background when its turn comes, unless it is driven or waits here.
pub(super) fn drive(shared: &Arc<Shared>, id: &str, why: Why) {
    if !shared.under_way.has(id) {
        shared.queue.put(id, why);
    }
    begin(shared);
}

/// Begins with those that wait, as far as there is room.
fn begin(shared: &Arc<Shared>) {
    while !shared.stop.is_cancelled()
        && let Some(turn) = shared.queue.next()
    {
        let of = Arc::clone(shared);
        let mut background = shared.background.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended need not be remembered.
        while background.try_join_next().is_some() {}
        background.spawn(async move {
            let never = CancellationToken::new();
            if let Err(error) = run(&of, turn.id(), &never, (Until::Resting, turn.why())).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, id = turn.id(), "a workflow was not driven on");
            }
            drop(turn);
            begin(&of);
        });
    }
}

/// Tells the performer what it has to know of a workflow.
async fn prepare(shared: &Shared, row: &FlowRow) -> Result<(), DriveError> {
    let machine = shared.workflows.look(&row.id, None).await.map_err(drive_error)?;
    let tools = walk::tools_of(&machine.dag().tasks);
    shared.hands.enter(&row.id, &row.caller, machine.terms(), &tools).await;
    Ok(())
}

fn drive_error(error: WorkflowError) -> DriveError {
    match error {
        WorkflowError::Engine(error) => error.into(),
        WorkflowError::Unreadable(error) => error,
        WorkflowError::Faulty(faults) => {
            DriveError::Damaged { flow: String::new(), reason: faults.to_string() }
        }
    }
}

/// Whether somebody who lives has a workflow.
pub(super) fn is_held(row: &FlowRow, here: &ActiveIds) -> bool {
    let is_alive =
        is_owner_alive(&row.owner) || (is_owner_this_process(&row.owner) && here.has(&row.id));
    row.lease_until_ms > now_ms() && is_alive
}

/// Voids the claim of an owner who is gone. The fence decides between several that do so at once: one
/// of them claims the workflow after it, the others find it taken.
async fn free(engine: &Embedded, row: &FlowRow) {
    let is_gone = !row.owner.is_empty() && !is_owner_alive(&row.owner);
    if is_gone && row.lease_until_ms > now_ms() {
        let lease = Lease { workflow_id: row.id.clone(), fence: row.fence };
        // Somebody else was faster: the claim will tell.
        let _ = engine.release(&lease, GiveBack::Failed).await;
    }
}

/// Whether a process that lives has a workflow, or looks after it while it rests. This one does not
/// count.
pub fn is_looked_after(row: &FlowRow) -> bool {
    let is_resting = row.lease_until_ms == 0 && needs_attention(row).is_none();
    is_owner_alive(&row.owner) && (is_resting || row.lease_until_ms > now_ms())
}

/// The status of a workflow that was made and has not begun.
pub const QUEUED: &str = "queued";

/// The status of a workflow that hosts leave alone until a person takes it up.
pub const NEEDS_ATTENTION: &str = "needs_attention";

/// The status of a workflow, for those who look on.
pub fn status_of(row: &FlowRow) -> &str {
    if needs_attention(row).is_some() {
        NEEDS_ATTENTION
    } else if row.status == CREATED {
        QUEUED
    } else {
        &row.status
    }
}

/// Why no host takes a workflow up by itself, if that is so: hosts died with it or could not go on,
/// so many in a row, and it got no further. A person who asks for it is not kept from it.
pub fn needs_attention(row: &FlowRow) -> Option<String> {
    let is_had = row.lease_until_ms > now_ms()
        && (is_owner_alive(&row.owner) || is_owner_this_process(&row.owner));
    if row.fruitless_attempts < MOST_IN_VAIN || row.finished_ms.is_some() || is_had {
        return None;
    }
    let (id, vain) = (&row.id, row.fruitless_attempts);
    Some(format!(
        "{vain} hosts in a row ended or failed while they had it, and it got no further; look at what \
         it does, then `belljar workflow resume {id}`, or first `belljar workflow command {id} abort`"
    ))
}

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// What is due or has commands, and nobody has it.
    Due,
    /// Also whether those who have one still live.
    Everything,
}

/// Drives what hosts have left behind, and what rests here and is due.
pub(super) async fn adopt(shared: &Arc<Shared>, look: Look) {
    let engine = shared.workflows.engine();
    // What rests here is due by the time that its driver went by.
    let now = SystemClock.now_ms();
    // Those that need attention are looked at now and then, for it to be said.
    let vain = if look == Look::Everything { u32::MAX } else { MOST_IN_VAIN };
    let mut found = Vec::new();
    for vain in BTreeSet::from([MOST_IN_VAIN, vain]) {
        let but = LeftAlone { stopped: Some(PERSON.to_owned()), fruitless_attempts: vain };
        found.extend(engine.abandoned(now, but, MOST).await.unwrap_or_default());
    }
    let statuses = match look {
        Look::Due => [].as_slice(),
        Look::Everything => ["running", "stopping", "rolling_back"].as_slice(),
    };
    for status in statuses {
        let filter = Filter { status: Some((*status).to_owned()), ..Filter::default() };
        let mut rows = engine.list(filter, None, MOST).await.unwrap_or_default();
        rows.retain(|row| row.lease_until_ms > now_ms() && !is_owner_this_process(&row.owner));
        found.extend(rows);
    }
    let stale = shared.neglected.stale(&found);
    for row in found.iter().filter(|row| !is_owner_alive(&row.owner) || stale.contains(&row.id)) {
        match needs_attention(row) {
            None => drive(shared, &row.id, Why::Found),
            Some(reason) => leave_alone(shared, row, &reason),
        }
    }
}

/// Workflows that somebody should be at, as they were when that was first seen.
///
/// An owner that lives and does nothing is frozen. That is told by what it leaves undone while this
/// host looks on, not by comparing times: clocks of hosts differ after one of them was set.
#[derive(Debug, Default)]
pub(super) struct Neglected(Mutex<BTreeMap<String, (FlowRow, Instant)>>);

impl Neglected {
    /// Those of these workflows that were the same for too long. Others are not remembered.
    fn stale(&self, found: &[FlowRow]) -> BTreeSet<String> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *seen);
        for row in found.iter().filter(|row| !row.owner.is_empty()) {
            let since = match before.get(&row.id) {
                Some((then, since)) if then == row => *since,
                _ => Instant::now(),
            };
            seen.insert(row.id.clone(), (row.clone(), since));
        }
        let is_stale = |since: &Instant| since.elapsed() >= STALE_AFTER;
        let stale = seen.iter().filter(|(_, (_, since))| is_stale(since));
        stale.map(|(id, _)| id.clone()).collect()
    }
}

/// Says once why nobody takes a workflow up.
fn leave_alone(shared: &Shared, row: &FlowRow, reason: &str) {
    let mut told = shared.left_alone.lock().unwrap_or_else(PoisonError::into_inner);
    if told.insert((row.id.clone(), row.fence)) {
        tracing::error!(id = row.id, reason, "a workflow is left alone");
    }
}
