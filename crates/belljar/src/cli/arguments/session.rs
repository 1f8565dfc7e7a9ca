//! Arguments of `belljar session`.

use std::{path::PathBuf, time::Duration};

use belljar_contract::{EngineName, Language};
use belljar_project::config::quantity;
use clap::{Args, Subcommand};

use super::{GrantArguments, LimitArguments, OfSession};
use crate::cli::source;

pub(super) const EXAMPLES: &str = "\
Examples:
  belljar serve --http 8420 &                    sessions live in a running host
  until [ -e .belljar/address ]; do sleep 0.1; done
  id=$(belljar session new -l python)
  belljar session exec $id -c 'x = 1'
  belljar session exec $id -c 'x + 1'            2
  point=$(belljar session checkpoint $id)
  belljar session exec $id -c 'x = 99'
  belljar session rollback $id $point            x is 1 again; files are restored too
  belljar session fork $id --count 3             three copies
  belljar session rm $id";

/// Subcommands of `belljar session`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Create a session and print its id
    New(SessionNewArguments),
    /// Run code in a session, with the variables and files of earlier runs
    Exec(SessionExecArguments),
    /// Save variables and files of a session; print the checkpoint's id
    Checkpoint(SessionNamedArguments),
    /// Restore a session to a checkpoint, which can be used again
    Rollback(SessionRollbackArguments),
    /// Duplicate a session and print the new ids
    Fork(SessionForkArguments),
    /// List the sessions of the running host
    #[command(visible_alias = "ls")]
    List(SessionListArguments),
    /// End sessions
    Rm(SessionRmArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SessionNewArguments {
    /// typescript (ts), javascript (js), python (py) or bash (sh) [default: by engine, else
    /// typescript]
    #[arg(short, long, value_parser = source::language)]
    pub(crate) language: Option<Language>,
    /// Engine of all its runs [default: by language, see `[engines]` in belljar.toml]
    #[arg(long, value_name = "NAME", value_parser = source::engine())]
    pub(crate) engine: Option<EngineName>,
    /// Directory that the session sees as a copy at /work; `belljar serve` must allow it
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// End the session when it is unused for this long [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) idle: Option<Duration>,
    /// End the session after this long, used or not [default: 8h]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) lifetime: Option<Duration>,
    /// Print all details as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) grants: GrantArguments<OfSession>,
    #[command(flatten)]
    pub(crate) limits: LimitArguments<OfSession>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionExecArguments {
    /// Id of the session
    pub(crate) id: String,
    /// File with the code; `-` or a pipe without FILE reads standard input
    #[arg(value_name = "FILE", conflicts_with = "code")]
    pub(crate) file: Option<PathBuf>,
    /// Code to run
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionNamedArguments {
    /// Id of the session
    pub(crate) id: String,
    /// Print all details as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionRollbackArguments {
    /// Id of the session
    pub(crate) id: String,
    /// Id of the checkpoint
    pub(crate) checkpoint: String,
}

#[derive(Debug, Args)]
pub(crate) struct SessionForkArguments {
    /// Id of the session
    pub(crate) id: String,
    /// Number of copies
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u32,
    /// Fork from this checkpoint instead of the current state
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) from: Option<String>,
    /// Print the ids as JSON
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
    /// Ids of the sessions
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}
