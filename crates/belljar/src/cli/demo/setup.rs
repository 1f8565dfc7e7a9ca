//! Sets up the demo: its MCP server as a child process, a bridge to it, and a sandbox.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use belljar_contract::{ErrorCode, RunError, RunRequest, RunResult, RunStatus};
use belljar_project::{Execution, Executor, Sandbox, now_ms};
use belljar_tools::{
    AuditTiming, Bridge, BridgeConfig, Glob, PolicyRule, RawServer, ServerSpec, Surroundings,
    ToolPolicy, Upstreams, ValueShapes, describe,
};
use tempfile::TempDir;

use super::server;
use crate::cli::{
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
            return Ok(ended(run::refused_result(&error), signals.pending().await));
        }
        Err(stop) => {
            bridge.shutdown().await;
            let error = RunError::new(ErrorCode::RunAborted, stop.name());
            return Ok(ended(
                RunResult::not_run(belljar_runtime::run_id(), RunStatus::Aborted, error),
                Some(stop),
            ));
        }
    };
    let executor = Executor::new(sandbox, Some(bridge), None);
    let mut stop = None;
    let performed = match types {
        Err(error) => Err(error),
        Ok(types) => {
            let abort = async { stop = Some(signals.received().await) };
            let execution = Execution::new(RunRequest::typescript(code), "demo");
            let run = executor.execute(execution, abort).await;
            if stop.is_none() && !run.success {
                // A terminal's signal also reaches zygote and cell, which may end first.
                stop = signals.pending().await;
            }
            Ok(DemoRun { types, ..ended(run, stop) })
        }
    };
    executor.shutdown().await;
    performed
}

/// The outcome of a run. If a signal stopped the run, the signal is the reason, whatever else went
/// wrong.
fn ended(run: RunResult, stop: Option<StopSignal>) -> DemoRun {
    let run = match stop.filter(|_| !run.success) {
        Some(stop) => {
            let error = Some(RunError::new(ErrorCode::RunAborted, stop.name()));
            RunResult { status: RunStatus::Aborted, error, ..run }
        }
        None => run,
    };
    DemoRun { types: String::new(), run, stop }
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
