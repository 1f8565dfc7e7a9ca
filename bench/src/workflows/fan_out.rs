//! A thousand tasks that do nothing, as a fan-out and as tasks of their own: what is left is the
//! scheduling, journal included, divided by the thousand.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use belljar_store::Store;
use belljar_workflow::{
    Dag, Driver, DriverOptions, Job, NewWorkflow, Performer, SqliteWorkflowStore, TaskOutcome,
    TaskStart, WorkflowStatus, Workflows,
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

/// How many.
const TASKS: u32 = 1_000;
/// How many of them at once.
const AT_ONCE: [u32; 2] = [8, 64];

/// Measures both shapes.
pub(super) fn measure(
    bench: &Bench<'_>,
    project: &Path,
    peer: Option<&LangGraph>,
) -> anyhow::Result<Vec<BenchRow>> {
    let runtime = runtime()?;
    let engine = Arc::new(SqliteWorkflowStore::new(Store::open(&project.join("fan-out"))?));
    let mut rows = Vec::new();
    for at_once in AT_ONCE {
        let mut cases = Vec::new();
        let shapes = [("foreach", foreach(at_once)), ("tasks of their own", independent(at_once))];
        for (shape, dag) in shapes {
            let dag: Dag = serde_json::from_value(dag).context("no workflow")?;
            let (runtime, engine) = (&runtime, &engine);
            let mut made = 0_u32;
            cases.push(TimedCase::new(
                &format!("belljar {shape}"),
                VERSION,
                Frequency::Seldom,
                move || {
                    made += 1;
                    let whole = once(engine, dag.clone(), format!("{shape} {at_once} {made}"));
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

/// One workflow, from nothing to its end.
async fn once(engine: &Arc<SqliteWorkflowStore>, dag: Dag, id: String) -> anyhow::Result<Duration> {
    let new = NewWorkflow {
        id: id.clone(),
        caller: "bench".to_owned(),
        dag,
        inputs: Default::default(),
        files: Default::default(),
        terms: Default::default(),
    };
    let began = Instant::now();
    Workflows::new(Arc::clone(engine)).create(new, 1).await?;
    let driver =
        Driver::new(Arc::clone(engine), Arc::new(NoopPerformer), DriverOptions::new("bench"));
    let driven = driver.run(&id, &CancellationToken::new()).await?;
    let time = began.elapsed();
    ensure!(
        driven.status == WorkflowStatus::Completed,
        "it {:?}: {:?}",
        driven.status,
        driven.failure
    );
    Ok(time)
}

fn task(id: &str, about: Value) -> Value {
    json!({"id": id, "type": "mcp_tool", "tool": "do:it", "arguments": {"about": about}})
}

/// One task for each of so many items.
fn foreach(at_once: u32) -> Value {
    let items: Vec<u32> = (0..TASKS).collect();
    let each = json!({"id": "each", "type": "foreach", "items": items, "at_once": at_once,
                      "do": task("one", json!("{{ item }}"))});
    json!({"name": "fan", "tasks": [each], "settings": {"concurrency": at_once}})
}

/// So many tasks that do not depend on each other.
fn independent(at_once: u32) -> Value {
    let tasks: Vec<Value> = (0..TASKS).map(|at| task(&format!("t{at}"), json!(at))).collect();
    json!({"name": "fan", "tasks": tasks, "settings": {"concurrency": at_once}})
}

/// Performs nothing, at once.
#[derive(Debug)]
struct NoopPerformer;

impl Performer for NoopPerformer {
    async fn perform(&self, job: Job) -> TaskOutcome {
        TaskOutcome::done(json!({"did": job.start.instance}))
    }

    fn is_repeatable(&self, _start: &TaskStart) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
