//! Sets up the demo: its MCP server as a child process, a bridge to it, and a sandbox.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use belljar_contract::{RunRequest, RunResult};
use belljar_project::{Execution, Executor, Sandbox, now_ms};
use belljar_tools::{
    AuditTiming, Bridge, BridgeConfig, Glob, PolicyRule, RawServer, ServerSpec, Surroundings,
    ToolPolicy, Upstreams, ValueShapes, describe,
};
use tempfile::TempDir;

use super::server;
use crate::cli::{
    launch::{stopped_result, wait_for_stop},
    run,
    signals::{SignalListener, StopSignal},
};

/// Name of the demo's server in code.
const SERVER: &str = "github";
/// The hidden subcommand that runs the server.
const SERVER_ARGUMENT: &str = "__demo-server";
/// The running program, even if its file was replaced since it started.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The outcome of the demo.
#[derive(Debug)]
pub(super) struct DemoRun {
    /// Type declaration of the tool.
    pub(super) types: String,
    pub(super) run: RunResult,
    /// The signal that ended the demo, if any.
    pub(super) stop: Option<StopSignal>,
}

/// Runs the demo and shuts everything down.
pub(super) async fn perform(code: &str) -> anyhow::Result<DemoRun> {
    let mut signals = SignalListener::listen()?;
    let remembered = tempfile::tempdir().context("cannot create a directory for the demo")?;
    let bridge = bridge(&remembered)?;
    // The server and the sandbox start in parallel.
    let begin = async { tokio::join!(types(&bridge), Sandbox::builder().pool(1).build()) };
    let begun = tokio::select! {
        biased;
        stop = signals.received() => Err(stop),
        begun = begin => Ok(begun),
    };
    let (types, sandbox) = match begun {
        Ok((types, Ok(sandbox))) => (types, sandbox),
        Ok((_, Err(error))) => {
            bridge.shutdown().await;
            // A terminal's signal also reaches the zygote, which may end first.
            return Ok(match signals.pending().await {
                Some(stop) => DemoRun::stopped_by(stop),
                None => DemoRun::of(run::refused_result(&error), None),
            });
        }
        Err(stop) => {
            bridge.shutdown().await;
            return Ok(DemoRun::stopped_by(stop));
        }
    };
    let executor = Executor::new(sandbox, Some(bridge), None);
    let mut stop = None;
    let performed = match types {
        Err(error) => Err(error),
        Ok(types) => {
            let abort = async { stop = Some(wait_for_stop(&mut signals, &executor).await) };
            let execution = Execution::new(RunRequest::typescript(code), "demo");
            let run = executor.execute(execution, abort).await;
            Ok(DemoRun { types, ..DemoRun::of(run, stop) })
        }
    };
    executor.shutdown().await;
    performed
}

impl DemoRun {
    fn of(run: RunResult, stop: Option<StopSignal>) -> Self {
        Self { types: String::new(), run, stop }
    }

    /// The outcome if a signal came before the run.
    fn stopped_by(stop: StopSignal) -> Self {
        Self::of(stopped_result(stop), Some(stop))
    }
}

/// A bridge to the demo's server only; the tool list is cached in this directory.
fn bridge(remembered: &TempDir) -> anyhow::Result<Bridge> {
    let raw = RawServer {
        command: Some(THIS_PROGRAM.to_owned()),
        args: vec![SERVER_ARGUMENT.to_owned()],
        ..RawServer::default()
    };
    let around = Surroundings { variables: &BTreeMap::new(), directory: remembered.path() };
    let spec = ServerSpec::check(SERVER, raw, around)?;
    let allowed = PolicyRule::new(Glob::new(format!("{SERVER}__*")))?;
    Ok(Bridge::new(BridgeConfig {
        upstreams: Upstreams::new([spec], remembered.path(), THIS_PROGRAM),
        local: BTreeMap::new(),
        policy: ToolPolicy { allow: vec![allowed], ..ToolPolicy::default() },
        kept: None,
        store: None,
        approval_timeout: Duration::ZERO,
        audit: AuditTiming::default(),
        now_ms,
    }))
}

/// The tool's type declaration, generated from the server's schema.
async fn types(bridge: &Bridge) -> anyhow::Result<String> {
    let (catalogue, failures) = bridge.catalogue().await;
    if let Some(failure) = failures.into_iter().next() {
        return Err(failure.into());
    }
    let tool = catalogue
        .resolve(Some(SERVER), server::LIST)
        .map_err(|error| anyhow::anyhow!("the demo's server has no such tool: {error}"))?;
    Ok(describe(&catalogue, tool, &ValueShapes::default()))
}
