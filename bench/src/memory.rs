//! `memory`: memory of an idle host with a full pool, by engine.

use std::{path::Path, time::Duration};

use belljar_contract::{Language, RunRequest};
use serde::{Deserialize, Serialize};

use super::{
    Bench, POOL, pandas,
    processes::{Family, MemoryShare, memory_of},
    python_peer::PythonPeer,
    resident_peer::ResidentPeer,
    row::BenchRow,
    start::WARM_SCRIPT,
    warm_host_of,
};

/// Host → warden → zygote → keeper → guest: the processes of cells start at this depth.
const CELLS_FROM: usize = 3;

/// Long enough for the host to remove ended cells and refill the pool.
const SETTLE: Duration = Duration::from_millis(500);

/// A Python script that only reports that it is ready, then waits.
const WAITING: &str = "print('ready', flush=True)\ninput()\n";

/// Memory of an idle host and of each parked cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct MemoryUse {
    /// Memory of all processes. A page shared between processes counts once where the system
    /// reports exact shares.
    pub(super) total_mb: f64,
    /// Memory that one parked cell (or peer process) does not share with any other process.
    pub(super) private_each_mb: f64,
    /// Whether the system reports exact shares; otherwise a shared page counts once per process.
    pub(super) exact: bool,
}

/// Measures the memory of idle hosts and idle peers.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let case = format!("belljar host, pool of {POOL}");
    let mut rows = vec![ours(bench, &case, &RunRequest::typescript("1+1"))?];
    if let Some(deno) = &bench.peers.deno {
        let script = bench.file("memory.js", WARM_SCRIPT)?;
        let waiting: Vec<_> = (0..POOL).map(|_| deno.warm(&script)).collect::<Result<_, _>>()?;
        let each: Vec<MemoryShare> = waiting.iter().map(|peer| memory_of(peer.id())).collect();
        rows.push(row("deno warm", &deno.version, &each, &each));
    }
    rows.extend(python(bench)?);
    Ok(rows)
}

/// Python cells, plain and with pandas.
fn python(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let Some(python) = PythonPeer::of(bench) else { return Ok(Vec::new()) };
    let case = format!("belljar python host, pool of {POOL}");
    let mut rows = vec![ours(bench, &case, &RunRequest::new(Language::Python, "1+1"))?];
    let script = bench.file("memory.py", WAITING)?;
    rows.push(waiting("python3 waiting", &python.version, &python.program, &script)?);
    if let Some((python, version)) = PythonPeer::with_pandas(bench, "memory with pandas") {
        let case = format!("belljar pandas host, pool of {POOL}");
        rows.push(ours(bench, &case, &pandas::request())?);
        let script = bench.file("memory_pandas.py", &format!("import pandas\n{WAITING}"))?;
        rows.push(waiting("python3 with pandas waiting", &version, &python.program, &script)?);
    }
    Ok(rows)
}

/// Measures a host that has done one run and is idle again.
fn ours(bench: &Bench<'_>, case: &str, request: &RunRequest) -> anyhow::Result<BenchRow> {
    bench.progress.show(&format!("memory: {case}"));
    // The run itself starts the engine: a language may have several engines, and only the one that
    // runs this request is measured.
    let (runtime, sandbox) = warm_host_of([])?;
    runtime.block_on(async {
        let result = sandbox.run_request(request.clone()).await;
        anyhow::ensure!(result.success, "a run failed: {:?}", result.error);
        tokio::time::sleep(SETTLE).await;
        anyhow::Ok(())
    })?;
    let family = Family::now();
    let all: Vec<MemoryShare> = family.at_least(0).map(memory_of).collect();
    let cells: Vec<MemoryShare> = family.at_least(CELLS_FROM).map(memory_of).collect();
    runtime.block_on(sandbox.shutdown());
    Ok(row(case, env!("CARGO_PKG_VERSION"), &all, &cells))
}

fn waiting(case: &str, version: &str, program: &Path, script: &Path) -> anyhow::Result<BenchRow> {
    let drivers: Vec<ResidentPeer> =
        (0..POOL).map(|_| ResidentPeer::start(program, script)).collect::<Result<_, _>>()?;
    let each: Vec<MemoryShare> = drivers.iter().map(|driver| memory_of(driver.id())).collect();
    Ok(row(case, version, &each, &each))
}

fn row(case: &str, version: &str, all: &[MemoryShare], each: &[MemoryShare]) -> BenchRow {
    let megabytes = |bytes: u64| (bytes as f64 / 1e5).round() / 10.0;
    let private: u64 = each.iter().map(|memory| memory.private).sum();
    let memory = MemoryUse {
        total_mb: megabytes(all.iter().map(|memory| memory.share).sum()),
        private_each_mb: (private as f64 / POOL as f64 / 1e4).round() / 100.0,
        exact: all.iter().all(|memory| memory.exact),
    };
    BenchRow { n: POOL as u64, memory: Some(memory), ..BenchRow::new("memory", case, version) }
}
