//! The library as a Rust program uses it, in this process. What the `belljar` program does with it is
//! tested there.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails this way"
)]

mod consent;
mod corpus;
#[path = "../../../belljar-runtime/tests/it/descendants.rs"]
mod descendants;
mod embed;
mod executor;
mod executor_durable;
mod executor_support;
#[path = "../../../belljar-runtime/tests/it/processes.rs"]
mod host_support;
mod intent;
mod mixed;
mod one_way_out;
mod session_branches;
mod session_copies;
mod session_crowd;
mod session_strays;
mod session_support;
mod session_tools;
mod sessions;
#[path = "../../../belljar-testing/shared/skip.rs"]
mod skip;
mod zygote;

// Where `#[sandboxed]` looks for it.
use zygote::no_sandbox;
