//! `belljar-bench`: measures Belljar side by side with the peers found on this machine.
//!
//! This is a separate program that is not shipped. Like every program with a sandbox, it
//! re-executes itself as the zygote. Benchmarks of the `belljar` program use the executable beside
//! this one.
//!
//! All cases are measured in one go and interleaved where possible, so that noise affects them
//! alike. Compare the ratios rather than the absolute times. A missing peer is reported, never
//! silently left out.

mod arguments;
mod bash;
mod colour;
mod compare;
mod footprint;
mod host_cases;
mod json;
mod memory;
mod network;
mod omissions;
mod pandas;
mod peers;
mod processes;
mod program;
mod progress;
mod python;
mod python_peer;
#[path = "../../crates/belljar/src/cli/demo/random.rs"]
mod random;
mod record;
mod resident_peer;
mod rounds;
mod row;
mod savings;
mod search;
mod sessions;
mod start;
mod stats;
mod table;
mod throughput;
mod tool_host;
mod tool_json;
mod tools;
mod workflows;
mod workspace;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use belljar_contract::{EngineName, RunResult};
use belljar_project::Sandbox;
use clap::Parser as _;
use tempfile::TempDir;
use tracing_subscriber::filter::LevelFilter;

use arguments::{BenchArguments, BenchName};
use colour::{Paint, Painter};
use compare::EarlierRun;
use omissions::Omissions;
use peers::Peers;
use progress::ProgressLine;
use record::{BenchRecord, MachineInfo};
use row::BenchRow;

const ALL: [BenchName; 14] = [
    // First: resources that other benchmarks leave in this process would count as the host's.
    BenchName::Memory,
    BenchName::Start,
    BenchName::Throughput,
    BenchName::Json,
    BenchName::Python,
    BenchName::Pandas,
    BenchName::Bash,
    BenchName::Workspace,
    BenchName::Tools,
    BenchName::Savings,
    BenchName::Sessions,
    BenchName::Workflows,
    BenchName::Search,
    BenchName::Network,
];

/// The same exit status as `belljar`'s: invalid arguments, or a benchmark that cannot be measured
/// at all.
const USAGE_ERROR: u8 = 2;

/// Size of the pool of parked cells in every benchmark of a warm host.
const POOL: usize = 4;

/// The shared state of all benchmarks.
struct Bench<'a> {
    arguments: &'a BenchArguments,
    peers: Peers,
    omissions: Omissions,
    /// Directory for the peers' scripts and data.
    scratch: TempDir,
    progress: ProgressLine,
}

fn main() -> ExitCode {
    belljar_project::init();
    let arguments = BenchArguments::parse();
    start_logging(arguments.verbose);
    bench(&arguments).unwrap_or_else(|error| {
        let label = Painter::of_stderr().paint(Paint::Bad, "error");
        let _ = writeln!(io::stderr(), "{label}: {error:#}");
        ExitCode::from(USAGE_ERROR)
    })
}

/// Starts logging to standard error, if `--verbose` is given.
fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).init();
}

/// Runs the selected benchmarks.
fn bench(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    python_peer::use_python_of(&arguments.peers)?;
    let earlier = arguments.compare.as_deref().map(EarlierRun::read).transpose()?;
    let bench = Bench {
        arguments,
        peers: Peers::find(&arguments.peers),
        omissions: Omissions::default(),
        scratch: tempfile::tempdir().context("cannot create a directory for the peers' files")?,
        progress: ProgressLine::new(),
    };
    let mut rows = Vec::new();
    for name in ALL {
        if arguments.names.is_empty() || arguments.names.contains(&name) {
            rows.extend(bench.measure(name)?);
        }
    }
    bench.progress.done();
    let machine = MachineInfo::this().text();
    rows.iter_mut().for_each(|row| row.machine.clone_from(&machine));
    if let Some(path) = &arguments.record {
        let path = BenchRecord::new(&rows).write(path)?;
        writeln!(io::stderr(), "recorded in {}", path.display())?;
    }
    let tolerated = f64::from(arguments.tolerance);
    if let Some(earlier) = &earlier {
        compare::mark(&mut rows, earlier, tolerated);
    }
    bench.print(&rows, &machine)?;
    let Some(earlier) = &earlier else { return Ok(ExitCode::SUCCESS) };
    let worse = compare::regressions(&rows, tolerated)?;
    let reservation = earlier.reservation().unwrap_or_default();
    io::stderr().write_all(format!("{reservation}{worse}").as_bytes())?;
    Ok(if worse.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Bench<'_> {
    fn measure(&self, name: BenchName) -> anyhow::Result<Vec<BenchRow>> {
        use BenchName::{Json, Memory, Start, Throughput, Tools};
        if matches!(name, Start | Throughput | Json | Tools | Memory) {
            self.peers.missing().for_each(|peer| self.omissions.missing(peer));
        }
        let mut rows = match name {
            BenchName::Start => start::measure(self),
            BenchName::Throughput => throughput::measure(self),
            BenchName::Json => json::measure(self),
            BenchName::Python => python::measure(self),
            BenchName::Pandas => pandas::measure(self),
            BenchName::Bash => bash::measure(self),
            BenchName::Workspace => workspace::measure(self),
            BenchName::Tools => tools::measure(self),
            BenchName::Savings => savings::measure(self),
            BenchName::Sessions => sessions::measure(self),
            BenchName::Workflows => workflows::measure(self),
            BenchName::Search => search::measure(self),
            BenchName::Network => network::measure(self),
            BenchName::Memory => memory::measure(self),
        }?;
        row::add_ratios(&mut rows);
        Ok(rows)
    }

    fn print(&self, rows: &[BenchRow], machine: &str) -> anyhow::Result<()> {
        let missing = self.omissions.text();
        if self.arguments.json {
            io::stderr().write_all(missing.as_bytes())?;
            return Ok(writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&rows)?)?);
        }
        let painter = Painter::of_stdout();
        let text = format!("{machine}\n\n{}{missing}", table::table(rows, painter));
        Ok(io::stdout().write_all(text.as_bytes())?)
    }

    /// Writes a script or data file for the peers.
    fn file(&self, name: &str, content: &str) -> anyhow::Result<std::path::PathBuf> {
        let path = self.scratch.path().join(name);
        std::fs::write(&path, content).context("cannot write a file for the peers")?;
        Ok(path)
    }
}

/// Starts a warm host with the default engine.
fn warm_host() -> anyhow::Result<(tokio::runtime::Runtime, Sandbox)> {
    warm_host_of([EngineName::QuickJs])
}

/// Starts a warm host. It does so little work itself that one thread is fastest.
fn warm_host_of(
    ready: impl IntoIterator<Item = EngineName>,
) -> anyhow::Result<(tokio::runtime::Runtime, Sandbox)> {
    let runtime = runtime()?;
    let builder = Sandbox::builder().pool(POOL).ready(ready);
    let sandbox = runtime.block_on(builder.build()).context("cannot start a sandbox")?;
    Ok((runtime, sandbox))
}

/// A runtime on the calling thread: no benchmark needs more threads.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Returns an error if the result is wrong; then the figure does not count.
fn expect_value(result: &RunResult, value: &str) -> anyhow::Result<()> {
    if result.success && result.result.get() == value {
        return Ok(());
    }
    let got = result.error.as_ref().map_or(result.result.get(), |error| error.message.as_str());
    bail!("a run answered {got:?} instead of {value}")
}
