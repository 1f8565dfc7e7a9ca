//! Arguments of `belljar workflow`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::LimitArguments;

pub(super) const EXAMPLES: &str = "\
Examples:
  belljar workflow validate release.yaml         what is wrong with it, line by line
  belljar workflow run release.yaml --input version=1.4 --enable-code-execution
  belljar workflow list                          what was run here, and what can go on
  belljar workflow show flow_1f0c                tasks, times, open decisions, checkpoints
  belljar workflow show flow_1f0c --dot | dot -Tsvg > flow.svg
  belljar workflow events flow_1f0c --follow     as it happens; --after N replays from there
  belljar workflow command flow_1f0c approve d1  answer a decision
  belljar workflow resume flow_1f0c              go on after Ctrl-C or a crash
  belljar workflow rollback flow_1f0c --to 7     back to a checkpoint: state, files, compensations
  belljar workflow fork flow_1f0c --at 7         another one that goes on from there

A file is a YAML agent (`nodes`) or a DAG of tasks (`tasks`, YAML or JSON); docs/workflows.md has both.
Code in a file runs only with --enable-code-execution. Exit status: 0 if the workflow completed, 1 if it
failed or was aborted, 2 if the arguments or the file make no sense, 130 if it was interrupted (it can
be resumed).";

const COMMAND_EXAMPLES: &str = "\
Examples:
  belljar workflow command ID approve d1 --value '{\"amount\": 10}'
  belljar workflow command ID reject d1 --reason 'not on a Friday'
  belljar workflow command ID skip fetch
  belljar workflow command ID modify-args deploy '{\"target\": \"staging\"}'
  belljar workflow command ID resolve charge --retry       or --use JSON, or --fail
  belljar workflow command ID inject-tasks @more.json
  belljar workflow command ID --command-id once-1 pause    the same id twice is one command";

/// What to do with workflows.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowSubcommand {
    /// Run a workflow file to its end
    Run(Box<WorkflowRunArguments>),
    /// Go on with a workflow that was interrupted
    Resume(WorkflowResumeArguments),
    /// Show a workflow: its tasks, decisions and checkpoints
    Show(WorkflowShowArguments),
    /// Show what happened in a workflow
    Events(WorkflowEventsArguments),
    /// Tell a workflow to do something; the command is kept until it is answered
    #[command(after_help = COMMAND_EXAMPLES)]
    Command(WorkflowCommandArguments),
    /// Take a workflow back to a checkpoint, and report what was undone
    Rollback(WorkflowRollbackArguments),
    /// Make a new workflow of what another was at a checkpoint
    Fork(WorkflowForkArguments),
    /// Forget a workflow that has ended, and what is kept of it
    #[command(visible_alias = "rm")]
    Delete(WorkflowDeleteArguments),
    /// Show the workflows of this project, newest first
    #[command(visible_alias = "ls")]
    List(WorkflowListArguments),
    /// Find everything that is wrong with a workflow file, and run nothing
    Validate(WorkflowValidateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRunArguments {
    /// The workflow file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// An input: its value is JSON, or else text
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) input: Vec<String>,
    /// Inputs as a JSON object, or @FILE
    #[arg(long, value_name = "JSON|@FILE", allow_hyphen_values = true)]
    pub(crate) inputs: Option<String>,
    /// Let the file's code run, each piece in a sealed cell of its own
    #[arg(long)]
    pub(crate) enable_code_execution: bool,
    /// Let bash be among that code
    #[arg(long, requires = "enable_code_execution")]
    pub(crate) enable_shell: bool,
    /// Directory whose files the workflow begins with; its tasks work on copies
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// If the workflow completes, bring what it changed to the workspace's directory
    #[arg(long, requires = "workspace")]
    pub(crate) commit: bool,
    /// Commit also this, which the host would execute, e.g. .git, .envrc
    #[arg(long, value_name = "NAME", requires = "commit", value_delimiter = ',')]
    pub(crate) commit_executable: Vec<String>,
    /// File or directory that the file may have code read
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,
    /// Environment variable that the file may give to code; without a value, its value here
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// What to call it [default: a new id]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowResumeArguments {
    /// The workflow; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// If it completes, bring what it changed to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) commit_to: Option<PathBuf>,
    /// Commit also this, which the host would execute, e.g. .git, .envrc
    #[arg(long, value_name = "NAME", requires = "commit_to", value_delimiter = ',')]
    pub(crate) commit_executable: Vec<String>,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowShowArguments {
    /// The workflow; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// As it was at this checkpoint
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,
    /// Print all there is to know as JSON
    #[arg(long, conflicts_with = "dot")]
    pub(crate) json: bool,
    /// Print its graph for Graphviz
    #[arg(long)]
    pub(crate) dot: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowEventsArguments {
    /// The workflow; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Only those after this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: u64,
    /// Wait for more until the workflow has ended
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print an object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowCommandArguments {
    /// The workflow; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The command's own id: sent again with the same id it changes nothing
    #[arg(long, value_name = "ID", global = true)]
    pub(crate) command_id: Option<String>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What it is to do
    #[command(subcommand)]
    pub(crate) what: WorkflowCommandSpec,
}

/// What a workflow is told.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommandSpec {
    /// End it: what runs is stopped, nothing more starts
    Abort {
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Start nothing more; what runs may end
    Pause,
    /// Go on after a pause or a rollback
    Continue,
    /// Leave a task out; what depends on it runs with null
    Skip {
        /// The task
        task: String,
    },
    /// Change arguments of a task that has not begun
    ModifyArgs {
        /// The task
        task: String,
        /// The arguments that change, as a JSON object or @FILE
        arguments: String,
    },
    /// Answer a decision with yes
    Approve {
        /// The decision, as `show` and `events` name it
        decision: String,
        /// What is said with it, as JSON
        #[arg(long)]
        value: Option<String>,
    },
    /// Answer a decision with no: its task fails
    Reject {
        /// The decision
        decision: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Say what became of a task of which nobody knows whether it happened
    #[command(group = clap::ArgGroup::new("how").required(true).args(["retry", "use_value", "fail"]))]
    Resolve {
        /// The task
        task: String,
        /// It did not happen, or may happen twice: do it again
        #[arg(long)]
        retry: bool,
        /// It happened, and this was its result, as JSON
        #[arg(long = "use", value_name = "JSON")]
        use_value: Option<String>,
        /// It failed
        #[arg(long)]
        fail: bool,
    },
    /// Add tasks
    InjectTasks {
        /// A list of tasks as in a workflow file, or @FILE
        tasks: String,
    },
    /// Put tasks in place of all that have not begun
    Replan {
        /// A list of tasks as in a workflow file, or @FILE
        tasks: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRollbackArguments {
    /// The workflow; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The checkpoint, as `show` numbers them; 1 is the beginning
    #[arg(long, value_name = "N")]
    pub(crate) to: u64,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowForkArguments {
    /// The workflow; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The checkpoint, as `show` numbers them [default: the newest at which it had not ended]
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) at: Option<u64>,
    /// What to call it [default: a new id]
    #[arg(long = "id", value_name = "ID")]
    pub(crate) new_id: Option<String>,
    /// Print its id as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowDeleteArguments {
    /// The workflows; the beginning of an id is enough
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowListArguments {
    /// How many, newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Only those in this status, e.g. running, paused, completed, failed
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Print an array as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowValidateArguments {
    /// The workflow file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Do not ask the servers whether they have the tools it names
    #[arg(long)]
    pub(crate) no_tools: bool,
    /// Print the faults as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
