//! Branches of a session's cell: what is apart after branching, and what leads from one branch into
//! another (nothing), with a native guest, as root and as an ordinary user, for scripts and programs.
//!
//! One program, many roles: without one of the `__` arguments it is the test runner.
#![expect(clippy::print_stderr, reason = "a test program says loudly what it could not do")]

mod apart;
mod files;
mod harness;
mod hostile;
mod modes;
mod network;
mod python;
mod refused;
#[path = "../../../belljar-testing/shared/skip.rs"]
mod skip;

use std::process::ExitCode;

use harness::guest::Notebook;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.get(1..).unwrap_or_default() {
        ["__zygote"] => belljar_worker::become_zygote(|| Ok(Notebook::default())),
        ["__zygote", "cpython", _] => {
            belljar_worker::become_zygote_if_asked();
            ExitCode::FAILURE
        }
        ["__programs"] => belljar_worker::become_zygote_of_programs(&["__resume"], Vec::new()),
        ["__resume", handover] => {
            belljar_worker::resume_zygote(handover, || Ok(Notebook::default()))
        }
        ["__host", guests, name] => modes::host(guests, name),
        _ => modes::run_tests(),
    }
}
