//! The security suite: native attempts made inside cells by a probe of our own, each with a
//! positive control outside; layers taken away one at a time; set-up calls made to fail; hosts
//! killed at any moment.
//!
//! One program, many roles: without one of the `__` arguments it is the test runner.
#![expect(
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test program: a broken assumption should end it, loudly"
)]

mod cells;
mod descriptors;
mod faults;
mod files;
mod frames;
mod harness;
mod ipc;
mod javascript;
mod kernel;
mod layers;
mod memory;
mod modes;
mod mounts;
mod namespaces;
mod neighbours;
mod network;
mod processes;
mod programs;
mod sessions;
#[path = "../../../belljar-testing/shared/skip.rs"]
mod skip;
mod survivors;
mod sweep;
mod weakened;

use std::process::ExitCode;

use belljar_jail::Guests;
use harness::{control, host, probe::Probe, spawn};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.get(1..).unwrap_or_default() {
        ["__zygote", ..] => belljar_worker::become_zygote(|| Ok(Probe)),
        ["__programs", rest @ ..] => {
            belljar_worker::become_zygote_of_programs(&[&["__resume"], rest].concat(), Vec::new())
        }
        ["__resume", .., handover] => belljar_worker::resume_zygote(handover, || Ok(Probe)),
        ["__host", spec] => host::main(spec),
        ["__session_host", spec] => sessions::main(spec),
        ["__fault", name, errno, "--", rest @ ..] => faults::main(name, errno, rest),
        ["__sweep", place, file, "--", rest @ ..] => sweep::main(place, file, rest),
        ["__churn", mark, _] => survivors::main(mark, "", Guests::Script),
        ["__churn_programs", mark, home] => survivors::main(mark, home, Guests::Programs),
        ["__javascript"] => javascript::become_zygote(),
        ["__scripts", spec] => javascript::main(spec),
        ["__control", role, name, setting, bait] => control::main(role, name, setting, bait),
        ["__sleep"] => std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map(drop),
        ["__can_sandbox"] => modes::enter_user_namespace(),
        _ => return run_tests(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", arguments[1]);
            ExitCode::FAILURE
        }
    }
}

fn run_tests() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = trials();
    if arguments.list {
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    let _copy = match spawn::prepare() {
        Ok(copy) => copy,
        Err(error) => {
            eprintln!("no copy for ordinary users: {error}");
            return ExitCode::FAILURE;
        }
    };
    if !modes::can_sandbox() {
        trials = trials.into_iter().map(modes::skipped).collect();
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trials() -> Vec<Trial> {
    let all = [
        modes::trials(),
        sessions::trials(),
        layers::trials(),
        cells::trials(),
        weakened::trials(),
        faults::trials(),
        sweep::trials(),
        survivors::trials(),
        javascript::trials(),
    ];
    all.into_iter().flatten().collect()
}
