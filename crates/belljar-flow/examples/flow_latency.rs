//! What durability costs a workflow: printed, never asserted.
//!
//! `cargo run --release -p belljar-flow --example flow_latency -- DIRECTORY`; the directory decides
//! which disk is measured.
#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use belljar_flow::{
    Dag, Driver, DriverOptions, DurableEngine, Embedded, Job, NewWorkflow, Outcome, Performer,
    Start, Workflows,
    engine::{Batch, EventRow, InputRow, IntentChange, Lease, LeaseRequest, NewFlow},
};
use belljar_store::Store;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

type Outcomes<T> = Result<T, Box<dyn Error>>;

const ROUNDS: u64 = 500;

#[tokio::main(worker_threads = 2)]
async fn main() -> Outcomes<()> {
    let directory = PathBuf::from(env::args_os().nth(1).ok_or("say in which directory")?);
    let directory = directory.join(format!("flows-{}", std::process::id()));
    let engine = Arc::new(Embedded::new(Store::open(&directory)?));
    for (name, size) in
        [("inputs only", None), ("20 KB snapshot", Some(20_000)), ("1 MB", Some(1_000_000))]
    {
        commits(&engine, name, size).await?;
    }
    mixed(&engine).await?;
    for (tasks, at_once) in [(1_000, 8), (1_000, 64), (10_000, 64)] {
        fan_out(&engine, tasks, at_once).await?;
    }
    drop(engine);
    for tasks in [20, 500] {
        resume(&directory, tasks).await?;
    }
    Ok(())
}

/// A checkpoint: an input of 2 KB, four events, an intent opened and one closed.
async fn commits(engine: &Embedded, name: &str, snapshot: Option<usize>) -> Outcomes<()> {
    let id = format!("commits {name}");
    let (flow, caller) = (id.clone(), "example".to_owned());
    let new = NewFlow { id: flow.clone(), name: id, caller, snapshot: vec![0; 100], created_ms: 1 };
    engine.create(new).await?;
    let owner = "example".to_owned();
    let request = LeaseRequest { owner, now_ms: 1, until_ms: 2, take_over: false };
    let lease: Lease = engine.claim(&flow, request).await?;
    let mut times = Vec::new();
    for seq in 1..=ROUNDS {
        let filled = |size: usize| seq.to_le_bytes().into_iter().cycle().take(size).collect();
        let event = |at| EventRow { seq: (seq - 1) * 4 + at, cause: seq, body: filled(150) };
        let batch = Batch {
            now_ms: 1,
            inputs: vec![InputRow {
                seq,
                checkpoint: Some("task".to_owned()),
                body: filled(2_000),
            }],
            snapshot: snapshot.map(filled),
            events: (1..=4).map(event).collect(),
            intents: vec![
                IntentChange::Close { key: format!("key {}", seq - 1), at: seq },
                IntentChange::Open { key: format!("key {seq}"), at: seq, body: filled(120) },
            ],
            ..Batch::default()
        };
        let began = Instant::now();
        engine.commit(&lease, batch).await?;
        times.push(began.elapsed());
    }
    print(&format!("checkpoint, {name}"), times);
    Ok(())
}

/// Performs nothing, at once, and notes when the first task began.
#[derive(Debug, Default)]
struct Nothing {
    first: Mutex<Option<Instant>>,
}

impl Performer for Nothing {
    async fn perform(&self, job: Job) -> Outcome {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        if job.flow.starts_with("resume") && job.start.instance == "t10" && !job.start.again {
            // The host dies while this one runs.
            job.cancel.cancelled().await;
        }
        Outcome::done(json!({"did": job.start.instance}))
    }

    fn is_repeatable(&self, _start: &Start) -> bool {
        true
    }
}

fn driver(engine: &Arc<Embedded>, performer: &Arc<Nothing>) -> Driver<Embedded, Nothing> {
    let options = DriverOptions { take_over: true, ..DriverOptions::new("example") };
    Driver::new(Arc::clone(engine), Arc::clone(performer), options)
}

async fn create(
    engine: &Arc<Embedded>,
    id: &str,
    dag: Value,
    inputs: Map<String, Value>,
) -> Outcomes<()> {
    let dag: Dag = serde_json::from_value(dag)?;
    let new = NewWorkflow {
        id: id.to_owned(),
        caller: "example".to_owned(),
        dag,
        inputs,
        files: Default::default(),
        terms: Default::default(),
    };
    Ok(Workflows::new(Arc::clone(engine)).create(new, 1).await?)
}

fn tool(id: &str, after: &[&str]) -> Value {
    json!({"id": id, "type": "mcp_tool", "tool": "do:it", "arguments": {"of": id},
           "depends_on": after})
}

/// Two in parallel, one after both, two more in a row.
async fn mixed(engine: &Arc<Embedded>) -> Outcomes<()> {
    let mut times = Vec::new();
    for round in 0..100 {
        let tasks = [
            tool("a", &[]),
            tool("b", &[]),
            tool("c", &["a", "b"]),
            tool("d", &["c"]),
            tool("e", &["d"]),
        ];
        let id = format!("mixed {round}");
        let began = Instant::now();
        create(engine, &id, json!({"name": "mixed", "tasks": tasks}), Map::new()).await?;
        driver(engine, &Arc::default()).run(&id, &CancellationToken::new()).await?;
        times.push(began.elapsed());
    }
    print("five tasks, whole", times);
    Ok(())
}

async fn fan_out(engine: &Arc<Embedded>, tasks: u32, at_once: usize) -> Outcomes<()> {
    let items: Vec<u32> = (0..tasks).collect();
    let each = json!({"id": "one", "type": "mcp_tool", "tool": "do:it",
                      "arguments": {"item": "{{ item }}"}});
    let each = json!([{"id": "each", "type": "foreach", "items": "{{ inputs.items }}",
                       "at_once": at_once, "do": each}]);
    let dag = json!({"name": "fan", "tasks": each, "settings": {"concurrency": at_once}});
    let inputs = Map::from_iter([("items".to_owned(), json!(items))]);
    let id = format!("fan {tasks} {at_once}");
    create(engine, &id, dag, inputs).await?;
    let began = Instant::now();
    let driven = driver(engine, &Arc::default()).run(&id, &CancellationToken::new()).await?;
    let took = began.elapsed();
    println!(
        "{tasks} tasks, {at_once} at once      {took:>10.3?}  {:>10.3?} a task, {} commits, {:?}",
        took / tasks,
        driven.commits,
        driven.status
    );
    Ok(())
}

/// From opening the file to the first task that runs again.
async fn resume(directory: &Path, tasks: usize) -> Outcomes<()> {
    let mut times = Vec::new();
    for round in 0..20 {
        let id = format!("resume {tasks} {round}");
        let engine = Arc::new(Embedded::new(Store::open(directory)?));
        let all: Vec<Value> = (0..tasks)
            .map(|at| if at == 10 { tool("t10", &["t1"]) } else { tool(&format!("t{at}"), &[]) })
            .collect();
        create(&engine, &id, json!({"name": "resume", "tasks": all}), Map::new()).await?;
        let first = driver(&engine, &Arc::default());
        // Everything but `t10` ends; then the host is gone.
        let never = CancellationToken::new();
        let running = first.run(&id, &never);
        let _ = tokio::time::timeout(Duration::from_millis(300 + tasks as u64 * 3), running).await;
        drop(first);
        drop(engine);
        let began = Instant::now();
        let engine = Arc::new(Embedded::new(Store::open(directory)?));
        let performer = Arc::new(Nothing::default());
        driver(&engine, &performer).run(&id, &CancellationToken::new()).await?;
        let first = *performer.first.lock().unwrap_or_else(PoisonError::into_inner);
        times.push(first.ok_or("nothing ran again")?.duration_since(began));
    }
    print(&format!("resume, {tasks} tasks"), times);
    Ok(())
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{name:<28} p50 {:>10.3?}  p95 {:>10.3?}  p99 {:>10.3?}", at(50), at(95), at(99));
}
