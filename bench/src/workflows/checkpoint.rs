//! A checkpoint: the commit after a task has ended and before the next one starts.
//!
//! It contains a task result of 2 KB, four events, one intent closed and the next one opened, in
//! one synchronous commit; with large state, also a snapshot of it. It is compared with LangGraph's
//! SQLite saver, which stores a state of that size without the writes of tasks, and with the disk
//! alone.

use std::{fs::File, path::Path, time::Instant};

use anyhow::Context as _;
use belljar_store::Store;
use belljar_workflow::{
    SqliteWorkflowStore, WorkflowStore as _,
    workflow_store::{
        ClaimReason, IntentChange, LeaseRequest, NewWorkflowRow, WorkflowBatch, WorkflowEventRow,
        WorkflowInputRow, WorkflowLease,
    },
};
use tokio::runtime::Runtime;

use super::{
    super::{
        Bench,
        rounds::{self, Frequency, TimedCase},
        row::BenchRow,
        tools::write_and_sync,
    },
    LangGraph, VERSION,
};
use crate::runtime;

/// Size of a task's result, in bytes.
const INPUT: usize = 2_000;
const EVENTS: u64 = 4;
const EVENT: usize = 150;
const INTENT: usize = 120;
const LARGE: usize = 1_000_000;

/// Measures checkpoints with small and with large state.
pub(super) fn measure(
    bench: &Bench<'_>,
    project: &Path,
    peer: Option<&LangGraph>,
) -> anyhow::Result<Vec<BenchRow>> {
    let runtime = runtime()?;
    let store = SqliteWorkflowStore::new(Store::open(&project.join("checkpoints"))?);
    let mut small = vec![ours(&runtime, &store, "small", None, Frequency::Always)?];
    let mut large = vec![ours(&runtime, &store, "large", Some(LARGE), Frequency::Seldom)?];
    if let Some(peer) = peer {
        small.extend(peer.checkpoints(bench, INPUT, Frequency::Less));
        large.extend(peer.checkpoints(bench, LARGE, Frequency::Seldom));
    }
    let mut file = File::create(project.join("fsync"))?;
    small.push(TimedCase::new("write and fsync", "", Frequency::Less, move || {
        let began = Instant::now();
        write_and_sync(&mut file)?;
        Ok(began.elapsed())
    }));
    let mut rows = rounds::measure(bench, "workflow checkpoint", small)?;
    rows.extend(rounds::measure(bench, "workflow checkpoint, with a state of 1 MB", large)?);
    Ok(rows)
}

fn ours<'a>(
    runtime: &'a Runtime,
    store: &'a SqliteWorkflowStore,
    flow: &str,
    snapshot: Option<usize>,
    often: Frequency,
) -> anyhow::Result<TimedCase<'a>> {
    let lease = runtime.block_on(claimed(store, flow)).context("cannot claim the workflow")?;
    let mut seq = 0;
    Ok(TimedCase::new("belljar", VERSION, often, move || {
        seq += 1;
        let batch = batch(seq, snapshot);
        let began = Instant::now();
        runtime.block_on(store.commit(&lease, batch))?;
        Ok(began.elapsed())
    }))
}

async fn claimed(store: &SqliteWorkflowStore, flow: &str) -> anyhow::Result<WorkflowLease> {
    let (id, name, caller) = (flow.to_owned(), flow.to_owned(), "bench".to_owned());
    store.create(NewWorkflowRow { id, name, caller, snapshot: vec![0], created_ms: 1 }).await?;
    let owner = "bench".to_owned();
    let why = ClaimReason::Asked;
    let request = LeaseRequest { owner, now_ms: 1, until_ms: 2, take_over: false, why };
    Ok(store.claim(flow, request).await?)
}

/// The records for one task that ended and one that starts.
fn batch(seq: u64, snapshot: Option<usize>) -> WorkflowBatch {
    let filled = |size: usize| seq.to_le_bytes().into_iter().cycle().take(size).collect();
    let event =
        |at| WorkflowEventRow { seq: (seq - 1) * EVENTS + at, cause: seq, body: filled(EVENT) };
    WorkflowBatch {
        now_ms: 1,
        inputs: vec![WorkflowInputRow {
            seq,
            checkpoint: Some("task".to_owned()),
            body: filled(INPUT),
        }],
        snapshot: snapshot.map(filled),
        events: (1..=EVENTS).map(event).collect(),
        intents: vec![
            IntentChange::Close { key: format!("key {}", seq - 1), at: seq },
            IntentChange::Open { key: format!("key {seq}"), at: seq, body: filled(INTENT) },
        ],
        ..WorkflowBatch::default()
    }
}

#[cfg(test)]
mod tests;
