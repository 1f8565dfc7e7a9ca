//! The flags of the limits, made from the contract's table: a limit is a row there.

use std::{fmt, marker::PhantomData};

use belljar_contract::{InSession, Limit, Limits, Quantity};
use belljar_project::config::quantity;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, builder::ValueParser};

use super::{OfRun, OfSession};

/// The command that has the flags.
pub(crate) trait LimitingCommand: fmt::Debug + Default + Send + Sync + 'static {
    /// Whether it has the flag of a limit.
    fn has(limit: Limit) -> bool;
}

impl LimitingCommand for OfRun {
    fn has(_: Limit) -> bool {
        true
    }
}

impl LimitingCommand for OfSession {
    fn has(limit: Limit) -> bool {
        limit.in_session() != InSession::OfEachRun
    }
}

/// The limits that were given as flags, as amounts.
#[derive(Debug, Default)]
pub(crate) struct LimitArguments<C = OfRun> {
    given: Vec<(Limit, u64)>,
    command: PhantomData<C>,
}

impl<C: LimitingCommand> LimitArguments<C> {
    fn limits() -> impl Iterator<Item = Limit> {
        Limit::ALL.iter().copied().filter(|limit| C::has(*limit))
    }

    /// The limits that were given.
    pub(crate) fn given(&self) -> &[(Limit, u64)] {
        &self.given
    }
}

impl<C: LimitingCommand> Args for LimitArguments<C> {
    fn augment_args(command: Command) -> Command {
        let command = command.next_help_heading("Limits");
        Self::limits().map(argument).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: LimitingCommand> FromArgMatches for LimitArguments<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given =
            Self::limits().filter_map(|limit| Some((limit, *matches.get_one::<u64>(limit.key())?)));
        Ok(Self { given: given.collect(), command: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(limit: Limit) -> Arg {
    let value_name = match limit.quantity() {
        Quantity::Time => "TIME",
        Quantity::Size => "SIZE",
        Quantity::Count => "N",
    };
    let usual = if limit == Limit::Cpu {
        "the wall time".to_owned()
    } else {
        quantity::show(limit, limit.get(&Limits::DEFAULT))
    };
    let parser = ValueParser::from(move |text: &str| quantity::parse(limit, text));
    let argument = Arg::new(limit.key()).long(limit.flag()).value_name(value_name);
    argument.value_parser(parser).help(format!("{} [default: {usual}]", limit.help()))
}
