//! Hosts with tools: a server inside this program that does next to nothing, a bridge to it, and a
//! sandbox whose code calls it.

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use belljar_contract::{Language, RunRequest, RunResult};
use belljar_project::{Execution, Executor, RunDurability, now_ms};
use belljar_store::Store;
use belljar_tools::{
    Annotations, AuditTiming, Bridge, BridgeConfig, Glob, LocalOutcome, LocalServer, NoObserver,
    PolicyRule, RawServer, RunContext, ServerSpec, Surroundings, Tool, ToolGrants, ToolPolicy,
    Upstreams,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::warm_host_of;

/// Servers of a benchmark may take their time over big results.
pub(super) const TOOL_TIMEOUT: Duration = Duration::from_secs(300);
/// The server, as code names it.
const SERVER: &str = "bench";
/// This program, even when its file was replaced since it started.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A warm host with tools.
pub(super) struct ToolHost {
    pub(super) runtime: Runtime,
    pub(super) executor: Executor,
}

impl ToolHost {
    /// A host with these servers, all of whose tools are allowed. Without a store nothing is
    /// written down.
    pub(super) fn new(
        ready: impl IntoIterator<Item = Language>,
        server: Option<Arc<InProcessServer>>,
        specs: Vec<ServerSpec>,
        (remembered, store): (&Path, Option<Store>),
    ) -> anyhow::Result<Self> {
        let (runtime, sandbox) = warm_host_of(ready)?;
        let local = server.map(|server| (SERVER.to_owned(), server as Arc<dyn LocalServer>));
        let upstreams = {
            let _entered = runtime.enter();
            Upstreams::new(specs, remembered, THIS_PROGRAM)
        };
        let bridge = Bridge::new(BridgeConfig {
            upstreams,
            local: local.into_iter().collect::<BTreeMap<_, _>>(),
            policy: ToolPolicy {
                allow: vec![PolicyRule::new(Glob::new("*"))?],
                ..ToolPolicy::default()
            },
            store: store.clone(),
            approval_timeout: Duration::ZERO,
            audit: AuditTiming::default(),
            now_ms,
        });
        Ok(Self { runtime, executor: Executor::new(sandbox, Some(bridge), store) })
    }

    /// Runs a request to its end and gives its whole time; a run that fails is an error.
    pub(super) fn run(
        &self,
        request: RunRequest,
        durability: RunDurability,
    ) -> anyhow::Result<(Duration, RunResult)> {
        let execution = Execution { durability, ..Execution::new(request, "bench") };
        let began = Instant::now();
        let run = self.executor.execute(execution, std::future::pending());
        let result = self.runtime.block_on(run);
        let time = began.elapsed();
        match &result.error {
            None => Ok((time, result)),
            Some(error) => bail!("the run failed: {}", error.message),
        }
    }

    /// Calls a tool directly, without code, and gives what it answers.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> anyhow::Result<Vec<u8>> {
        let context = RunContext {
            run_id: "bench".to_owned(),
            caller: "bench".to_owned(),
            grants: ToolGrants::default(),
            tool_timeout: TOOL_TIMEOUT,
            code: String::new(),
            observer: Arc::new(NoObserver),
        };
        let bridge = self.executor.bridge().context("no bridge")?;
        let call = bridge.call(&context, tool, arguments.to_string().into_bytes());
        call.await.map_err(|fault| anyhow::anyhow!(fault.message))
    }

    /// Ends the host and everything it holds.
    pub(super) fn end(self) {
        self.runtime.block_on(self.executor.shutdown());
    }
}

/// A server as it would be started from here.
pub(super) fn spec(name: &str, raw: RawServer, directory: &Path) -> anyhow::Result<ServerSpec> {
    let variables: BTreeMap<String, String> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Ok(ServerSpec::check(name, raw, Surroundings { variables: &variables, directory })?)
}

/// `add(a, b)` adds, and `records()` gives what was prepared for it.
#[derive(Debug)]
pub(super) struct InProcessServer {
    tools: Arc<Vec<Tool>>,
    arrivals: Mutex<Vec<Instant>>,
    prepared: Mutex<Option<Value>>,
}

impl InProcessServer {
    pub(super) fn new() -> Arc<Self> {
        let tool = |name: &str, properties: Value| Tool {
            server: SERVER.to_owned(),
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: json!({
                "type": "object", "properties": properties, "additionalProperties": false,
            }),
            output_schema: None,
            annotations: Annotations { read_only: Some(true), ..Annotations::default() },
        };
        let number = json!({ "type": "number" });
        let tools =
            vec![tool("add", json!({ "a": number, "b": number })), tool("records", json!({}))];
        Arc::new(Self {
            tools: Arc::new(tools),
            arrivals: Mutex::default(),
            prepared: Mutex::default(),
        })
    }

    /// The times between calls that followed each other, since this was last asked.
    pub(super) fn intervals(&self) -> Vec<Duration> {
        let arrivals = std::mem::take(&mut *lock(&self.arrivals));
        let pairs = arrivals.iter().zip(arrivals.iter().skip(1));
        pairs.map(|(one, next)| next.duration_since(*one)).collect()
    }

    /// What `records` is going to give, once.
    pub(super) fn prepare(&self, records: Value) {
        *lock(&self.prepared) = Some(records);
    }

    fn answer(&self, tool: &str, arguments: &Map<String, Value>) -> anyhow::Result<Value> {
        if tool == "records" {
            return lock(&self.prepared).take().context("nothing is prepared");
        }
        let number = |name| arguments.get(name).and_then(Value::as_i64).context("no number");
        Ok(json!(number("a")? + number("b")?))
    }
}

impl LocalServer for InProcessServer {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.tools.clone()
    }

    fn call(&self, tool: &str, arguments: Map<String, Value>) -> LocalOutcome {
        lock(&self.arrivals).push(Instant::now());
        let outcome = self.answer(tool, &arguments).map_err(|error| error.to_string());
        Box::pin(std::future::ready(outcome))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
