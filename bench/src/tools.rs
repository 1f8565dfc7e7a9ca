//! `tools`: calls from code to a tool inside this program, one after the other.
//!
//! The code itself times plain calls. In a durable run the clock stands still between inputs, so
//! the tool records when it is called, and the times between two calls count. Everything happens in
//! a project: each call writes an audit row, and in a durable run it is on disk before the code
//! gets its answer.

use std::{
    fs,
    fs::File,
    io,
    io::Write as _,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use belljar_contract::{EngineName, Language, Limits, RunRequest};
use belljar_project::{RunDurability, RunResultExt as _};
use belljar_store::Store;
use serde_json::value::to_raw_value;
use tempfile::TempDir;

use super::{
    Bench,
    python_peer::PythonPeer,
    row::BenchRow,
    stats::Times,
    tool_host::{InProcessServer, ToolHost},
    tool_json,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Number of rounds. Cases take turns, so that a busy moment of the machine affects all of them.
const ROUNDS: u32 = 4;
/// Upper bound of calls in one run: more would exceed the run's time limit.
const MOST_CALLS: u32 = 20_000;
/// Name of the durable case in the rows.
const DURABLE: &str = "tools, durable";
/// Size of a small commit, in bytes.
const PAGES: usize = 2 * 4096;
/// Divisor for the number of durable calls: each takes as long as the disk does.
const FEWER: u32 = 4;

const TYPESCRIPT: &str = "const times: number[] = [];
for (let i = 0; i < context.calls; i++) {
  const began = performance.now();
  const sum = await mcp.bench.add({ a: i, b: 1 });
  times.push(performance.now() - began);
  if (sum !== i + 1) throw new Error(`${i} + 1 is not ${sum}`);
}
return times;
";
const PYTHON: &str = "import time
times = []
for i in range(context['calls']):
    began = time.perf_counter()
    total = mcp.bench.add(a=i, b=1)
    times.append(1000 * (time.perf_counter() - began))
    assert total == i + 1
times
";

/// A kind of call to measure.
struct CallCase {
    name: &'static str,
    language: Language,
    durability: RunDurability,
    times: Times,
}

/// Measures calls, and then runs on 10 MB of JSON.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let project = project(bench.scratch.path());
    let project = project.context("cannot create a directory for the journal")?;
    let mut rows = calls(bench, project.path())?;
    rows.extend(tool_json::measure(bench)?);
    Ok(rows)
}

/// Creates a directory on the disk of the current directory, where a project's journal would be.
/// The temporary directory is often in memory.
pub(super) fn project(scratch: &Path) -> io::Result<TempDir> {
    let disk = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
    let here = Path::new(".");
    let place = if disk(scratch)? == disk(here)? { scratch } else { here };
    tempfile::Builder::new().prefix(".belljar-bench-").tempdir_in(place)
}

fn calls(bench: &Bench<'_>, project: &Path) -> anyhow::Result<Vec<BenchRow>> {
    use Language::{Python, TypeScript};
    use RunDurability::{Always, IfAsked};
    let case = |name, language, durability| CallCase {
        name,
        language,
        durability,
        times: Times::default(),
    };
    let mut cases = vec![case("belljar typescript", TypeScript, IfAsked)];
    let mut durable = vec![case("belljar typescript", TypeScript, Always)];
    if PythonPeer::of(bench).is_some() {
        cases.push(case("belljar python", Python, IfAsked));
        durable.push(case("belljar python", Python, Always));
    }
    cases.extend(durable);
    let ready: Vec<_> = cases.iter().map(|case| EngineName::default_for(case.language)).collect();
    let store = Store::open(project)?;
    let server = InProcessServer::new();
    let host = ToolHost::new(ready, Some(server.clone()), Vec::new(), (project, Some(store)))?;
    let mut file = File::create(project.join("fsync"))?;
    let mut disk = Times::default();
    for round in 0..=ROUNDS {
        for _ in 0..bench.arguments.n.div_ceil(FEWER).min(MOST_CALLS) {
            disk.add(two_writes(&mut file)?);
        }
        for case in &mut cases {
            bench.progress.show(&format!("tools: {}, round {round} of {ROUNDS}", case.name));
            case.round(bench.arguments.n, &host, &server)?;
            if round == 0 {
                // From here on files are cached and pools are full.
                case.times = Times::default();
            }
        }
        if round == 0 {
            disk = Times::default();
        }
    }
    host.end();
    let mut rows: Vec<BenchRow> = cases.iter().map(CallCase::row).collect();
    rows.push(BenchRow::timed(DURABLE, "2 × write and fsync", "", &disk));
    Ok(rows)
}

/// Time of the disk alone for the two commits of a durable call: the intent, then the outcome.
fn two_writes(file: &mut File) -> io::Result<Duration> {
    let began = Instant::now();
    for _ in 0..2 {
        write_and_sync(file)?;
    }
    Ok(began.elapsed())
}

/// Time of the disk alone for one small commit.
pub(super) fn write_and_sync(file: &mut File) -> io::Result<()> {
    file.write_all(&[1; PAGES])?;
    file.sync_all()
}

impl CallCase {
    fn row(&self) -> BenchRow {
        let name = if self.durability == RunDurability::Always { DURABLE } else { "tools" };
        BenchRow::timed(name, self.name, VERSION, &self.times)
    }

    fn round(
        &mut self,
        n: u32,
        host: &ToolHost,
        server: &Arc<InProcessServer>,
    ) -> anyhow::Result<()> {
        let is_durable = self.durability == RunDurability::Always;
        let calls = if is_durable { n.div_ceil(FEWER) } else { n }.min(MOST_CALLS) + 1;
        let code = if self.language == Language::Python { PYTHON } else { TYPESCRIPT };
        let request = RunRequest {
            context: Some(to_raw_value(&serde_json::json!({ "calls": calls }))?),
            limits: Limits { tool_calls: calls, ..Limits::DEFAULT },
            ..RunRequest::new(self.language, code)
        };
        let (_, result) = host.run(request, self.durability).context(self.name)?;
        let by_tool = server.intervals();
        ensure!(
            result.metrics.tool_calls == calls,
            "expected {calls} calls, got {}",
            result.metrics.tool_calls
        );
        if is_durable {
            self.times.extend(by_tool);
        } else {
            let by_code: Vec<f64> = result.value()?;
            by_code.into_iter().skip(1).for_each(|time| self.times.add_ms(time));
        }
        Ok(())
    }
}
