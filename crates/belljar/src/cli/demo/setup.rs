//! What the demo is performed on: its server, started as any server is, a bridge to it, a sandbox.

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

/// The demo's server, as code names it.
const SERVER: &str = "github";
/// The hidden subcommand that is the server.
const SERVER_ARGUMENT: &str = "__demo-server";
/// This program, even when its file was replaced since it started.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// How the demo went.
#[derive(Debug)]
pub(super) struct DemoRun {
    /// What code is told of the tool.
    pub(super) types: String,
    pub(super) run: RunResult,
    /// The signal that ended it, if one did.
    pub(super) stop: Option<StopSignal>,
}

/// Performs the demo and clears everything away.
pub(super) async fn perform(code: &str) -> anyhow::Result<DemoRun> {
    let mut signals = SignalListener::listen()?;
    let remembered = tempfile::tempdir().context("could not make a directory for the demo")?;
    let bridge = bridge(&remembered)?;
    // The server starts while the sandbox does.
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
                // A terminal's signal reaches zygote and cell too, and may be seen there first.
                stop = signals.pending().await;
            }
            Ok(DemoRun { types, ..ended(run, stop) })
        }
    };
    executor.shutdown().await;
    performed
}

/// A run that was perhaps stopped; then, whatever else it ended with, the signal was the reason.
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

/// A bridge to the demo's server and nothing else; what is known of it is kept in this directory.
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

/// The tool as code sees it, made from what the server says of it.
async fn types(bridge: &Bridge) -> anyhow::Result<String> {
    let (catalogue, failures) = bridge.catalogue().await;
    if let Some(failure) = failures.into_iter().next() {
        return Err(failure.into());
    }
    let tool = catalogue
        .resolve(Some(SERVER), server::LIST)
        .map_err(|error| anyhow::anyhow!("the demo's server lacks a tool: {error}"))?;
    Ok(describe(&catalogue, tool, &ValueShapes::default()))
}
