//! One suite for every durable engine.
//!
//! It is written against the port alone. An engine's tests bring [`Engines`], a storage of which
//! handles can be opened, and look at the [`Report`]. Two handles stand for two processes; a handle
//! that is dropped and opened again stands for a restart.

mod blobs;
mod commands;
mod copies;
mod lists;
mod ownership;
mod values;

use std::{fmt::Debug, future::Future, pin::Pin};

use crate::engine::{
    Batch, DurableEngine, EngineError, EventRow, InputRow, IntentChange, Lease, LeaseRequest,
    NewFlow, Standing, Why,
};

/// A storage, empty at first.
pub trait Engines: Send + Sync {
    /// A handle to it.
    type Engine: DurableEngine;

    /// Opens a handle, as another process would.
    fn open(&self) -> impl Future<Output = Self::Engine> + Send;
}

/// What came of the suite.
#[derive(Debug, Default)]
pub struct Report {
    /// The cases that held.
    pub held: Vec<&'static str>,
    /// The cases that did not.
    pub broken: Vec<Broken>,
}

/// A case that did not hold.
#[derive(Debug)]
pub struct Broken {
    /// Its name.
    pub case: &'static str,
    /// What was expected and what was found.
    pub reason: String,
}

/// Runs every case, each over a storage of its own.
pub async fn run<E: Engines>(mut fresh: impl FnMut() -> E) -> Report {
    let mut report = Report::default();
    for (case, run) in cases::<E>() {
        let engines = fresh();
        let outcome = run(&engines).await;
        match outcome {
            Ok(()) => report.held.push(case),
            Err(Fault(reason)) => report.broken.push(Broken { case, reason }),
        }
    }
    report
}

/// Why a case does not hold.
#[derive(Debug)]
struct Fault(String);

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Self(format!("an operation failed: {error:?}"))
    }
}

type Outcome = Result<(), Fault>;
type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;
type Case<E> = (&'static str, for<'a> fn(&'a E) -> Running<'a>);

macro_rules! cases {
    ($($module:ident: $($case:ident)+;)+) => {
        fn cases<E: Engines>() -> Vec<Case<E>> {
            vec![$($((stringify!($case), |engines| Box::pin($module::$case(engines))),)+)+]
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
    copies: a_fork_is_what_was a_fork_is_independent a_fork_comes_with_its_command
        parents_are_known a_copy_is_all_of_it pruning_keeps_what_is_needed forgetting_leaves_what_came_from_it;
    blobs: blobs_come_back blobs_outlive_pruning;
    ownership: a_live_lease_is_respected a_lapsed_lease_is_free one_of_two_claims_wins
        superseded_writes_are_refused a_taken_over_lease_is_void a_released_flow_is_free
        a_resting_flow_has_an_owner_and_is_free vain_claims_are_counted
        leases_are_renewed abandoned_flows_are_found;
}

/// Fails unless two values are the same.
fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    let mut text = format!("{what}: expected {expected:?}, found {found:?}");
    // A value of megabytes says nothing more.
    text.truncate(text.floor_char_boundary(600));
    Err(Fault(text))
}

/// Fails unless something holds.
fn holds(what: &str, it_does: bool) -> Outcome {
    if it_does { Ok(()) } else { Err(Fault(what.to_owned())) }
}

/// Makes a workflow.
async fn create(engine: &impl DurableEngine, id: &str, now_ms: i64) -> Outcome {
    let (name, caller) = (format!("name of {id}"), "suite".to_owned());
    let snapshot = format!("start of {id}").into_bytes();
    let new = NewFlow { id: id.to_owned(), name, caller, snapshot, created_ms: now_ms };
    Ok(engine.create(new).await?)
}

/// A claim for ten seconds.
fn wants(owner: &str, now_ms: i64) -> LeaseRequest {
    let owner = owner.to_owned();
    LeaseRequest { owner, now_ms, until_ms: now_ms + 10_000, take_over: false, why: Why::Asked }
}

/// Makes a workflow and claims it.
async fn owned(engine: &impl DurableEngine, id: &str) -> Result<Lease, Fault> {
    create(engine, id, 1).await?;
    Ok(engine.claim(id, wants("suite", 1)).await?)
}

fn input(seq: u64, body: &[u8]) -> InputRow {
    InputRow { seq, checkpoint: None, body: body.to_vec() }
}

/// An input with a checkpoint after it.
fn marked(seq: u64, body: &[u8]) -> InputRow {
    InputRow { seq, checkpoint: Some(format!("after {seq}")), body: body.to_vec() }
}

fn event(seq: u64, cause: u64) -> EventRow {
    EventRow { seq, cause, body: format!("event {seq}").into_bytes() }
}

fn inputs(inputs: Vec<InputRow>) -> Batch {
    Batch { now_ms: 2, inputs, ..Batch::default() }
}

fn opened(key: &str, at: u64) -> IntentChange {
    IntentChange::Open { key: key.to_owned(), at, body: key.as_bytes().to_vec() }
}

fn closed(key: &str, at: u64) -> IntentChange {
    IntentChange::Close { key: key.to_owned(), at }
}

fn standing(status: &str, due_ms: i64, finished: bool) -> Option<Standing> {
    Some(Standing { status: status.to_owned(), due_ms, finished })
}
