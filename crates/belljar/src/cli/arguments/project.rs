//! Arguments of the commands about a project: its tools, its runs, and who decides about them.

use std::{path::PathBuf, time::Duration};

use belljar_project::config::quantity;
use clap::{Args, Subcommand, ValueEnum};

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  belljar runs                                   which runs were interrupted
  belljar resume run_4be1                        the beginning of an id is enough

What the run did before is not done again: the code runs from the beginning in a new cell, and gets
the recorded outcomes of its calls. A call that may or may not have happened is made again only if
that does no harm or if a person says so (`belljar approvals retry`); they may also say what it gave
(`use`), or have it fail (`deny`).";

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
  belljar gc --dry-run                           what would go, and how large everything is
  belljar gc                                     what is older than [retention] says goes

A host does the same by itself once a minute. docs/operating.md says what is kept for how long.";

pub(super) const BACKUP_EXAMPLES: &str = "\
Examples:
  belljar backup /backups/project.db             one file, everything as it is at this moment

docs/operating.md says how to restore it.";

const DESCRIBE_EXAMPLES: &str = "\
Examples:
  belljar tools describe fs__read_text_file
  belljar tools describe fs__read_text_file --json    the schemas, too";

const LIST_EXAMPLES: &str = "\
Examples:
  belljar tools list                             all tools, and whether policy lets code call them
  belljar tools list github --json

Servers come from the nearest .mcp.json and from [mcp_servers] of belljar.toml. A server that does
not answer is named with the reason; the exit status is 1 only if none does.";

const TYPES_EXAMPLES: &str = "\
Examples:
  belljar tools types > mcp.d.ts
  belljar tools types --language python github > mcp.pyi";

const CALL_EXAMPLES: &str = "\
Examples:
  belljar tools call fs__read_text_file '{\"path\": \"README.md\"}'
  belljar tools call fs__read_text_file --arg path=README.md
  belljar tools call db__query @query.json --json

The call goes the same way as one from code: policy, approval, audit. Who types it has not approved
it; a tool that asks asks here, too.";

const SEARCH_EXAMPLES: &str = "\
Examples:
  belljar tools search 'list the commits of a repository'
  belljar tools search 'read a file' -k 3 --json";

const APPROVALS_EXAMPLES: &str = "\
Examples:
  belljar approvals                              what waits for a decision
  belljar approvals approve apr_1f3a             the beginning of an id is enough
  belljar approvals deny apr_1f3a apr_77b0
  belljar approvals retry apr_90c2               it may have happened: make the call again
  belljar approvals use apr_90c2 --result '{\"id\": 7}'   it happened, and gave this
  belljar approvals list --all --json            also what was decided before";

/// What `belljar run` gets of its project.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ToolArguments {
    /// Tool the code may use, with * and ? as patterns; no other then, and nobody is asked about these
    /// unless a rule of the policy asks
    #[arg(long = "tool", value_name = "SERVER__TOOL")]
    pub(crate) only: Vec<String>,
    /// What the code is for, in words: it gets the five tools that fit best, besides those named with
    /// --tool, and no others
    #[arg(long, value_name = "TEXT")]
    pub(crate) intent: Option<String>,
    /// Keep a journal, so that `belljar resume` can go on after anything that ends this process
    #[arg(long)]
    pub(crate) durable: bool,
    /// A value of more than about N tokens is stored, and a summary with a handle is returned
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub(crate) max_output_tokens: Option<u32>,
    /// Answer from memory what was answered before, if only read-only tools were called [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "10m")]
    pub(crate) cache: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// The run, `run_…`; the beginning of its id is enough
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BlobArguments {
    /// The handle a result gave, `blob_…`
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
    /// How many, newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Delete runs with all that is kept of them; audit rows stay
    Rm(RunsRmArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RunsRmArguments {
    /// Ids, `run_…`; the beginning of one is enough
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct GcArguments {
    /// Say what would go, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Rewrite the whole file without gaps; whoever writes waits meanwhile
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) compact: bool,
    /// Print what went, and sizes, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// Where to; only its owner may read it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace a file that is there
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
    /// How many, newest first
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
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Show the calls that wait for a decision
    List(ApprovalsListArguments),
    /// Show one call with all of its arguments
    Show(ApprovalsShowArguments),
    /// Let calls be made
    Approve(DecideArguments),
    /// Refuse calls: in the code they fail with a PermissionError, those in doubt with tool.in_doubt
    Deny(DecideArguments),
    /// Make calls again that may have happened: their host ended before they were answered
    Retry(DecideArguments),
    /// Say that a call happened, and what it gave: the code goes on with that
    Use(UseArguments),
}

#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ApprovalsListArguments {
    /// Also those that were decided or have expired
    #[arg(long)]
    pub(crate) all: bool,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsShowArguments {
    /// Id, `apr_…`; the beginning of it is enough
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DecideArguments {
    /// Ids, `apr_…`; the beginning of one is enough
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UseArguments {
    /// The id, `apr_…`; the beginning of it is enough
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// What the call gave, as the code would have got it
    #[arg(long, value_name = "JSON")]
    pub(crate) result: String,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools of all servers, or of one
    #[command(after_help = LIST_EXAMPLES)]
    List(ToolsListArguments),
    /// Show what a tool is for, how code calls it and what it returns
    #[command(after_help = DESCRIBE_EXAMPLES)]
    Describe(ToolsDescribeArguments),
    /// Print types of the tools: a .d.ts or a .pyi
    #[command(after_help = TYPES_EXAMPLES)]
    Types(ToolsTypesArguments),
    /// Call a tool
    #[command(after_help = CALL_EXAMPLES)]
    Call(ToolsCallArguments),
    /// Find tools by what they are for
    #[command(after_help = SEARCH_EXAMPLES)]
    Search(ToolsSearchArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ToolsListArguments {
    /// Only this server's
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
    /// Only these servers'
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// For which language
    #[arg(short, long, value_enum, default_value_t = TypesLanguage::Typescript)]
    pub(crate) language: TypesLanguage,
}

/// A language that types can be written for.
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
    /// The arguments: a JSON object, or @FILE (`@-`: standard input)
    #[arg(value_name = "JSON|@FILE", conflicts_with = "argument")]
    pub(crate) arguments: Option<String>,
    /// One argument; the value is JSON, or a text where that fits the tool
    #[arg(long = "arg", value_name = "KEY=VALUE")]
    pub(crate) argument: Vec<String>,
    /// Wall time of the call [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Print value or error as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsSearchArguments {
    /// What is to be done, in words
    #[arg(value_name = "INTENT")]
    pub(crate) intent: String,
    /// How many at most
    #[arg(short, value_name = "N", default_value_t = 5)]
    pub(crate) k: usize,
    /// What its server may be about, if you have an idea
    #[arg(long, value_name = "TEXT")]
    pub(crate) server: Option<String>,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
