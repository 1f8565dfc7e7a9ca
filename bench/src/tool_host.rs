//! Hosts with tools: a minimal MCP server inside this program, a bridge to it, and a sandbox whose
//! code calls it.

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use belljar_contract::{EngineName, RunRequest, RunResult};
use belljar_project::{Execution, Executor, RunDurability, now_ms};
use belljar_store::Store;
use belljar_tools::{
    Annotations, AuditTiming, Bridge, BridgeConfig, CallArguments, Glob, LocalOutcome, LocalServer,
    NoObserver, PolicyRule, RawServer, RunContext, ServerSpec, Surroundings, Tool, ToolGrants,
    ToolPolicy, Upstreams,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::warm_host_of;

/// Generous timeout: servers may need long for large results.
pub(super) const TOOL_TIMEOUT: Duration = Duration::from_secs(300);
/// The server's name in code.
const SERVER: &str = "bench";
/// The path of this executable, even if the file was replaced since it started.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A warm host with tools.
pub(super) struct ToolHost {
    pub(super) runtime: Runtime,
    pub(super) executor: Executor,
}

impl ToolHost {
    /// Starts a host with these servers and allows all their tools. Without a store it records
    /// nothing.
    pub(super) fn new(
        ready: impl IntoIterator<Item = EngineName>,
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
            kept: None,
            store: store.clone(),
            approval_timeout: Duration::ZERO,
            audit: AuditTiming::default(),
            now_ms,
        });
        Ok(Self { runtime, executor: Executor::new(sandbox, Some(bridge), store) })
    }

    /// Runs a request to its end and returns its total time; a failed run is an error.
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

    /// Calls a tool directly, without code, and returns its result.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> anyhow::Result<Vec<u8>> {
        let context = RunContext {
            session: None,
            run_id: "bench".into(),
            caller: "bench".to_owned(),
            grants: ToolGrants::default(),
            tool_timeout: TOOL_TIMEOUT,
            code: String::new(),
            observer: Arc::new(NoObserver),
        };
        let bridge = self.executor.bridge().context("the host has no bridge to tools")?;
        let call =
            bridge.call(&context, tool, CallArguments::parse(arguments.to_string().into_bytes()));
        let value = call.await.map_err(|fault| anyhow::anyhow!(fault.message))?;
        Ok(value.into_json())
    }

    /// Ends the host and all its processes.
    pub(super) fn end(self) {
        self.runtime.block_on(self.executor.shutdown());
    }
}

/// The configuration of a server that this program can start.
pub(super) fn spec(name: &str, raw: RawServer, directory: &Path) -> anyhow::Result<ServerSpec> {
    let variables: BTreeMap<String, String> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Ok(ServerSpec::check(name, raw, Surroundings { variables: &variables, directory })?)
}

/// A server with two tools: `add(a, b)` adds, and `records()` returns the prepared data.
#[derive(Debug)]
pub(super) struct InProcessServer {
    tools: Arc<Vec<Tool>>,
    arrivals: Mutex<Vec<Instant>>,
    prepared: Mutex<Option<Value>>,
}

impl InProcessServer {
    pub(super) fn new() -> Arc<Self> {
        let tool = |name: &str, properties: Value| Tool {
            input_schema: json!({
                "type": "object", "properties": properties, "additionalProperties": false,
            }),
            annotations: Annotations { read_only: Some(true), ..Annotations::default() },
            ..Tool::bare(SERVER, name)
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

    /// Takes the times between consecutive calls since the last time this was called.
    pub(super) fn intervals(&self) -> Vec<Duration> {
        let arrivals = std::mem::take(&mut *lock(&self.arrivals));
        let pairs = arrivals.iter().zip(arrivals.iter().skip(1));
        pairs.map(|(one, next)| next.duration_since(*one)).collect()
    }

    /// Sets the data that the next call of `records` returns, once.
    pub(super) fn prepare(&self, records: Value) {
        *lock(&self.prepared) = Some(records);
    }

    fn answer(&self, tool: &str, arguments: &Map<String, Value>) -> anyhow::Result<Value> {
        if tool == "records" {
            return lock(&self.prepared).take().context("no records are prepared");
        }
        let number = |name| {
            arguments.get(name).and_then(Value::as_i64).context("an argument is not a number")
        };
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
