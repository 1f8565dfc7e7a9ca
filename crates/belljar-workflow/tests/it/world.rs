//! A world in memory: what was done in it can be counted, and it can stop a host at any point.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use belljar_contract::{JsonMap, JsonValue, exact_json};
use belljar_store::Store;
use belljar_workflow::{
    Dag, Driver, DriverClock, DriverOptions, Job, NewWorkflow, Performer, SqliteWorkflowStore,
    TaskFailure, TaskOutcome, TaskStart, TaskWork, WhenIdle, WorkflowEvent, Workflows,
};
use tokio::sync::Notify;

/// An effect that took place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PerformedTask {
    pub(crate) key: String,
    pub(crate) instance: String,
    pub(crate) tool: String,
    pub(crate) arguments: JsonValue,
}

/// Where hosts die: at the point with this number, over all points passed.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    passed: AtomicUsize,
    at: Option<usize>,
    killed: Notify,
}

impl Fate {
    pub(crate) fn at(point: usize) -> Arc<Self> {
        Arc::new(Self { at: Some(point), ..Self::default() })
    }

    /// Passes a point. Whether the host dies there.
    pub(crate) fn strikes(&self) -> bool {
        let strikes = Some(self.passed.fetch_add(1, Ordering::SeqCst)) == self.at;
        if strikes {
            self.killed.notify_one();
        }
        strikes
    }

    pub(crate) async fn killed(&self) {
        self.killed.notified().await;
    }
}

/// Tools that are said to `read` may be repeated; `slow` ones end when they are released or
/// cancelled; `stubborn` ones do not even end when they are cancelled; `bad` ones fail, as do those
/// whose arguments say so.
#[derive(Debug, Default)]
pub(crate) struct World {
    begun: Mutex<Vec<(String, bool)>>,
    done: Mutex<Vec<PerformedTask>>,
    fate: Option<Arc<Fate>>,
    released: Notify,
    began: Notify,
}

impl World {
    pub(crate) fn with_fate(fate: Arc<Fate>) -> Arc<Self> {
        Arc::new(Self { fate: Some(fate), ..Self::default() })
    }

    pub(crate) fn done(&self) -> Vec<PerformedTask> {
        self.done.lock().unwrap().clone()
    }

    /// The work that was begun, and whether another host may have begun it before.
    pub(crate) fn begun(&self) -> Vec<(String, bool)> {
        self.begun.lock().unwrap().clone()
    }

    /// How often each instance was done.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for done in self.done() {
            *counts.entry(done.instance).or_default() += 1;
        }
        counts
    }

    /// Keeps what was done, for another host.
    pub(crate) fn survives(&self) -> Arc<Self> {
        Arc::new(Self { done: Mutex::new(self.done()), ..Self::default() })
    }

    /// As before, for a host that dies.
    pub(crate) fn survives_with(&self, fate: Arc<Fate>) -> Arc<Self> {
        Arc::new(Self { done: Mutex::new(self.done()), fate: Some(fate), ..Self::default() })
    }

    /// Lets one slow task end.
    pub(crate) fn release(&self) {
        self.released.notify_one();
    }

    /// Waits until a slow task has begun.
    pub(crate) async fn began(&self) {
        self.began.notified().await;
    }

    async fn pass(&self) {
        if self.fate.as_ref().is_some_and(|fate| fate.strikes()) {
            std::future::pending::<()>().await;
        }
    }
}

impl Performer for World {
    async fn perform(&self, job: Job) -> TaskOutcome {
        self.begun.lock().unwrap().push((job.start.instance.clone(), job.start.again));
        self.pass().await;
        let TaskWork::McpTool(call) = &job.start.work else {
            return TaskOutcome::failed(TaskFailure::new("test", "only tools"));
        };
        if call.tool.starts_with("slow") || call.tool.starts_with("stubborn") {
            self.began.notify_one();
            tokio::select! {
                () = self.released.notified() => {}
                () = job.cancel.cancelled(), if call.tool.starts_with("slow") => {
                    return TaskOutcome::failed(TaskFailure::new("cancelled", "it was cancelled"));
                }
            }
        }
        if call.tool.starts_with("bad") || call.arguments.get("fail") == Some(&exact_json!(true)) {
            return TaskOutcome::failed(TaskFailure::new("bad", "it is bad"));
        }
        let arguments = JsonValue::Object(call.arguments.clone());
        self.done.lock().unwrap().push(PerformedTask {
            key: job.start.key.clone(),
            instance: job.start.instance.clone(),
            tool: call.tool.clone(),
            arguments: arguments.clone(),
        });
        self.pass().await;
        TaskOutcome::done(exact_json!({"did": job.start.instance, "with": arguments}))
    }

    fn is_repeatable(&self, start: &TaskStart) -> bool {
        matches!(&start.work, TaskWork::McpTool(call) if call.tool.contains("read"))
    }
}

/// A clock that tests move.
#[derive(Debug, Clone)]
pub(crate) struct TestClock {
    now_ms: Arc<AtomicI64>,
    /// By how much the wall has been set to show something else.
    set_by_ms: Arc<AtomicI64>,
    moved: Arc<Notify>,
}

impl TestClock {
    pub(crate) fn new() -> Self {
        let now_ms = Arc::new(AtomicI64::new(1_000_000));
        Self { now_ms, set_by_ms: Arc::default(), moved: Arc::default() }
    }

    /// Somebody sets the clock on the wall; time itself passes as ever.
    pub(crate) fn set_wall(&self, by_ms: i64) {
        self.set_by_ms.fetch_add(by_ms, Ordering::SeqCst);
    }

    pub(crate) fn advance(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
        self.moved.notify_waiters();
    }
}

impl DriverClock for TestClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn wall_ms(&self) -> i64 {
        self.now_ms() + self.set_by_ms.load(Ordering::SeqCst)
    }

    async fn sleep_until(&self, at_ms: i64) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.now_ms() >= at_ms {
                return;
            }
            moved.await;
        }
    }
}

pub(crate) fn store(directory: &Path) -> Arc<SqliteWorkflowStore> {
    Arc::new(SqliteWorkflowStore::new(Store::open(directory).unwrap()))
}

/// A driver that leaves when only a command can change anything.
pub(crate) fn options(owner: &str) -> DriverOptions {
    DriverOptions { idle: WhenIdle::Leave, ..DriverOptions::new(owner) }
}

pub(crate) fn driver(
    store: &Arc<SqliteWorkflowStore>,
    world: &Arc<World>,
    owner: &str,
) -> Driver<SqliteWorkflowStore, World> {
    Driver::new(Arc::clone(store), Arc::clone(world), options(owner))
}

/// A workflow of tools, from JSON.
pub(crate) fn dag(tasks: JsonValue) -> Dag {
    belljar_contract::json_value::from_value(exact_json!({"name": "test", "tasks": tasks})).unwrap()
}

pub(crate) fn tool(id: &str, tool: &str, after: &[&str]) -> JsonValue {
    let arguments = exact_json!({"of": id});
    exact_json!({"id": id, "type": "mcp_tool", "tool": tool, "arguments": arguments, "depends_on": after})
}

/// Makes a workflow.
pub(crate) async fn create(
    store: &Arc<SqliteWorkflowStore>,
    id: &str,
    dag: Dag,
) -> Workflows<SqliteWorkflowStore> {
    create_with(store, id, dag, JsonMap::new()).await
}

pub(crate) async fn create_with(
    store: &Arc<SqliteWorkflowStore>,
    id: &str,
    dag: Dag,
    inputs: JsonMap,
) -> Workflows<SqliteWorkflowStore> {
    let flows = Workflows::new(Arc::clone(store));
    let new = NewWorkflow {
        id: id.to_owned(),
        caller: "test".to_owned(),
        dag,
        inputs,
        files: Default::default(),
        terms: Default::default(),
    };
    flows.create(new, 1).await.unwrap();
    flows
}

/// All events, which must have no gap and no repetition.
pub(crate) async fn events(
    flows: &Workflows<SqliteWorkflowStore>,
    flow: &str,
) -> Vec<WorkflowEvent> {
    let events = flows.events(flow, 0, 100_000, Duration::ZERO).await.unwrap();
    for (at, event) in (1..).zip(&events) {
        assert_eq!(event.seq, at, "a gap in the events");
    }
    events
}
