//! The benchmarks as a person or a CI job runs them: arguments in, streams and exit status out.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test these are how a failure is told")]

mod bench;
mod command;

// Where `#[sandboxed]` looks for it.
use command::no_sandbox;
