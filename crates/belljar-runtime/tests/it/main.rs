//! The host with real zygotes and cells. Sessions, tools and languages of the machine are tested in the crates
//! that add them.
//!
//! This program is its own zygote, so it has no test harness of the compiler: each module lists its tests in
//! `trials`. A test that is not in the list is dead code, which is a warning.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails this way"
)]

#[macro_use]
mod harness;
mod descendants;
mod host_engines;
mod host_limits;
mod host_pool;
mod processes;
#[path = "../../../belljar-testing/shared/skip.rs"]
mod skip;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    // First of all: no thread may exist yet.
    belljar_worker::become_zygote_if_asked();
    let mut arguments = Arguments::from_args();
    // Tests count the processes of this one, so they do not run in parallel within it.
    arguments.test_threads.get_or_insert(1);
    let all = [host_engines::trials(), host_limits::trials(), host_pool::trials()];
    libtest_mimic::run(&arguments, all.into_iter().flatten().collect()).exit_code()
}
