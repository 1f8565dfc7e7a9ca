//! The five tasks of `examples/workflows`: two tools in parallel, Python on their results, an
//! immediate approval, and one more tool. Timed on a warm host, from submission to the end.
//!
//! The tools' own time is measured with the same calls, made directly through the same bridge
//! before each workflow.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use belljar_contract::{EngineName, JsonValue, Limits};
use belljar_project::{
    ProjectWorkflows, SessionRegistry, WorkflowOptions, WorkflowPermissions, WorkflowSubmission,
};
use belljar_store::Store;
use belljar_workflow::{Dag, WorkflowCommand, WorkflowEventKind};
use belljar_workflow_formats::{self as formats, CodeExecution, FormatOptions};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    super::{Bench, row::BenchRow, stats::Times, tool_host::ToolHost},
    VERSION,
    counting_server::CountingServer,
};

const FILE: &str = include_str!("../../../examples/workflows/five-tasks.yaml");
/// Runs that do not count: they fill the pools and start the server.
const WARM_UP: u32 = 5;
/// This case is timed with this fraction of the requested number.
const SHARE: u32 = 5;
/// Timeout of one poll for events.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);
/// Events fetched per poll; more than this workflow has.
const PAGE: u32 = 500;
/// Long enough for the host to remove a used cell and park another one.
const REST: Duration = Duration::from_millis(20);

/// Measures the whole workflow, and the part that is not the tools' time.
pub(super) fn measure(
    bench: &Bench<'_>,
    project: &Path,
    python: &Path,
) -> anyhow::Result<Vec<BenchRow>> {
    let options = FormatOptions { code: CodeExecution::WithShell };
    let read = formats::read("five-tasks.yaml", FILE, &options);
    let dag = read.map_err(|faults| anyhow::anyhow!("{faults:?}"))?.dag;
    let server = CountingServer::install(project, python)?;
    let store = Store::open(&project.join("five"))?;
    let around = (project, Some(store));
    let host = ToolHost::new([EngineName::CPython], None, vec![server.spec()?], around)?;
    let workflows = host.runtime.block_on(workflows(&host, project))?;
    let n = bench.arguments.n.div_ceil(SHARE);
    let (mut whole, mut tools, mut on_top) = (Times::default(), Times::default(), Times::default());
    for round in 0..n + WARM_UP {
        bench.progress.show(&format!("workflow of five tasks: {round} of {}", n + WARM_UP));
        let time = host.runtime.block_on(once(&workflows, dag.clone()))?;
        let of_tools = host.runtime.block_on(by_hand(&host))?;
        std::thread::sleep(REST);
        if round >= WARM_UP {
            whole.add(time);
            tools.add(of_tools);
            on_top.add(time.saturating_sub(of_tools));
        }
    }
    host.runtime.block_on(workflows.stop());
    host.end();
    let row = |case, times| BenchRow::timed("workflow of five tasks", case, VERSION, times);
    Ok(vec![
        row("belljar, on top of its tools", &on_top),
        row("belljar, whole", &whole),
        row("belljar, the calls of its tools alone", &tools),
    ])
}

async fn workflows(host: &ToolHost, project: &Path) -> anyhow::Result<ProjectWorkflows> {
    let permissions = WorkflowPermissions { code: true, ..WorkflowPermissions::default() };
    let options = WorkflowOptions {
        permissions,
        ..WorkflowOptions::new(Limits::DEFAULT, project.join("scratch"))
    };
    let (sandbox, store) = (host.executor.sandbox().clone(), host.executor.store().cloned());
    let sessions = SessionRegistry::new(sandbox, store).await;
    Ok(ProjectWorkflows::new(host.executor.clone(), sessions, options).await?)
}

/// Runs one workflow from submission to its end.
async fn once(workflows: &ProjectWorkflows, dag: Dag) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let id = workflows.create(WorkflowSubmission::new(dag, "bench")).await?;
    let never = CancellationToken::new();
    let (driven, answered) = tokio::join!(workflows.run(&id, &never), say_yes(workflows, &id));
    let time = began.elapsed();
    answered?;
    let driven = driven?;
    let expected = JsonValue::from(json!({"total": 42, "appended": "total 42"}));
    ensure!(
        driven.output == expected,
        "the workflow returned {}: {:?}",
        driven.output,
        driven.failure
    );
    Ok(time)
}

/// Approves the decision as soon as the workflow requests it.
async fn say_yes(workflows: &ProjectWorkflows, id: &str) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let events = workflows.events(id, after, PAGE, EVENT_TIMEOUT).await?;
        for event in &events {
            after = event.seq;
            if let WorkflowEventKind::DecisionRequired { decision } = &event.happened {
                let command =
                    WorkflowCommand::Approve { decision: decision.id.clone(), value: None };
                workflows.send(id, None, "bench", &command).await?;
                return Ok(());
            }
            let is_over = matches!(event.happened, WorkflowEventKind::WorkflowEnded { .. });
            ensure!(!is_over, "the workflow ended without asking for a decision");
        }
        ensure!(!events.is_empty(), "the workflow wrote no event in time");
    }
}

/// The same calls without a workflow: the first two in parallel, then the third.
async fn by_hand(host: &ToolHost) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let (left, right) = (json!({"a": 20, "b": 0}), json!({"a": 22, "b": 0}));
    let (left, right) =
        tokio::join!(host.call("count__add", &left), host.call("count__add", &right));
    left.and(right).context("count__add")?;
    host.call("count__append", &json!({"text": "total 42"})).await?;
    Ok(began.elapsed())
}
