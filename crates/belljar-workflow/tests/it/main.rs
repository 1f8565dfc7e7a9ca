//! Workflows as those who drive them see them.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "in a test this is how a failure is told"
)]
#![expect(clippy::print_stdout, reason = "tests say how often they killed and what it took")]

mod commands;
mod conformance;
mod crashes;
mod drivers;
mod flawed_store;
mod forks;
mod sqlite_conformance;
mod world;
