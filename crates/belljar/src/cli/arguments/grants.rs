//! The flags of the grants, made from the contract's table: a grant with a flag is a row there. Beside
//! them the flags of a workspace.
//!
//! `belljar run`, `belljar workflow run` and `belljar serve` have the same flags with other texts: a flag
//! gives the grant, allows the file to ask for it, or allows clients to ask for it.

use std::{ffi::OsString, fmt, marker::PhantomData, path::PathBuf};

use belljar_contract::{Grant, GrantFlag, GrantKind};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

/// The command that has the flags.
pub(crate) trait GrantingCommand: fmt::Debug + Default + Send + Sync + 'static {
    /// The heading of the flags.
    const HEADING: &str = "Grants";

    /// The text of `--help` about a grant's flag, if the command has it.
    fn help(grant: Grant, flag: GrantFlag) -> Option<&'static str>;
}

/// A command that has one workspace.
pub(crate) trait WorkspaceCommand: GrantingCommand {
    /// The text of `--help` about `--workspace`.
    const WORKSPACE: &str;
    /// The text of `--help` about `--commit`.
    const COMMIT: &str;
}

/// `belljar run`.
#[derive(Debug, Default)]
pub(crate) struct OfRun;

impl WorkspaceCommand for OfRun {
    const WORKSPACE: &str = "Directory that the code sees as /work, copy-on-write";
    const COMMIT: &str = "Write the changes to the workspace directory if the run succeeds";
}

impl GrantingCommand for OfRun {
    fn help(_: Grant, flag: GrantFlag) -> Option<&'static str> {
        Some(flag.help)
    }
}

/// `belljar workflow run`.
#[derive(Debug, Default)]
pub(crate) struct OfWorkflow;

impl WorkspaceCommand for OfWorkflow {
    const WORKSPACE: &str =
        "Directory whose files the workflow starts with; its tasks work on copies";
    const COMMIT: &str =
        "Write the changed files to the workspace directory if the workflow completes";
}

impl GrantingCommand for OfWorkflow {
    fn help(_: Grant, flag: GrantFlag) -> Option<&'static str> {
        flag.workflow_help
    }
}

/// `belljar serve`: what clients may ask for.
#[derive(Debug, Default)]
pub(crate) struct OfServe;

impl GrantingCommand for OfServe {
    fn help(_: Grant, flag: GrantFlag) -> Option<&'static str> {
        flag.serve_help
    }
}

/// `belljar session new`: a request to the running host.
#[derive(Debug, Default)]
pub(crate) struct OfSession;

impl GrantingCommand for OfSession {
    const HEADING: &str = "Grants, which the host must allow";

    fn help(grant: Grant, flag: GrantFlag) -> Option<&'static str> {
        Grant::OF_CLIENTS.contains(&grant).then_some(flag.help)
    }
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Grants")]
pub(crate) struct WorkspaceArguments<C: WorkspaceCommand> {
    #[arg(long, value_name = "DIR", help = C::WORKSPACE)]
    pub(crate) workspace: Option<PathBuf>,
    #[arg(long, requires = "workspace", help = C::COMMIT)]
    pub(crate) commit: bool,
    /// Also commit this name, which the host would execute, e.g. .git, .envrc
    #[arg(long, value_name = "NAME", requires = "commit", value_delimiter = ',')]
    pub(crate) commit_executable: Vec<String>,
    #[arg(skip)]
    command: PhantomData<C>,
}

/// The grants that were given as flags.
#[derive(Debug, Default)]
pub(crate) struct GrantArguments<C> {
    given: Vec<(Grant, Vec<OsString>)>,
    command: PhantomData<C>,
}

impl<C> GrantArguments<C> {
    /// The grants that were given, each with the values of its flag; a switch has none.
    pub(crate) fn given(&self) -> &[(Grant, Vec<OsString>)] {
        &self.given
    }
}

impl<C: GrantingCommand> Args for GrantArguments<C> {
    fn augment_args(command: Command) -> Command {
        let command = command.next_help_heading(C::HEADING);
        Grant::ALL.iter().copied().filter_map(argument::<C>).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: GrantingCommand> FromArgMatches for GrantArguments<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let with_flag = Grant::ALL.iter().filter(|grant| argument::<C>(**grant).is_some());
        let given = with_flag.filter_map(|grant| Some((*grant, values(*grant, matches)?)));
        Ok(Self { given: given.collect(), command: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument<C: GrantingCommand>(grant: Grant) -> Option<Arg> {
    let flag = grant.flag()?;
    let argument = Arg::new(grant.key()).long(flag.name).help(C::help(grant, flag)?);
    if grant.kind() == GrantKind::Switch {
        return Some(argument.action(ArgAction::SetTrue));
    }
    let argument = argument.value_name(flag.value_name).action(ArgAction::Append);
    // Whether a path is text is for the host to say, with the path in its message.
    Some(match grant.kind() == GrantKind::Paths {
        true => argument.value_parser(value_parser!(OsString)),
        false => argument,
    })
}

/// The values of a flag that was given.
fn values(grant: Grant, matches: &ArgMatches) -> Option<Vec<OsString>> {
    let key = grant.key();
    if grant.kind() == GrantKind::Switch {
        matches.get_flag(key).then(Vec::new)
    } else if grant.kind() == GrantKind::Paths {
        matches.get_many::<OsString>(key).map(|all| all.cloned().collect())
    } else {
        matches.get_many::<String>(key).map(|all| all.map(OsString::from).collect())
    }
}
