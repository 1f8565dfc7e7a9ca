//! Arguments of the commands for a project: tools, runs, approvals, audit and storage.

use std::{path::PathBuf, time::Duration};

use belljar_project::config::quantity;
use clap::{Args, Subcommand, ValueEnum};

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  belljar runs                                   list runs, with the interrupted ones
  belljar resume run_4be1                        a prefix of the id is enough

No finished call is repeated: the code runs from the start in a new cell and gets the recorded
outcomes of its calls. A call that may have happened is repeated only if that is harmless, or if a
person says so (`belljar approvals retry`); they may also enter its result (`use`) or let it fail
(`deny`).";

pub(super) const BLOB_EXAMPLES: &str = "\
Examples:
  belljar blob blob_7d64d60a428fa53db5a06da326750a56 | jq length
  belljar blob blob_7d64d60a428fa53db5a06da326750a56 --output rows.json";

pub(super) const AUDIT_EXAMPLES: &str = "\
Examples:
  belljar audit                                  the last 50 calls
  belljar audit --tool 'fs__write_*' --json
  belljar audit --run run_4be1";

pub(super) const GC_EXAMPLES: &str = "\
Examples:
  belljar gc --dry-run                           what would be removed, and all sizes
  belljar gc                                     remove records older than [retention] allows

A host does the same by itself once a minute. See docs/operating.md for how long records are kept.";

pub(super) const BACKUP_EXAMPLES: &str = "\
Examples:
  belljar backup /backups/project.db             one file with a consistent copy

See docs/operating.md for how to restore it.";

const DESCRIBE_EXAMPLES: &str = "\
Examples:
  belljar tools describe fs__read_text_file
  belljar tools describe fs__read_text_file --json    with the schemas";

const LIST_EXAMPLES: &str = "\
Examples:
  belljar tools list                             all tools, and whether policy lets code call them
  belljar tools list github --json

Servers come from the nearest .mcp.json and from [mcp_servers] in belljar.toml. Servers that do not
answer are named with the reason, and the exit status is then 1.";

const TYPES_EXAMPLES: &str = "\
Examples:
  belljar tools types > mcp.d.ts
  belljar tools types --language python github > mcp.pyi";

const CALL_EXAMPLES: &str = "\
Examples:
  belljar tools call fs__read_text_file '{\"path\": \"README.md\"}'
  belljar tools call fs__read_text_file path=README.md
  belljar tools call db__query @query.json --json

The call is treated like one from code, with policy, approval and audit. Typing it does not approve
it: a tool that needs approval asks here too.";

const SEARCH_EXAMPLES: &str = "\
Examples:
  belljar tools search 'list the commits of a repository'
  belljar tools search 'read a file' -k 3 --json";

const APPROVALS_EXAMPLES: &str = "\
Examples:
  belljar approvals                              calls that wait for a decision
  belljar approvals approve apr_1f3a             a prefix of the id is enough
  belljar approvals approve --run run_4be1       all calls of a run that wait
  belljar approvals approve apr_1f3a --for run   also later calls of this tool, in this run
  belljar approvals approve apr_1f3a --for always --when 'path=/srv/*'
  belljar approvals rules                        permanent rules; `rules rm` removes them
  belljar approvals deny apr_1f3a apr_77b0
  belljar approvals retry apr_90c2               it may have happened: repeat the call
  belljar approvals use apr_90c2 --result '{\"id\": 7}'   it happened with this result
  belljar approvals list --all --json            also calls decided before";

/// Options of `belljar run` that concern the project.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ToolArguments {
    /// Tool the code may use, with * and ? as wildcards. The code then has no other tools, and these
    /// need no approval unless a policy rule asks
    #[arg(long = "tool", value_name = "SERVER__TOOL")]
    pub(crate) only: Vec<String>,
    /// Purpose of the code, in words. The code gets the five best-matching tools, those named with
    /// --tool, and no others
    #[arg(long, value_name = "TEXT")]
    pub(crate) intent: Option<String>,
    /// Keep a journal, so that `belljar resume` can continue after any end of this process
    #[arg(long)]
    pub(crate) durable: bool,
    /// Keep no journal even if a tool may ask: the clock runs as usual, and the run ends with this
    /// process [default: durable if a tool may ask]
    #[arg(long, conflicts_with = "durable")]
    pub(crate) no_durable: bool,
    /// Fail at a tool call that needs approval, instead of waiting for a decision
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Store a value of more than about N tokens, and return a summary with a handle
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub(crate) max_output_tokens: Option<u32>,
    /// Reuse an earlier answer to the same code if it called only read-only tools [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "10m")]
    pub(crate) cache: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// Id of the run, `run_…`, or a prefix of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BlobArguments {
    /// Handle from a result, `blob_…`
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    /// Number of runs, newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Delete runs with everything stored for them; audit rows stay
    Rm(RunsRmArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RunsRmArguments {
    /// Ids, `run_…`, or prefixes of them
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct GcArguments {
    /// Show the records that would be removed, without removing them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Rewrite the whole file without gaps; writers wait meanwhile
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) compact: bool,
    /// Print removals and sizes as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// File to create, readable by its owner only
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Only calls of this run
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Only calls of these tools, as SERVER__TOOL with * and ?
    #[arg(long, value_name = "GLOB")]
    pub(crate) tool: Option<String>,
    /// Number of calls, newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = APPROVALS_EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ApprovalsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ApprovalsCommand>,
    #[command(flatten)]
    pub(crate) list: ApprovalsListArguments,
    /// Directory of the project [default: the current one]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) project: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that wait for a decision
    List(ApprovalsListArguments),
    /// Show one call with all its arguments
    Show(ApprovalsShowArguments),
    /// Approve calls, once or for longer
    Approve(ApproveArguments),
    /// Refuse calls: in the code they fail with a PermissionError, those in doubt with
    /// tool.in_doubt
    Deny(DecideArguments),
    /// Repeat calls that may have happened: their host ended before the answer came
    Retry(DecideArguments),
    /// Enter the result of a call that happened; the code continues with it
    Use(UseArguments),
    /// List the permanent rules, or remove some
    Rules(RulesArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    #[command(flatten)]
    pub(crate) decide: DecideArguments,
    /// How long the approval lasts; beyond `once` it also covers later calls of the same tool
    #[arg(long = "for", value_name = "SCOPE", default_value = "once",
          value_parser = ["once", "run", "session", "always"])]
    pub(crate) scope: String,
    /// Only calls with this argument; VALUE is a number, a boolean or a text with * and ?
    #[arg(long, value_name = "ARGUMENT=VALUE")]
    pub(crate) when: Vec<String>,
    /// Approve permanently, or all calls of a run, without a second question at a terminal
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RulesArguments {
    #[command(subcommand)]
    pub(crate) command: Option<RulesCommand>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Remove rules: calls that they covered ask again
    Rm {
        /// Ids, `rule_…`
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ApprovalsListArguments {
    /// Also calls that were decided or have expired
    #[arg(long)]
    pub(crate) all: bool,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsShowArguments {
    /// Id, `apr_…`, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DecideArguments {
    /// Ids, `apr_…`, or prefixes of them
    #[arg(value_name = "ID", required_unless_present = "run")]
    pub(crate) ids: Vec<String>,
    /// All waiting calls of this run, except those that may have happened
    #[arg(long, value_name = "RUN", conflicts_with = "ids")]
    pub(crate) run: Option<String>,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UseArguments {
    /// Id, `apr_…`, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Result of the call, as the code would have received it
    #[arg(long, value_name = "JSON")]
    pub(crate) result: String,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsAcceptArguments {
    /// Server of this project, whose read-only tools Belljar then calls without asking
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// Withdraw an earlier acceptance
    #[arg(long)]
    pub(crate) retract: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Accept a server of this project as it is configured now, so that its read-only tools do not ask
    Accept(ToolsAcceptArguments),
    /// List the tools of all servers, or of one
    #[command(after_help = LIST_EXAMPLES)]
    List(ToolsListArguments),
    /// Show what a tool does, how code calls it and what it returns
    #[command(after_help = DESCRIBE_EXAMPLES)]
    Describe(ToolsDescribeArguments),
    /// Print type declarations of the tools: a .d.ts or a .pyi
    #[command(after_help = TYPES_EXAMPLES)]
    Types(ToolsTypesArguments),
    /// Call a tool
    #[command(after_help = CALL_EXAMPLES)]
    Call(ToolsCallArguments),
    /// Search tools by purpose
    #[command(after_help = SEARCH_EXAMPLES)]
    Search(ToolsSearchArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ToolsListArguments {
    /// Only tools of this server
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsDescribeArguments {
    /// The tool, as SERVER__TOOL
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Print as JSON, with the schemas
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsTypesArguments {
    /// Only tools of these servers
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Language of the declarations
    #[arg(short, long, value_enum, default_value_t = TypesLanguage::Typescript)]
    pub(crate) language: TypesLanguage,
}

/// Language of type declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypesLanguage {
    /// A .d.ts
    #[value(alias = "ts")]
    Typescript,
    /// A .pyi
    #[value(alias = "py")]
    Python,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsCallArguments {
    /// The tool, as SERVER__TOOL
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The arguments: a JSON object, @FILE (`@-`: standard input), or KEY=VALUE for each argument;
    /// VALUE is JSON, or text if the tool expects text
    #[arg(value_name = "JSON|@FILE|KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// One argument, as KEY=VALUE
    #[arg(long = "arg", value_name = "KEY=VALUE")]
    pub(crate) argument: Vec<String>,
    /// Wall time of the call [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Fail if the call needs approval, instead of waiting for a decision
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Print the value or the error as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsSearchArguments {
    /// Purpose of the wanted tools, in words
    #[arg(value_name = "INTENT")]
    pub(crate) intent: String,
    /// Most tools to show
    #[arg(short, value_name = "N", default_value_t = 5)]
    pub(crate) k: usize,
    /// Likely subject of the server
    #[arg(long, value_name = "TEXT")]
    pub(crate) server: Option<String>,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
