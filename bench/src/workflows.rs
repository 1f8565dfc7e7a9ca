//! `workflows`: the cost of durability for a graph of tasks, on the disk of the current directory.
//!
//! A checkpoint is the commit after a task. The five tasks are those of `examples/workflows`, with
//! a real MCP server, a real cell and an immediate approval. With a thousand tasks that do nothing,
//! only the scheduling remains. The last case resumes a workflow in a new process after its host
//! was killed.

mod checkpoint;
mod counting_server;
mod fan_out;
mod five;
mod langgraph;
mod resume;

use anyhow::Context as _;

use super::{Bench, python_peer::PythonPeer, row::BenchRow, tools};
use langgraph::LangGraph;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs all workflow benchmarks.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let project = tools::project(bench.scratch.path());
    let directory = project.context("cannot create a directory for workflows")?;
    let project = std::path::absolute(directory.path())?;
    let python = PythonPeer::of(bench);
    let peer = python.as_ref().and_then(|python| LangGraph::of(bench, python, &project));
    let mut rows = checkpoint::measure(bench, &project, peer.as_ref())?;
    if let Some(python) = &python {
        rows.extend(five::measure(bench, &project, &python.program)?);
    }
    rows.extend(fan_out::measure(bench, &project, peer.as_ref())?);
    if let Some(python) = &python {
        rows.extend(resume::measure(bench, &project, &python.program, peer.as_ref())?);
    }
    Ok(rows)
}
