//! `memory`: what an idle host with a full pool costs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Bench, POOL,
    processes::{Family, ProcessMemory, memory_of},
    row::Row,
    start::WARM_SCRIPT,
    warm_host,
};

/// Host → warden → zygote → keeper → guest: cells begin at this distance.
const CELLS_FROM: usize = 3;

/// Memory of an idle host and of each thing it keeps ready.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory {
    /// Everything, pages shared between processes counted once where the system tells.
    pub(super) total_mb: f64,
    /// Pages only one parked cell (or peer) uses.
    pub(super) private_each_mb: f64,
    /// Whether the system told shares exactly; else pages are counted in each process.
    pub(super) exact: bool,
}

/// Measures what is held while nothing is asked for.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Row>> {
    bench.progress.say("memory");
    let (runtime, sandbox) = warm_host()?;
    runtime.block_on(async {
        let result = sandbox.run("1+1").await;
        super::expect_value(&result, "2")?;
        // The cell just used is being replaced; what is measured is the host at rest.
        tokio::time::sleep(Duration::from_millis(500)).await;
        anyhow::Ok(())
    })?;
    let family = Family::now();
    let all: Vec<ProcessMemory> = family.at_least(0).map(memory_of).collect();
    let cells: Vec<ProcessMemory> = family.at_least(CELLS_FROM).map(memory_of).collect();
    runtime.block_on(sandbox.shutdown());
    let case = format!("belljar host, pool of {POOL}");
    let mut rows = vec![row(&case, env!("CARGO_PKG_VERSION"), &all, &cells)];
    if let Some(deno) = &bench.peers.deno {
        let script = bench.file("memory.js", WARM_SCRIPT)?;
        let waiting: Vec<_> = (0..POOL).map(|_| deno.warm(&script)).collect::<Result<_, _>>()?;
        let each: Vec<ProcessMemory> = waiting.iter().map(|peer| memory_of(peer.id())).collect();
        rows.push(row("deno warm", &deno.version, &each, &each));
    }
    Ok(rows)
}

fn row(case: &str, version: &str, all: &[ProcessMemory], each: &[ProcessMemory]) -> Row {
    let megabytes = |bytes: u64| (bytes as f64 / 1e5).round() / 10.0;
    let private: u64 = each.iter().map(|memory| memory.private).sum();
    let memory = Memory {
        total_mb: megabytes(all.iter().map(|memory| memory.share).sum()),
        private_each_mb: (private as f64 / POOL as f64 / 1e4).round() / 100.0,
        exact: all.iter().all(|memory| memory.exact),
    };
    Row { n: POOL as u64, memory: Some(memory), ..Row::new("memory", case, version) }
}
