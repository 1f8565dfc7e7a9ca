//! The command line of the benchmarks as clap sees it.

use std::path::PathBuf;

use clap::{ArgAction, Parser};

const EXAMPLES: &str = "\
Examples:
  scripts/peers && belljar-bench                 everything, side by side with the peers
  belljar-bench python bash --n 200              two benchmarks, shorter
  scripts/servers && belljar-bench tools savings MCP tools: calls, big results, what they save
  belljar-bench workflows                        checkpoints, fan-outs, resuming after kill -9
  belljar-bench search --data DIR                how well and how fast tools are found by intent
  belljar-bench --json > before.json
  belljar-bench --compare before.json            fails if anything became more than 10 % worse
  belljar-bench --record docs/benchmarks         keeps the figures with machine and versions";

/// Measure Belljar side by side with the peers found on this machine
#[derive(Debug, Parser)]
#[command(name = "belljar-bench", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct BenchArguments {
    /// Which to run [default: all]
    #[arg(value_name = "NAME", value_enum)]
    pub(crate) names: Vec<BenchName>,
    /// Directory with data: records.json for `json`, instead of made-up data; for `search`, a directory
    /// for each set of questions, with tools.jsonl and queries*.jsonl
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// An earlier --json or --record to compare with; exit status 1 if a figure of Belljar's is worse by
    /// more than --tolerance
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// By how many percent a figure may be worse
    #[arg(long, value_name = "PERCENT", default_value_t = 10, requires = "compare",
        value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) tolerance: u32,
    /// Also write the figures, with machine and versions, to this file, or into this directory under
    /// the version's name
    #[arg(long, value_name = "PATH")]
    pub(crate) record: Option<PathBuf>,
    /// Print an array of rows as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// How many runs `start` times; `json` times a tenth as many, and what takes longer fewer still
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) n: u32,
    /// How long `throughput` goes on
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Where scripts/peers has put the peers
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    pub(crate) peers: PathBuf,
    /// Where scripts/servers has put the MCP servers
    #[arg(long, value_name = "DIR", default_value = "target/mcp-servers")]
    pub(crate) servers: PathBuf,
    /// Log to standard error what is being done (-vv: everything)
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BenchName {
    /// Request to result of 1+1
    Start,
    /// Sustained runs per second, and whether anything grows
    Throughput,
    /// 10 MB of JSON parsed, filtered, grouped
    Json,
    /// Request to result of 1+1 in Python
    Python,
    /// A small data frame built, grouped and summed
    Pandas,
    /// Request to result of `echo hi`
    Bash,
    /// 8 of a directory's 1,000 files edited, and what changed
    Workspace,
    /// Tool calls from code and back, plain and durable, and 10 MB of JSON as a result
    Tools,
    /// Bytes and tokens saved on big results of real MCP servers
    Savings,
    /// Calls in live sessions, checkpoint, fork, rollback, and 300 sessions at once
    Sessions,
    /// Workflows: a checkpoint, five tasks, a thousand, and resuming after `kill -9`
    Workflows,
    /// Tools found by intent: recall with --data, and latency at up to 100,000 tools
    Search,
    /// Memory of an idle host with a pool of 4 cells
    Memory,
}
