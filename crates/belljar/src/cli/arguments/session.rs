//! Arguments of `belljar session`.

use std::{path::PathBuf, time::Duration};

use belljar_contract::Language;
use belljar_project::config::quantity;
use clap::{Args, Subcommand};

use crate::cli::source;

pub(super) const EXAMPLES: &str = "\
Examples:
  belljar serve --http 127.0.0.1:8420 &          sessions live in a host that goes on running
  until [ -e .belljar/address ]; do sleep 0.1; done
  id=$(belljar session new -l python)
  belljar session exec $id -c 'x = 1'
  belljar session exec $id -c 'x + 1'            2
  point=$(belljar session checkpoint $id)
  belljar session exec $id -c 'x = 99'
  belljar session rollback $id $point            x is 1 again, and so are the files
  belljar session fork $id --count 3             three of it, side by side
  belljar session rm $id";

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Make a session, and print its name
    New(SessionNewArguments),
    /// Run code in a session: what earlier code left behind is there
    Exec(SessionExecArguments),
    /// Keep a session as it is now, variables and files; print the checkpoint's name
    Checkpoint(SessionNamedArguments),
    /// Take a session back to a checkpoint, which stays
    Rollback(SessionRollbackArguments),
    /// Make several sessions of one, and print their names
    Fork(SessionForkArguments),
    /// Show the sessions of the host that runs here
    #[command(visible_alias = "ls")]
    List(SessionListArguments),
    /// End sessions
    Rm(SessionRmArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SessionNewArguments {
    /// typescript (ts), javascript (js), python (py) or bash (sh) [default: typescript]
    #[arg(short, long, value_parser = source::language)]
    pub(crate) language: Option<Language>,
    /// Memory, e.g. 64MiB, 1GiB [default: 512MiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub(crate) memory: Option<u64>,
    /// Command that code in the session may run, found in the host's PATH; repeat for more
    #[arg(long = "command", value_name = "NAME")]
    pub(crate) commands: Vec<String>,
    /// Directory the session works on a copy of, at /work; the host must be allowed to show it
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// End it when nothing was asked of it for so long [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) idle: Option<Duration>,
    /// End it after so long, used or not [default: 8h]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) lifetime: Option<Duration>,
    /// Print all there is to know as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionExecArguments {
    /// The session
    pub(crate) id: String,
    /// File with the code; `-` is standard input, also when it is left out in a pipe
    #[arg(value_name = "FILE", conflicts_with = "code")]
    pub(crate) file: Option<PathBuf>,
    /// The code itself, taken literally
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionNamedArguments {
    /// The session
    pub(crate) id: String,
    /// Print all there is to know as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionRollbackArguments {
    /// The session
    pub(crate) id: String,
    /// The checkpoint
    pub(crate) checkpoint: String,
}

#[derive(Debug, Args)]
pub(crate) struct SessionForkArguments {
    /// The session
    pub(crate) id: String,
    /// How many to make
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u32,
    /// Make them from this checkpoint instead of from how it is now
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) from: Option<String>,
    /// Print the names as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionListArguments {
    /// Print an array of sessions as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionRmArguments {
    /// The sessions
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}
