//! Driving workflows on this host, and adopting them from dead hosts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use belljar_contract::WorkflowStatus;
use belljar_workflow::{
    DriveError, DriveResult, Driver, DriverClock as _, DriverOptions, SqliteWorkflowStore,
    SystemClock, WhenIdle, WorkflowStore as _, WorkflowStoreError,
    workflow_store::{
        ClaimReason, GiveBack, ResumeExclusions, WorkflowFilter, WorkflowLease, WorkflowRow,
    },
};
use tokio_util::sync::CancellationToken;

use super::{WorkflowsInner, retention, walk};
use crate::{
    active::ActiveIds,
    executor::{is_owner_this_process, this_process},
    is_owner_alive, now_ms,
};

/// The caller of workflows started at a command line. Such workflows stay stopped when their person
/// stops them.
const PERSON: &str = "cli";
/// Hosts leave a workflow alone after so many attempts in a row without progress.
const MAX_FAILED_RESUMES: u32 = 3;
/// Workflows of one status that are considered at once.
const MOST: u32 = 1000;
/// A workflow that is due, or whose lease has expired, is taken from a live owner if its record has
/// not changed for this long: twice the interval at which a host renews its leases.
const STALE_AFTER: Duration = Duration::from_secs(20);
/// A host waits for timers that are due sooner.
const SHORTEST_REST_MS: u64 = 10_000;

/// When a driver stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriveUntil {
    /// When the workflow has ended.
    Ended,
    /// When only a command could change anything.
    Idle,
    /// When nothing is due for a while. This host keeps watching the workflow.
    Resting,
}

/// Drives a workflow until the given condition.
pub(super) async fn run(
    inner: &WorkflowsInner,
    id: &str,
    stop: &CancellationToken,
    (until, why): (DriveUntil, ClaimReason),
) -> Result<DriveResult, DriveError> {
    let Some(_active) = inner.active.enter(id) else {
        let (flow, owner) = (id.to_owned(), this_process());
        return Err(WorkflowStoreError::Held { flow, owner, until_ms: i64::MAX }.into());
    };
    let store = inner.workflows.store();
    let row = store.find(id).await?.ok_or_else(|| WorkflowStoreError::Unknown(id.to_owned()))?;
    void_dead_claim(store, &row).await;
    let mut options = DriverOptions { why, ..DriverOptions::new(this_process()) };
    options.idle = match until {
        DriveUntil::Ended => WhenIdle::Stay,
        DriveUntil::Idle => WhenIdle::Leave,
        DriveUntil::Resting => WhenIdle::Rest { at_least_ms: SHORTEST_REST_MS },
    };
    let driver = Driver::new(Arc::clone(store), Arc::clone(&inner.performer), options);
    // The attempt is counted before the workflow is read, because reading may be what crashes the
    // host. The claim is kept, so that no other host counts the same attempt.
    let claimed = driver.read(driver.claim(id).await?).await?;
    let machine = claimed.machine();
    let tools = walk::tools_of(&machine.dag().tasks);
    inner.performer.begin(id, &row.caller, machine.terms(), &tools).await;
    let halt = stop.child_token();
    let driving = driver.drive(claimed, &halt);
    let mut driving = std::pin::pin!(driving);
    let driven = loop {
        tokio::select! {
            driven = &mut driving => break driven,
            () = inner.stop.cancelled(), if !halt.is_cancelled() => halt.cancel(),
        }
    };
    inner.performer.end(id).await;
    if driven.is_ok() {
        retention::sweep(store, id, &inner.performer.options.scratch).await;
    }
    driven
}

/// Queues a workflow to be driven in the background, unless it is active or queued.
pub(super) fn drive(inner: &Arc<WorkflowsInner>, id: &str, why: ClaimReason) {
    if !inner.active.has(id) {
        inner.queue.push(id, why);
    }
    start_queued(inner);
}

/// Starts queued workflows as long as there are free slots.
fn start_queued(inner: &Arc<WorkflowsInner>) {
    while !inner.stop.is_cancelled()
        && let Some(slot) = inner.queue.take_next()
    {
        let of = Arc::clone(inner);
        let mut background = inner.background.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished tasks need no handle any more.
        while background.try_join_next().is_some() {}
        background.spawn(async move {
            let never = CancellationToken::new();
            if let Err(error) = run(&of, slot.id(), &never, (DriveUntil::Resting, slot.why())).await
            {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, id = slot.id(), "cannot drive a workflow");
            }
            drop(slot);
            start_queued(&of);
        });
    }
}

/// Whether a live process drives a workflow.
pub(super) fn is_held(row: &WorkflowRow, here: &ActiveIds) -> bool {
    let is_alive =
        is_owner_alive(&row.owner) || (is_owner_this_process(&row.owner) && here.has(&row.id));
    row.lease_until_ms > now_ms() && is_alive
}

/// Voids the claim of a dead owner. If several hosts do so at once, the fence lets one of them
/// claim the workflow.
async fn void_dead_claim(store: &SqliteWorkflowStore, row: &WorkflowRow) {
    let is_gone = !row.owner.is_empty() && !is_owner_alive(&row.owner);
    if is_gone && row.lease_until_ms > now_ms() {
        let lease = WorkflowLease { workflow_id: row.id.clone(), fence: row.fence };
        // Another process was faster; the claim below will fail.
        let _ = store.release(&lease, GiveBack::Failed).await;
    }
}

/// Whether a live process other than this one drives a workflow, or watches it while it rests.
pub fn is_looked_after(row: &WorkflowRow) -> bool {
    let is_resting = row.lease_until_ms == 0 && needs_attention(row).is_none();
    is_owner_alive(&row.owner) && (is_resting || row.lease_until_ms > now_ms())
}

/// The status of a workflow as clients see it.
pub fn status_of(row: &WorkflowRow) -> WorkflowStatus {
    if needs_attention(row).is_some() {
        WorkflowStatus::NeedsAttention
    } else if row.status == WorkflowStatus::Created {
        WorkflowStatus::Queued
    } else {
        row.status
    }
}

/// Why hosts leave a workflow alone, if they do: several in a row died or failed with it, and it
/// made no progress. A person may still resume it.
pub fn needs_attention(row: &WorkflowRow) -> Option<String> {
    let is_had = row.lease_until_ms > now_ms()
        && (is_owner_alive(&row.owner) || is_owner_this_process(&row.owner));
    if row.fruitless_attempts < MAX_FAILED_RESUMES || row.finished_ms.is_some() || is_had {
        return None;
    }
    let (id, attempts) = (&row.id, row.fruitless_attempts);
    Some(format!(
        "{attempts} hosts in a row ended or failed with this workflow, and it made no progress; check \
         its tasks, then run `belljar workflow resume {id}`, or `belljar workflow command {id} \
         abort` first"
    ))
}

/// Which workflows are adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdoptionScope {
    /// Workflows that are due or have commands, and that no process drives.
    Due,
    /// Also workflows whose owner may be dead.
    Everything,
}

/// Drives workflows of dead hosts, and due ones that rest here.
pub(super) async fn adopt(inner: &Arc<WorkflowsInner>, look: AdoptionScope) {
    let store = inner.workflows.store();
    // Timers of resting workflows follow the driver's clock.
    let now = SystemClock.now_ms();
    // Workflows that need attention are included now and then, so that they are logged.
    let attempts = if look == AdoptionScope::Everything { u32::MAX } else { MAX_FAILED_RESUMES };
    let mut found = Vec::new();
    for attempts in BTreeSet::from([MAX_FAILED_RESUMES, attempts]) {
        let but =
            ResumeExclusions { stopped: Some(PERSON.to_owned()), fruitless_attempts: attempts };
        found.extend(store.abandoned(now, but, MOST).await.unwrap_or_default());
    }
    let statuses = match look {
        AdoptionScope::Due => [].as_slice(),
        AdoptionScope::Everything => {
            [WorkflowStatus::Running, WorkflowStatus::Stopping, WorkflowStatus::RollingBack]
                .as_slice()
        }
    };
    for status in statuses {
        let filter = WorkflowFilter { status: Some(*status), ..WorkflowFilter::default() };
        let mut rows = store.list(filter, None, MOST).await.unwrap_or_default();
        rows.retain(|row| row.lease_until_ms > now_ms() && !is_owner_this_process(&row.owner));
        found.extend(rows);
    }
    let stale = inner.neglected.stale(&found);
    for row in found.iter().filter(|row| !is_owner_alive(&row.owner) || stale.contains(&row.id)) {
        match needs_attention(row) {
            None => drive(inner, &row.id, ClaimReason::Found),
            Some(reason) => log_left_alone(inner, row, &reason),
        }
    }
}

/// Workflows that an owner should be driving, as they were when first seen.
///
/// An owner that lives but does nothing is frozen. This host detects it by unchanged records while
/// it watches, not by comparing times: the clocks of hosts may differ.
#[derive(Debug, Default)]
pub(super) struct StallDetector(Mutex<BTreeMap<String, (WorkflowRow, Instant)>>);

impl StallDetector {
    /// The workflows that have not changed for too long. All others are forgotten.
    fn stale(&self, found: &[WorkflowRow]) -> BTreeSet<String> {
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

/// Logs once why hosts leave a workflow alone.
fn log_left_alone(inner: &WorkflowsInner, row: &WorkflowRow, reason: &str) {
    let mut logged = inner.left_alone.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.insert((row.id.clone(), row.fence)) {
        tracing::error!(id = row.id, reason, "hosts leave a workflow alone");
    }
}
