//! Upstreams with real servers, and with one that does what real ones do on bad days.
//!
//! One program, many roles: without one of the `__` arguments it is the test runner. Real servers are
//! installed by `scripts/servers`; a test that does not find its server fails and says so.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test program: a broken assumption should end it, loudly"
)]

mod faults;
mod harness;
mod hostile;
mod http;
mod limits;
mod lists;
mod orphans;
mod real;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    belljar_jail::process_tree::serve_if_asked();
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, mark] = arguments.as_slice()
        && role == "__host"
    {
        orphans::host(mark);
    }
    let trials = [
        real::trials(),
        faults::trials(),
        lists::trials(),
        limits::trials(),
        http::trials(),
        hostile::trials(),
        orphans::trials(),
    ];
    let trials: Vec<_> = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
