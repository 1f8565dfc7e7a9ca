//! The suite that every [`WorkflowStore`] has to pass.
//!
//! It is written against the port alone. The tests of a store bring a [`StoreFixture`], storage of
//! which handles can be opened, and check the [`SuiteReport`]. Two handles stand for two processes; a
//! handle that is dropped and opened again stands for a restart.

mod blobs;
mod commands;
pub(crate) mod forks;
mod lists;
mod ownership;
mod values;

use std::{fmt::Debug, pin::Pin};

use belljar_contract::WorkflowStatus;
use belljar_workflow::workflow_store::{
    ClaimReason, IntentChange, LeaseRequest, NewWorkflowRow, WorkflowBatch, WorkflowEventRow,
    WorkflowInputRow, WorkflowLease, WorkflowStatusUpdate, WorkflowStore, WorkflowStoreError,
};

/// Storage for one case, empty at first.
pub(crate) trait StoreFixture: Send + Sync {
    /// The type of [`open`](Self::open): one handle, as one process has it.
    type Store: WorkflowStore;

    /// Opens a handle, as another process would.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;
}

/// Which cases passed and which failed.
#[derive(Debug, Default)]
pub(crate) struct SuiteReport {
    pub(crate) passed: Vec<&'static str>,
    pub(crate) failed: Vec<FailedCase>,
}

/// A promise of the port that the store broke.
#[derive(Debug)]
pub(crate) struct FailedCase {
    pub(crate) case: &'static str,
    /// The expected and the found value.
    pub(crate) reason: String,
}

/// Runs every case, each over a storage of its own.
pub(crate) async fn run<F: StoreFixture>(mut fresh: impl FnMut() -> F) -> SuiteReport {
    let mut report = SuiteReport::default();
    for (case, run) in cases::<F>() {
        let stores = fresh();
        match run(&stores).await {
            Ok(()) => report.passed.push(case),
            Err(CaseFailure(reason)) => report.failed.push(FailedCase { case, reason }),
        }
    }
    report
}

/// The reason a case fails: what was expected and what was found.
#[derive(Debug)]
pub(crate) struct CaseFailure(String);

impl From<WorkflowStoreError> for CaseFailure {
    fn from(error: WorkflowStoreError) -> Self {
        Self(format!("an operation failed: {error:?}"))
    }
}

pub(crate) type CaseResult = Result<(), CaseFailure>;
type CaseFuture<'a> = Pin<Box<dyn Future<Output = CaseResult> + Send + 'a>>;
type SuiteCase<F> = (&'static str, for<'a> fn(&'a F) -> CaseFuture<'a>);

macro_rules! cases {
    ($($module:ident: $($case:ident)+;)+) => {
        fn cases<F: StoreFixture>() -> Vec<SuiteCase<F>> {
            vec![$($((stringify!($case), |stores| Box::pin($module::$case(stores))),)+)+]
        }
    };
}

cases! {
    values: values_come_back the_beginning_is_loaded every_checkpoint_loads
        the_newest_is_loaded_without_a_number a_batch_is_whole_or_not writes_are_idempotent
        numbers_have_no_gap intents_open_and_close events_are_replayed_without_gap
        events_can_be_waited_for;
    lists: flows_are_listed_newest_first flows_are_filtered checkpoints_are_listed_newest_first
        what_is_unknown_is_said;
    commands: commands_keep_their_order a_command_twice_is_one answers_are_durable
        commands_can_be_waited_for taken_commands_are_not_loaded_again;
    forks: a_fork_is_what_was a_fork_is_independent a_fork_comes_with_its_command
        parents_are_known;
    blobs: blobs_come_back;
    ownership: a_live_lease_is_respected a_lapsed_lease_is_free one_of_two_claims_wins
        superseded_writes_are_refused a_taken_over_lease_is_void a_released_flow_is_free
        a_resting_flow_has_an_owner_and_is_free failed_claims_are_counted
        leases_are_renewed abandoned_flows_are_found;
}

/// Fails unless two values are the same.
fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> CaseResult {
    if found == expected {
        return Ok(());
    }
    let mut text = format!("{what}: expected {expected:?}, found {found:?}");
    // A value of megabytes says nothing more.
    text.truncate(text.floor_char_boundary(600));
    Err(CaseFailure(text))
}

/// Fails unless something holds.
fn holds(what: &str, it_does: bool) -> CaseResult {
    if it_does { Ok(()) } else { Err(CaseFailure(what.to_owned())) }
}

/// Makes a workflow.
async fn create(store: &impl WorkflowStore, id: &str, now_ms: i64) -> CaseResult {
    let (name, caller) = (format!("name of {id}"), "suite".to_owned());
    let snapshot = format!("start of {id}").into_bytes();
    let new = NewWorkflowRow { id: id.to_owned(), name, caller, snapshot, created_ms: now_ms };
    Ok(store.create(new).await?)
}

/// A claim for ten seconds.
pub(crate) fn wants(owner: &str, now_ms: i64) -> LeaseRequest {
    let owner = owner.to_owned();
    LeaseRequest {
        owner,
        now_ms,
        until_ms: now_ms + 10_000,
        take_over: false,
        why: ClaimReason::Asked,
    }
}

/// Makes a workflow and claims it.
pub(crate) async fn owned(
    store: &impl WorkflowStore,
    id: &str,
) -> Result<WorkflowLease, CaseFailure> {
    create(store, id, 1).await?;
    Ok(store.claim(id, wants("suite", 1)).await?)
}

pub(crate) fn input(seq: u64, body: &[u8]) -> WorkflowInputRow {
    WorkflowInputRow { seq, checkpoint: None, body: body.to_vec() }
}

/// An input with a checkpoint after it.
fn marked(seq: u64, body: &[u8]) -> WorkflowInputRow {
    WorkflowInputRow { seq, checkpoint: Some(format!("after {seq}")), body: body.to_vec() }
}

pub(crate) fn event(seq: u64, cause: u64) -> WorkflowEventRow {
    WorkflowEventRow { seq, cause, body: format!("event {seq}").into_bytes() }
}

pub(crate) fn inputs(inputs: Vec<WorkflowInputRow>) -> WorkflowBatch {
    WorkflowBatch { now_ms: 2, inputs, ..WorkflowBatch::default() }
}

fn opened(key: &str, at: u64) -> IntentChange {
    IntentChange::Open { key: key.to_owned(), at, body: key.as_bytes().to_vec() }
}

fn closed(key: &str, at: u64) -> IntentChange {
    IntentChange::Close { key: key.to_owned(), at }
}

pub(crate) fn standing(
    status: WorkflowStatus,
    due_ms: i64,
    finished: bool,
) -> Option<WorkflowStatusUpdate> {
    Some(WorkflowStatusUpdate { status, due_ms, finished })
}
