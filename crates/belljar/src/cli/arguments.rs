//! The command line as clap sees it: names, types and help texts.
#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::private_intra_doc_links,
    reason = "what stands here is the text of --help"
)]

mod grants;
mod limits;
mod project;
mod session;
mod workflow;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use belljar_contract::{EngineName, Grant, InSession, Language, Limit};
use belljar_project::config::quantity;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::{source, terminal::style::ColourChoice};

pub(crate) use grants::{
    GrantArguments, OfRun, OfServe, OfSession, OfWorkflow, WorkspaceArguments,
};
pub(crate) use limits::LimitArguments;
pub(crate) use project::{
    ApprovalsArguments, ApprovalsCommand, ApprovalsListArguments, ApprovalsShowArguments,
    ApproveArguments, AuditArguments, BackupArguments, BlobArguments, DecideArguments, GcArguments,
    ResumeArguments, RulesArguments, RulesCommand, RunsArguments, RunsCommand, RunsRmArguments,
    ToolArguments, ToolsAcceptArguments, ToolsCallArguments, ToolsCommand, ToolsDescribeArguments,
    ToolsListArguments, ToolsSearchArguments, ToolsTypesArguments, TypesLanguage, UseArguments,
};
pub(crate) use session::{
    SessionCommand, SessionExecArguments, SessionForkArguments, SessionNewArguments,
};
pub(crate) use workflow::{
    WorkflowCommandArguments, WorkflowCommandSpec, WorkflowDeleteArguments,
    WorkflowEventsArguments, WorkflowForkArguments, WorkflowListArguments, WorkflowResumeArguments,
    WorkflowRollbackArguments, WorkflowRunArguments, WorkflowShowArguments, WorkflowSubcommand,
    WorkflowValidateArguments,
};

const EXAMPLES: &str = "\
Examples:
  belljar demo                                   1.2 MB of commits in, 500 bytes out
  belljar run -c 'return 1 + 1'                  run code from the command line
  belljar run analyse.ts --context @data.json    run a file on data
  belljar workflow run release.yaml              tools, code and decisions; survives crashes
  belljar tools list                             MCP tools that code can call here
  belljar approvals                              tool calls that wait for a decision
  belljar doctor                                 what this machine can enforce";

const SERVE_EXAMPLES: &str = "\
Examples:
  belljar serve                                  over standard input and output, for one client
  belljar serve --http 8420                      over HTTP, for many; the token is in .belljar/token
  belljar serve --pass-through 'time__*'         also offer a server's tools directly

See docs/clients.md for the configuration of common clients.";

const RUN_EXAMPLES: &str = "\
Examples:
  belljar run -c '[1, 2, 3].map(n => n * n)'
  belljar run report.ts --context '{\"year\": 2026}' --timeout 5s --memory 64MiB
  curl -s https://example.org/data.json | belljar run -c 'context.length' --context @-
  echo 'return 6 * 7' | belljar run - --json
  belljar run resize.py -- in.png 640            arguments for the code: sys.argv[1:]
  belljar run -l python -c 'sum(range(10))'
  belljar run --engine quickjs -c '1 + 1'        instead of the engine that belljar.toml names
  belljar run fix.py --workspace . --commit      edit this directory if the run succeeds
  belljar run -l bash -c 'wc -l /work/*.md' --workspace docs
  belljar run -c 'await mcp.fs.readTextFile({path: \"a.txt\"})' --tool 'fs__read_*'
  belljar run sum.ts --intent 'read files'       with matching tools, as `tools search` shows them
  belljar run migrate.py --durable               `belljar resume` continues after a crash

The value is the return value of the code, or its last expression; for a shell script, its last line
if that is JSON. Without grants the code sees no file, no network, no environment and no other
process. Exit status: 0 if the run succeeded, 1 if it failed, 2 if the arguments are invalid, 130 if
it was interrupted.";

/// Runs the code LLM agents write, sealed in a sandbox that starts in under a millisecond.
#[derive(Debug, Parser)]
#[command(name = "belljar", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
    /// Configuration to use instead of the user's belljar.toml
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Directory of the project's state, e.g. if the project is read-only [default:
    /// BELLJAR_STATE_DIR, else .belljar in the project]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Colours: auto, always or never; `auto` follows NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) color: ColourChoice,
    /// Log to standard error (-vv: everything)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run TypeScript, JavaScript, Python or bash in a fresh, sealed cell
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArguments>),
    /// Keep a sandbox alive between runs; checkpoint, roll back and fork it
    #[command(subcommand, after_help = session::EXAMPLES)]
    Session(SessionCommand),
    /// Run workflows of tools, code and decisions that survive crashes
    #[command(subcommand, after_help = workflow::EXAMPLES)]
    Workflow(WorkflowSubcommand),
    /// Resume a durable run whose process has ended
    #[command(after_help = project::RESUME_EXAMPLES)]
    Resume(ResumeArguments),
    /// List the durable runs of this project, or delete some
    Runs(RunsArguments),
    /// Print a value that was too large for a result
    #[command(after_help = project::BLOB_EXAMPLES)]
    Blob(BlobArguments),
    /// List, describe, call and search the tools of MCP servers
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Decide about tool calls that wait for approval
    Approvals(ApprovalsArguments),
    /// Show tool calls with their callers and decisions
    #[command(after_help = project::AUDIT_EXAMPLES)]
    Audit(AuditArguments),
    /// Remove old records and free their space
    #[command(after_help = project::GC_EXAMPLES)]
    Gc(GcArguments),
    /// Copy the whole store to a file, also while a host is running
    #[command(after_help = project::BACKUP_EXAMPLES)]
    Backup(BackupArguments),
    /// Serve MCP clients: agents run code and call tools through Belljar
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArguments>),
    /// Show the idea in one command: 1.2 MB of commits in, 500 bytes out
    Demo(DemoArguments),
    /// The server behind the demo
    #[command(name = "__demo-server", hide = true)]
    DemoServer,
    /// Test which layers of isolation this machine can enforce
    Doctor(DoctorArguments),
}

#[derive(Debug, Default, Args)]
pub(crate) struct RunArguments {
    /// File with the code; `-` or a pipe without FILE reads standard input
    #[arg(value_name = "FILE", conflicts_with = "code")]
    pub(crate) file: Option<PathBuf>,
    /// Arguments for the code, after `--`: sys.argv, process.argv, $1
    #[arg(value_name = "ARGUMENT", last = true, conflicts_with = "session")]
    pub(crate) script: Vec<String>,
    /// Code to run
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<String>,
    /// typescript (ts), javascript (js), python (py) or bash (sh) [default: by file name or engine,
    /// else typescript]
    #[arg(short, long, value_parser = source::language)]
    pub(crate) language: Option<Language>,
    /// Engine to run it on [default: by language, see `[engines]` in belljar.toml]
    #[arg(long, value_name = "NAME", value_parser = source::engine())]
    pub(crate) engine: Option<EngineName>,
    /// Value of `context` in the code: JSON, or @FILE (`@-`: standard input)
    #[arg(long, value_name = "JSON|@FILE", allow_hyphen_values = true)]
    pub(crate) context: Option<String>,
    /// Run in this session of the running host (see `belljar session`)
    #[arg(long, value_name = "ID", conflicts_with_all = of_the_session())]
    pub(crate) session: Option<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write returned files into this directory, which is created if needed
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tools: ToolArguments,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArguments<OfRun>,
    #[command(flatten)]
    pub(crate) grants: GrantArguments<OfRun>,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// The arguments that a run in a session cannot have, because the session has them for all of its runs.
fn of_the_session() -> Vec<&'static str> {
    let limits = Limit::ALL.iter().filter(|limit| limit.in_session() != InSession::OfEachRun);
    let mut names = vec!["workspace", "commit", "commit_executable", "durable"];
    names.extend(Grant::ALL.iter().filter(|grant| grant.flag().is_some()).map(|grant| grant.key()));
    names.extend(limits.map(|limit| limit.key()));
    names
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Speak MCP over standard input and output [default]
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve MCP (path /mcp) and the HTTP API at this address; port 0 picks a free port
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = http_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Cells kept ready
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) pool: usize,
    /// Upstream tools that clients see beside Belljar's own, e.g. 'fs__read_*'
    #[arg(long, value_name = "SERVER__TOOL")]
    pub(crate) pass_through: Vec<String>,
    /// Host name, besides loopback, that requests may use
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(crate) allow_host: Vec<String>,
    /// Origin of web pages that may send requests
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,
    /// Log every HTTP request to standard error
    #[arg(long, value_name = "FORMAT", value_enum, requires = "http")]
    pub(crate) log: Option<LogFormat>,
    /// How long a graceful stop may take; a second signal ends it at once
    #[arg(long, value_name = "TIME", default_value = "25s", value_parser = quantity::duration)]
    pub(crate) stop_within: Duration,
    /// Serve the fixtures of the protocol's conformance suite, without a token
    #[arg(long, hide = true, requires = "http")]
    pub(crate) conformance: bool,
    /// Directory that clients may let code work on, copy-on-write
    #[arg(long, value_name = "DIR", help_heading = "Grants")]
    pub(crate) workspace: Vec<PathBuf>,
    /// Name that clients may commit although the host would execute it, e.g. .git, .envrc
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Grants")]
    pub(crate) commit_executable: Vec<String>,
    #[command(flatten)]
    pub(crate) grants: GrantArguments<OfServe>,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// Parses the address to serve at: a port alone, and `localhost`, are of this machine only.
fn http_address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    if let ("" | "localhost", Ok(port)) = (host, port.parse::<u16>()) {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| {
        "write a port such as 8420, or an address and a port such as localhost:8420, \
         0.0.0.0:8420 or [::1]:8420"
            .to_owned()
    })
}

/// Format of the request log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text
    Text,
    /// A JSON object per line
    Json,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DemoArguments {
    /// Print the figures and the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DoctorArguments {
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
