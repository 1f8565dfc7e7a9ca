//! Whatever ends the host of a command, or its keeper, and however far the command's processes have
//! run from it: nothing is left of them. As root and as an ordinary user.
//!
//! One program, many roles: without one of the `__` arguments it is the test runner.
#![expect(
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test program: a broken assumption should end it, loudly"
)]

mod harness;
mod roles;
#[path = "../../../belljar-testing/shared/skip.rs"]
mod skip;

use std::process::ExitCode;

use belljar_jail::process_tree::{self, ProcessTreeReport};
use harness::{Owner, SupervisedCommand, Who, marked, new_mark, soon};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    process_tree::serve_if_asked();
    let arguments: Vec<String> = std::env::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.get(1..).unwrap_or_default() {
        ["__owner", mark] => roles::own(mark),
        ["__daemonise", mark, life] => roles::daemonise(mark, life),
        ["__between", mark] => roles::between(mark),
        ["__daemon", _] => roles::daemon(),
        ["__describe"] => roles::describe(),
        _ => return run_tests(),
    }
    .map_or_else(
        |error| {
            eprintln!("{}: {error}", arguments[1]);
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

type Test = fn(Who) -> Result<(), Failed>;

const TESTS: [(&str, Test); 8] = [
    ("nothing_outlives_a_killed_owner", nothing_outlives_a_killed_owner),
    ("nothing_outlives_a_killed_outer_process", nothing_outlives_a_killed_outer_process),
    ("nothing_outlives_a_closed_socket", nothing_outlives_a_closed_socket),
    ("a_command_that_ends_takes_its_daemons_along", ends_with_its_command),
    ("a_command_has_its_streams_and_nothing_else", has_only_its_streams),
    ("a_program_that_is_not_there_is_reported", reports_what_is_missing),
    ("a_status_is_passed_on", passes_a_status_on),
    ("a_machine_that_forbids_it_is_reported_with_the_remedy", reports_a_refusal),
];

fn run_tests() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, test) in TESTS {
        for (user, who) in [("root", Who::Root), ("an_ordinary_user", Who::Ordinary)] {
            let run = move || if who.is_possible()? { test(who) } else { Ok(()) };
            trials.push(Trial::test(format!("{name}_as_{user}"), run));
        }
    }
    if arguments.list {
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    let _copy = match harness::prepare() {
        Ok(copy) => copy,
        Err(error) => {
            eprintln!("no copy for ordinary users: {error}");
            return ExitCode::FAILURE;
        }
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Owner, outer process, keeper, command and daemon, before anything is done to them.
///
/// Waited for, not looked for once: while a program is being loaded it has no command line yet, and
/// whoever started it may go on by then.
const ALL: usize = 5;

fn nothing_outlives_a_killed_owner(who: Who) -> Result<(), Failed> {
    let mut owner = Owner::start(who)?;
    // Control: they are there to begin with.
    assert!(soon(|| marked(&owner.mark).len() == ALL), "{:?}", marked(&owner.mark));
    owner.process.kill()?;
    owner.process.wait()?;
    assert!(soon(|| marked(&owner.mark).is_empty()), "left: {:?}", marked(&owner.mark));
    Ok(())
}

fn nothing_outlives_a_killed_outer_process(who: Who) -> Result<(), Failed> {
    let mut owner = Owner::start(who)?;
    let outer = owner.outer()?;
    rustix::process::kill_process(outer, rustix::process::Signal::KILL)?;
    // Only the owner is left. It never reaps, so the outer process stays as a zombie, which has no
    // command line.
    assert!(soon(|| marked(&owner.mark).len() == 1), "left: {:?}", marked(&owner.mark));
    owner.process.kill()?;
    owner.process.wait()?;
    Ok(())
}

fn nothing_outlives_a_closed_socket(who: Who) -> Result<(), Failed> {
    let mark = new_mark();
    let mut command = SupervisedCommand::start(who, &mark, &["__daemonise", &mark, "for ever"])?;
    assert_eq!(command.report()?, Some(ProcessTreeReport::Started));
    command.read_line()?;
    assert!(soon(|| marked(&mark).len() == ALL - 1), "{:?}", marked(&mark));
    drop(command.socket.take());
    command.process.wait()?;
    assert!(soon(|| marked(&mark).is_empty()), "left: {:?}", marked(&mark));
    Ok(())
}

fn ends_with_its_command(who: Who) -> Result<(), Failed> {
    let mark = new_mark();
    let mut command = SupervisedCommand::start(who, &mark, &["__daemonise", &mark, "short"])?;
    assert_eq!(command.report()?, Some(ProcessTreeReport::Started));
    command.read_line()?;
    assert_eq!(
        command.report()?,
        Some(ProcessTreeReport::Ended { status: "exit status: 0".to_owned() })
    );
    assert_eq!(command.report()?, None);
    command.process.wait()?;
    assert!(soon(|| marked(&mark).is_empty()), "left: {:?}", marked(&mark));
    Ok(())
}

fn has_only_its_streams(who: Who) -> Result<(), Failed> {
    let mut command = SupervisedCommand::start(who, "described", &["__describe"])?;
    assert_eq!(command.report()?, Some(ProcessTreeReport::Started));
    let uid = who.uid();
    // Number 2 in its namespace, and found there under that number.
    let expected = format!("fds [0, 1, 2] variables [\"MARK\"] uid {uid} pid 2 found true\n");
    assert_eq!(command.read_line()?, expected);
    Ok(())
}

fn reports_what_is_missing(who: Who) -> Result<(), Failed> {
    let mut command =
        SupervisedCommand::start_program(who, "missing", "no-such-program-anywhere", &[])?;
    match command.report()? {
        Some(ProcessTreeReport::NotStarted { not_found: true, .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    assert_eq!(command.report()?, None);
    command.process.wait()?;
    Ok(())
}

fn passes_a_status_on(who: Who) -> Result<(), Failed> {
    for (script, status, code) in
        [("exit 3", "exit status: 3", 3), ("kill -9 $$", "signal: 9 (SIGKILL)", 137)]
    {
        let mut command =
            SupervisedCommand::start_program(who, "status", "/bin/sh", &["-c", script])?;
        assert_eq!(command.report()?, Some(ProcessTreeReport::Started));
        assert_eq!(command.report()?, Some(ProcessTreeReport::Ended { status: status.to_owned() }));
        assert_eq!(command.process.wait()?.code(), Some(code));
    }
    Ok(())
}

fn reports_a_refusal(_: Who) -> Result<(), Failed> {
    let mut command = SupervisedCommand::start_where_it_is_forbidden()?;
    match command.report()? {
        Some(ProcessTreeReport::Refused { message, remedy }) => {
            assert!(
                message.starts_with("cannot create a pid namespace for the command: "),
                "{message}"
            );
            assert!(remedy.contains("user.max_user_namespaces"), "{remedy}");
        }
        other => return Err(format!("{other:?}").into()),
    }
    command.process.wait()?;
    Ok(())
}
