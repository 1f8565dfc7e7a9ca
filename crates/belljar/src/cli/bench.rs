//! `belljar bench`: Belljar side by side with the peers found on this machine (K1).
//!
//! Everything is measured in one go, interleaved where it can be, so that noise hits all alike; what
//! counts are the ratios. A peer that is missing is named, never silently left out.

mod compare;
mod footprint;
mod json;
mod memory;
mod peers;
mod processes;
mod progress;
mod row;
mod start;
mod stats;
mod table;
mod throughput;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use belljar::{RunResult, Sandbox};
use tempfile::TempDir;

use super::{
    arguments::{BenchArguments, BenchName},
    look::Look,
    print_json, run,
};
use peers::Peers;
use progress::Progress;
use row::Row;

const ALL: [BenchName; 4] =
    [BenchName::Start, BenchName::Throughput, BenchName::Json, BenchName::Memory];

/// Parked cells in every benchmark of a warm host.
const POOL: usize = 4;

/// What every benchmark needs.
struct Bench<'a> {
    arguments: &'a BenchArguments,
    peers: Peers,
    /// Scripts and data for the peers.
    scratch: TempDir,
    progress: Progress,
}

/// Runs the benchmarks that were asked for.
pub(crate) fn bench(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    let earlier = arguments.compare.as_deref().map(compare::read).transpose()?;
    let bench = Bench {
        arguments,
        peers: Peers::find(&arguments.peers),
        scratch: tempfile::tempdir().context("could not make a directory for the peers' files")?,
        progress: Progress::new(),
    };
    let mut rows = Vec::new();
    for name in ALL {
        if arguments.names.is_empty() || arguments.names.contains(&name) {
            rows.extend(bench.one(name)?);
        }
    }
    bench.progress.done();
    let machine = row::machine();
    rows.iter_mut().for_each(|row| row.machine.clone_from(&machine));
    if let Some(earlier) = &earlier {
        compare::mark(&mut rows, earlier);
    }
    bench.tell(&rows, &machine)?;
    Ok(ExitCode::SUCCESS)
}

impl Bench<'_> {
    fn one(&self, name: BenchName) -> anyhow::Result<Vec<Row>> {
        let mut rows = match name {
            BenchName::Start => start::measure(self),
            BenchName::Throughput => throughput::measure(self),
            BenchName::Json => json::measure(self),
            BenchName::Memory => memory::measure(self),
        }?;
        row::add_ratios(&mut rows);
        Ok(rows)
    }

    fn tell(&self, rows: &[Row], machine: &str) -> anyhow::Result<()> {
        let missing = self.peers.missing_text();
        if self.arguments.json {
            io::stderr().write_all(missing.as_bytes())?;
            return print_json(&rows);
        }
        let look = Look::of_stdout();
        let text = format!("{machine}\n\n{}{missing}", table::table(rows, look));
        Ok(io::stdout().write_all(text.as_bytes())?)
    }

    /// Writes a script or data file for the peers.
    fn file(&self, name: &str, content: &str) -> anyhow::Result<std::path::PathBuf> {
        let path = self.scratch.path().join(name);
        std::fs::write(&path, content).context("could not write a file for the peers")?;
        Ok(path)
    }
}

/// A warm host. It does so little itself that one thread is the quickest way to run it.
fn warm_host() -> anyhow::Result<(tokio::runtime::Runtime, Sandbox)> {
    let runtime = super::runtime()?;
    let sandbox = runtime.block_on(Sandbox::builder().pool(POOL).build()).map_err(|error| {
        anyhow::anyhow!("there is no sandbox to measure: {}", run::chain(&error))
    })?;
    Ok((runtime, sandbox))
}

/// A figure only counts if the answer was right.
fn expect_value(result: &RunResult, value: &str) -> anyhow::Result<()> {
    if result.success && result.result.get() == value {
        return Ok(());
    }
    let got = result.error.as_ref().map_or(result.result.get(), |error| error.message.as_str());
    bail!("a run answered {got:?} instead of {value}")
}
