//! A thousand tasks that do nothing, as one fan-out and as separate tasks. The time per task is
//! that of scheduling, including the journal.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use belljar_contract::WorkflowStatus;
use belljar_store::Store;
use belljar_workflow::{
    Dag, Driver, DriverOptions, Job, NewWorkflow, Performer, SqliteWorkflowStore, TaskOutcome,
    TaskStart, Workflows,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        Bench,
        rounds::{self, Frequency, TimedCase},
        row::BenchRow,
    },
    LangGraph, VERSION,
};
use crate::runtime;

/// The number of tasks in each workflow.
const TASKS: u32 = 1_000;
/// Number of tasks that run in parallel.
const AT_ONCE: [u32; 2] = [8, 64];

/// Measures both shapes of the workflow.
pub(super) fn measure(
    bench: &Bench<'_>,
    project: &Path,
    peer: Option<&LangGraph>,
) -> anyhow::Result<Vec<BenchRow>> {
    let runtime = runtime()?;
    let store = Arc::new(SqliteWorkflowStore::new(Store::open(&project.join("fan-out"))?));
    let mut rows = Vec::new();
    for at_once in AT_ONCE {
        let mut cases = Vec::new();
        let shapes = [("foreach", foreach(at_once)), ("tasks of their own", independent(at_once))];
        for (shape, dag) in shapes {
            let dag: Dag = serde_json::from_value(dag).context("the workflow is not valid")?;
            let (runtime, store) = (&runtime, &store);
            let mut made = 0_u32;
            cases.push(TimedCase::new(
                &format!("belljar {shape}"),
                VERSION,
                Frequency::Seldom,
                move || {
                    made += 1;
                    let whole = once(store, dag.clone(), format!("{shape} {at_once} {made}"));
                    Ok(runtime.block_on(whole)? / TASKS)
                },
            ));
        }
        cases.extend(peer.and_then(|peer| peer.fan_out(bench, TASKS, at_once)));
        let name = format!("workflow of 1,000 tasks, {at_once} at once, for each of them");
        rows.extend(rounds::measure(bench, &name, cases)?);
    }
    Ok(rows)
}

/// Runs one workflow from start to end.
async fn once(store: &Arc<SqliteWorkflowStore>, dag: Dag, id: String) -> anyhow::Result<Duration> {
    let new = NewWorkflow {
        id: id.clone(),
        caller: "bench".to_owned(),
        dag,
        inputs: Default::default(),
        files: Default::default(),
        terms: Default::default(),
    };
    let began = Instant::now();
    Workflows::new(Arc::clone(store)).create(new, 1).await?;
    let driver =
        Driver::new(Arc::clone(store), Arc::new(NoopPerformer), DriverOptions::new("bench"));
    let driven = driver.run(&id, &CancellationToken::new()).await?;
    let time = began.elapsed();
    ensure!(
        driven.status == WorkflowStatus::Completed,
        "the workflow ended as {:?}: {:?}",
        driven.status,
        driven.failure
    );
    Ok(time)
}

fn task(id: &str, about: Value) -> Value {
    json!({"id": id, "type": "mcp_tool", "tool": "do:it", "arguments": {"about": about}})
}

/// A workflow with one task for each of `count` items.
fn foreach(at_once: u32) -> Value {
    let items: Vec<u32> = (0..TASKS).collect();
    let each = json!({"id": "each", "type": "foreach", "items": items, "at_once": at_once,
                      "do": task("one", json!("{{ item }}"))});
    json!({"name": "fan", "tasks": [each], "settings": {"concurrency": at_once}})
}

/// A workflow of `count` independent tasks.
fn independent(at_once: u32) -> Value {
    let tasks: Vec<Value> = (0..TASKS).map(|at| task(&format!("t{at}"), json!(at))).collect();
    json!({"name": "fan", "tasks": tasks, "settings": {"concurrency": at_once}})
}

/// Completes every task at once without doing anything.
#[derive(Debug)]
struct NoopPerformer;

impl Performer for NoopPerformer {
    async fn perform(&self, job: Job) -> TaskOutcome {
        TaskOutcome::done(json!({"did": job.start.instance}).into())
    }

    fn is_repeatable(&self, _start: &TaskStart) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
