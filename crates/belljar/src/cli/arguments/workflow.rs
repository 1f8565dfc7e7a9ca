//! Arguments of `belljar workflow`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{GrantArguments, LimitArguments, OfWorkflow, WorkspaceArguments};

pub(super) const EXAMPLES: &str = "\
Examples:
  belljar workflow validate release.yaml         list its faults, with lines
  belljar workflow run release.yaml --input version=1.4 --enable-code-execution
  belljar workflow list                          all workflows, and which can be resumed
  belljar workflow show flow_1f0c                tasks, times, open decisions, checkpoints
  belljar workflow show flow_1f0c --dot | dot -Tsvg > flow.svg
  belljar workflow events flow_1f0c --follow     live events; --after N starts there
  belljar workflow command flow_1f0c approve d1  answer a decision
  belljar workflow resume flow_1f0c              continue after Ctrl-C or a crash
  belljar workflow rollback flow_1f0c --to 7     restore state and files, run compensations
  belljar workflow fork flow_1f0c --at 7         a copy that continues from there

A file is a YAML agent (`nodes`) or a DAG of tasks (`tasks`, YAML or JSON); see docs/workflows.md.
Code in a file runs only with --enable-code-execution. Exit status: 0 if the workflow completed, 1
if it failed or was aborted, 2 if the arguments or the file are invalid, 130 if it was interrupted
(it can be resumed).";

const COMMAND_EXAMPLES: &str = "\
Examples:
  belljar workflow command ID approve d1 --value '{\"amount\": 10}'
  belljar workflow command ID reject d1 --reason 'not on a Friday'
  belljar workflow command ID skip fetch
  belljar workflow command ID modify-args deploy '{\"target\": \"staging\"}'
  belljar workflow command ID resolve charge --retry       or --use JSON, or --fail
  belljar workflow command ID inject-tasks @more.json
  belljar workflow command ID --command-id once-1 pause    the same id counts once";

/// Subcommands of `belljar workflow`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowSubcommand {
    /// Run a workflow file to its end
    Run(Box<WorkflowRunArguments>),
    /// Resume an interrupted workflow
    Resume(WorkflowResumeArguments),
    /// Show a workflow: its tasks, decisions and checkpoints
    Show(WorkflowShowArguments),
    /// Show the events of a workflow
    Events(WorkflowEventsArguments),
    /// Send a command to a workflow; it is stored until it is answered
    #[command(after_help = COMMAND_EXAMPLES)]
    Command(WorkflowCommandArguments),
    /// Roll a workflow back to a checkpoint, and report what was undone
    Rollback(WorkflowRollbackArguments),
    /// Create a copy of a workflow at a checkpoint
    Fork(WorkflowForkArguments),
    /// Delete an ended workflow and everything stored for it
    #[command(visible_alias = "rm")]
    Delete(WorkflowDeleteArguments),
    /// List the workflows of this project, newest first
    #[command(visible_alias = "ls")]
    List(WorkflowListArguments),
    /// Check a workflow file without running it
    Validate(WorkflowValidateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRunArguments {
    /// The workflow file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Input value: JSON, or else text
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) input: Vec<String>,
    /// Inputs as a JSON object, or @FILE
    #[arg(long, value_name = "JSON|@FILE", allow_hyphen_values = true)]
    pub(crate) inputs: Option<String>,
    /// Run the code in the file, each task in its own sealed cell
    #[arg(long)]
    pub(crate) enable_code_execution: bool,
    /// Allow bash in that code
    #[arg(long, requires = "enable_code_execution")]
    pub(crate) enable_shell: bool,
    /// Id of the workflow [default: a new id]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArguments<OfWorkflow>,
    #[command(flatten)]
    pub(crate) grants: GrantArguments<OfWorkflow>,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowResumeArguments {
    /// Id of the workflow, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Write the changed files to this directory if the workflow completes
    #[arg(long, value_name = "DIR")]
    pub(crate) commit_to: Option<PathBuf>,
    /// Also commit this name, which the host would execute, e.g. .git, .envrc
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
    /// Id of the workflow, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Show the workflow at this checkpoint
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,
    /// Print all details as JSON
    #[arg(long, conflicts_with = "dot")]
    pub(crate) json: bool,
    /// Print the task graph for Graphviz
    #[arg(long)]
    pub(crate) dot: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowEventsArguments {
    /// Id of the workflow, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Only events after this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: u64,
    /// Wait for more events until the workflow has ended
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowCommandArguments {
    /// Id of the workflow, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Id of the command; a second command with this id has no effect
    #[arg(long, value_name = "ID", global = true)]
    pub(crate) command_id: Option<String>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Command to send
    #[command(subcommand)]
    pub(crate) what: WorkflowCommandSpec,
}

/// Commands for a workflow.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommandSpec {
    /// End the workflow: running tasks are stopped, no more are started
    Abort {
        /// Reason for the abort
        #[arg(long)]
        reason: Option<String>,
    },
    /// Start no more tasks; running ones may finish
    Pause,
    /// Continue after a pause or a rollback
    Continue,
    /// Skip a task; tasks that depend on it get null
    Skip {
        /// Name of the task
        task: String,
    },
    /// Change arguments of a task that has not started
    ModifyArgs {
        /// Name of the task
        task: String,
        /// Changed arguments, as a JSON object or @FILE
        arguments: String,
    },
    /// Approve a decision
    Approve {
        /// Id of the decision, as in `show` and `events`
        decision: String,
        /// Value that goes with the approval, as JSON
        #[arg(long)]
        value: Option<String>,
    },
    /// Reject a decision: its task fails
    Reject {
        /// Id of the decision
        decision: String,
        /// Reason for the rejection
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resolve a task whose outcome is unknown
    #[command(group = clap::ArgGroup::new("how").required(true).args(["retry", "use_value", "fail"]))]
    Resolve {
        /// Name of the task
        task: String,
        /// It did not happen, or may happen twice: run it again
        #[arg(long)]
        retry: bool,
        /// It happened with this result, as JSON
        #[arg(long = "use", value_name = "JSON")]
        use_value: Option<String>,
        /// It failed
        #[arg(long)]
        fail: bool,
    },
    /// Add tasks
    InjectTasks {
        /// List of tasks as in a workflow file, or @FILE
        tasks: String,
    },
    /// Replace all tasks that have not started
    Replan {
        /// List of tasks as in a workflow file, or @FILE
        tasks: String,
        /// Reason for the new plan
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRollbackArguments {
    /// Id of the workflow, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Number of the checkpoint, as in `show`; 1 is the first
    #[arg(long, value_name = "N")]
    pub(crate) to: u64,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowForkArguments {
    /// Id of the workflow, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Number of the checkpoint, as in `show` [default: the newest before the end]
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) at: Option<u64>,
    /// Id of the copy [default: a new id]
    #[arg(long = "id", value_name = "ID")]
    pub(crate) new_id: Option<String>,
    /// Print the new id as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowDeleteArguments {
    /// Ids of the workflows, or prefixes of them
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowListArguments {
    /// Number of workflows, newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Only workflows with this status, e.g. running, paused, completed, failed
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
    /// Do not ask the servers whether the named tools exist
    #[arg(long)]
    pub(crate) no_tools: bool,
    /// Print the faults as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
