//! A project of a test's own: a store, and a server inside the test that counts what happens.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use belljar_contract::{Language, RunRequest, RunResult};
use belljar_project::{Execution, Executor, Sandbox, now_ms};
use belljar_store::Store;
use belljar_tools::{
    Annotations, AuditTiming, Bridge, BridgeConfig, LocalOutcome, LocalServer, Tool, ToolPolicy,
    Upstreams,
};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::zygote::zygote;

/// The effects of the server, in order.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) done: Mutex<Vec<String>>,
    under_way: AtomicU32,
    most_under_way: AtomicU32,
    /// Whether `held` may go on.
    pub(crate) gate: Gate,
}

/// Closed until a permit is added.
#[derive(Debug)]
pub(crate) struct Gate(pub(crate) Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Effects {
    pub(crate) fn list(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }

    pub(crate) fn most_under_way(&self) -> u32 {
        self.most_under_way.load(Ordering::SeqCst)
    }

    fn note(&self, what: &str) {
        self.done.lock().unwrap().push(what.to_owned());
    }
}

/// `note(text)` has an effect; `add(a, b)` has none; `slow(ms)` waits; `held(text)` has its effect
/// and then waits at the gate; `fail(message)` fails; `rows(n)` gives many.
#[derive(Debug)]
pub(crate) struct TestServer {
    effects: Arc<Effects>,
    tools: Arc<Vec<Tool>>,
}

impl TestServer {
    fn new(effects: Arc<Effects>) -> Self {
        let tool = |name: &str, read_only, fields: Value, required: &[&str]| Tool {
            description: Some(format!("{name} of the test")),
            input_schema: json!({
                "type": "object", "properties": fields, "required": required,
                "additionalProperties": false,
            }),
            annotations: Annotations {
                read_only: Some(read_only),
                destructive: Some(false),
                ..Annotations::default()
            },
            ..Tool::bare("test", name)
        };
        let (number, text) = (json!({ "type": "number" }), json!({ "type": "string" }));
        let tools = vec![
            tool("add", true, json!({ "a": number, "b": number }), &["a", "b"]),
            tool("note", false, json!({ "text": text }), &["text"]),
            tool("slow", true, json!({ "ms": number }), &["ms"]),
            tool("held", false, json!({ "text": text }), &["text"]),
            tool("fail", true, json!({ "message": text }), &["message"]),
            tool("rows", true, json!({ "n": number }), &["n"]),
        ];
        Self { effects, tools: Arc::new(tools) }
    }
}

impl LocalServer for TestServer {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.tools.clone()
    }

    fn call(&self, tool: &str, arguments: Map<String, Value>) -> LocalOutcome {
        let (tool, effects) = (tool.to_owned(), self.effects.clone());
        Box::pin(async move {
            let number = |name: &str| arguments[name].as_u64().unwrap();
            let text = |name: &str| arguments[name].as_str().unwrap();
            match tool.as_str() {
                "add" => Ok(json!(number("a") + number("b"))),
                "note" => {
                    effects.note(text("text"));
                    Ok(json!({ "noted": text("text") }))
                }
                "slow" => {
                    let now = effects.under_way.fetch_add(1, Ordering::SeqCst) + 1;
                    effects.most_under_way.fetch_max(now, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(number("ms"))).await;
                    effects.under_way.fetch_sub(1, Ordering::SeqCst);
                    Ok(json!(number("ms")))
                }
                "held" => {
                    effects.note(text("text"));
                    let _permit = effects.gate.0.acquire().await.unwrap();
                    Ok(json!("held"))
                }
                "fail" => Err(text("message").to_owned()),
                "rows" => {
                    let row = |n: u64| json!({ "n": n, "name": format!("row {n}"), "even": n.is_multiple_of(2) });
                    Ok((0..number("n")).map(row).collect::<Vec<_>>().into())
                }
                other => panic!("no tool {other}"),
            }
        })
    }
}

/// An executor, what its server did, and where its store is.
pub(crate) struct Project {
    pub(crate) executor: Executor,
    pub(crate) store: Store,
    pub(crate) effects: Arc<Effects>,
    pub(crate) directory: tempfile::TempDir,
}

impl Project {
    /// A project with this policy, as `[permissions]` has it.
    pub(crate) async fn new(policy: Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::at(directory, policy, Arc::default()).await
    }

    async fn at(directory: tempfile::TempDir, policy: Value, effects: Arc<Effects>) -> Self {
        let store = Store::open(directory.path()).unwrap();
        let bridge = bridge(directory.path(), policy, &store, effects.clone());
        let sandbox = Sandbox::builder().program(zygote()).pool(1).build().await.unwrap();
        let executor = Executor::new(sandbox, Some(bridge), Some(store.clone()));
        Self { executor, store, effects, directory }
    }

    /// The same project after its host has gone: another executor on the same store.
    pub(crate) async fn restarted(self, policy: Value) -> Self {
        let Self { executor, store, effects, directory } = self;
        executor.shutdown().await;
        drop(store);
        Self::at(directory, policy, effects).await
    }

    /// Runs code with the tools policy allows.
    pub(crate) async fn run(&self, language: Language, code: &str) -> RunResult {
        self.execute(execution(language, code)).await
    }

    pub(crate) async fn execute(&self, execution: Execution) -> RunResult {
        self.executor.execute(execution, std::future::pending()).await
    }
}

pub(crate) fn execution(language: Language, code: &str) -> Execution {
    Execution::new(RunRequest::new(language, code), "test")
}

fn bridge(directory: &Path, policy: Value, store: &Store, effects: Arc<Effects>) -> Bridge {
    let policy: ToolPolicy = serde_json::from_value(policy).unwrap();
    let server: Arc<dyn LocalServer> = Arc::new(TestServer::new(effects));
    Bridge::new(BridgeConfig {
        upstreams: Upstreams::new([], directory, zygote()),
        local: BTreeMap::from([("test".to_owned(), server)]),
        policy,
        kept: None,
        store: Some(store.clone()),
        approval_timeout: Duration::from_secs(5),
        audit: AuditTiming::default(),
        now_ms,
    })
}

/// Runs a test to its end.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(test)
}
