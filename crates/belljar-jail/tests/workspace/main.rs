//! Change lists, commits and artifacts, with real overlays and hostile upper directories.
//!
//! Change lists are compared with the output of `diff` and `find` about the same trees. All of it
//! works as root and as an ordinary user; what needs root says so when it is skipped.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test program: a broken assumption should end it, loudly"
)]

mod artifacts;
mod conflicts;
mod edits;
mod harness;
mod hostile;
mod links;
mod lists;
mod owners;
mod protected;
mod races;
mod random;
#[path = "../../../belljar-testing/shared/skip.rs"]
mod skip;
