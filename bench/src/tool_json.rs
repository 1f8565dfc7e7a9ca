//! 10 MB of JSON as a tool result, parsed, filtered and grouped into a small answer; compared with
//! Deno, which reads the same data from its standard input.

use std::time::Duration;

use anyhow::Context as _;
use belljar_contract::{EngineName, RunRequest};
use belljar_project::RunDurability;
use serde_json::Value;

use super::{
    Bench, json,
    json::DenoTimes,
    row::BenchRow,
    stats::Times,
    tool_host::{InProcessServer, ToolHost},
};

/// Divisor for the number of runs: plain calls are timed by the thousand, and each of these runs
/// takes as long as a thousand of them.
const MOST: u32 = 50;
/// Name of the benchmark in the rows.
const NAME: &str = "tool result of 10 MB";

/// Measures the whole run.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let n = bench.arguments.n.div_ceil(json::FEWER).min(MOST);
    let data = json::data(bench)?;
    let records: Value = serde_json::from_str(data.get()).context("the data is not JSON")?;
    let server = InProcessServer::new();
    let around = (bench.scratch.path(), None);
    let host = ToolHost::new([EngineName::QuickJs], Some(server.clone()), Vec::new(), around)?;
    let code = format!("const records = await mcp.bench.records();\n{}return answer;", json::WORK);
    let once = || -> anyhow::Result<(Duration, String)> {
        // Prepared before the timer starts: producing the data is the tool's time, not Belljar's.
        server.prepare(records.clone());
        let request = RunRequest::typescript(code.as_str());
        let (time, result) = host.run(request, RunDurability::IfAsked)?;
        Ok((time, result.result.get().to_owned()))
    };
    let mut answer = String::new();
    for _ in 0..json::WARM_UP {
        answer = once()?.1;
    }
    let mut ours = Times::default();
    let mut theirs = DenoTimes::new(bench)?;
    for round in 0..n {
        bench.progress.show(&format!("{NAME}: round {} of {n}", round + 1));
        ours.add(once()?.0);
        theirs.round(bench, data.get().as_bytes(), &answer)?;
    }
    host.end();
    let mut rows =
        vec![BenchRow::timed(NAME, "belljar typescript", env!("CARGO_PKG_VERSION"), &ours)];
    rows.extend(theirs.into_rows(bench, NAME));
    Ok(rows)
}
