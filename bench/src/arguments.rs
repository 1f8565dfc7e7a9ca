//! The command line of `belljar-bench`, declared with clap.

use std::path::PathBuf;

use clap::{ArgAction, Parser};

const EXAMPLES: &str = "\
Examples:
  scripts/peers && belljar-bench                 everything, side by side with the peers
  belljar-bench python bash --n 200              two benchmarks, shorter
  scripts/servers && belljar-bench tools savings MCP tools: calls, large results, savings
  belljar-bench workflows                        checkpoints, fan-outs, resuming after kill -9
  belljar-bench search --data DIR                quality and speed of tool search
  belljar-bench --json > before.json
  belljar-bench --compare before.json            fails if a figure is more than 10 % worse
  belljar-bench --record docs/benchmarks         stores the figures with machine and versions";

/// Measure Belljar side by side with the peers found on this machine
#[derive(Debug, Parser)]
#[command(name = "belljar-bench", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct BenchArguments {
    /// Benchmarks to run [default: all]
    #[arg(value_name = "NAME", value_enum)]
    pub(crate) names: Vec<BenchName>,
    /// Directory with data: records.json for `json`, instead of generated data; for `search`, one
    /// directory per question set, with tools.jsonl and queries*.jsonl
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Compare with an earlier --json or --record file; exit status 1 if a Belljar figure is worse
    /// by more than --tolerance
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Percentage by which a figure may be worse than before
    #[arg(long, value_name = "PERCENT", default_value_t = 10, requires = "compare",
        value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) tolerance: u32,
    /// Also write the figures, with machine and versions, to this file, or into this directory
    /// under the version's name
    #[arg(long, value_name = "PATH")]
    pub(crate) record: Option<PathBuf>,
    /// Print an array of rows as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Number of runs that `start` times; `json` times a tenth of it, and slower benchmarks fewer
    /// still
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) n: u32,
    /// Duration of `throughput`, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Directory where scripts/peers installed the peers
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    pub(crate) peers: PathBuf,
    /// Directory where scripts/servers installed the MCP servers
    #[arg(long, value_name = "DIR", default_value = "target/mcp-servers")]
    pub(crate) servers: PathBuf,
    /// Log progress to standard error (-vv: everything)
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The name of a benchmark, as given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BenchName {
    /// From request to result of 1+1
    Start,
    /// Sustained runs per second, and whether resource use grows
    Throughput,
    /// 10 MB of JSON parsed, filtered and grouped
    Json,
    /// From request to result of 1+1 in Python
    Python,
    /// A small data frame built, grouped and summed
    Pandas,
    /// From request to result of `echo hi`
    Bash,
    /// 8 of the 1,000 files of a directory edited, and the list of changes
    Workspace,
    /// Tool calls from code, plain and durable, and 10 MB of JSON as a tool result
    Tools,
    /// Bytes and tokens saved on large results of real MCP servers
    Savings,
    /// Calls in live sessions, checkpoint, fork, rollback, and 300 sessions at once
    Sessions,
    /// Workflows: a checkpoint, five tasks, a thousand tasks, and resuming after `kill -9`
    Workflows,
    /// Tool search by intent: recall with --data, and latency with up to 100,000 tools
    Search,
    /// HTTPS requests through the proxy of a cell, and starting a cell that is granted a host
    Network,
    /// Memory of an idle host with a pool of 4 cells
    Memory,
}
