//! The benchmarks as a person or a CI job runs them: arguments in, streams and exit status out.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails this way")]

mod bench;
mod command;
#[path = "../../../crates/belljar-testing/shared/place.rs"]
mod place;
#[path = "../../../crates/belljar-testing/shared/skip.rs"]
mod skip;

// Where `#[sandboxed]` looks for it.
use command::no_sandbox;
