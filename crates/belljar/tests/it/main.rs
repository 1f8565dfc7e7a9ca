//! The `belljar` program as a person or another program uses it: arguments in, streams and exit
//! status out. What a run does inside is tested where it is done; this shows that it arrives.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test these are how a failure is told"
)]

mod bench;
mod command;
mod config;
mod corpus;
mod demo;
mod doctor;
mod embed;
mod escape_bait;
mod escape_bash;
mod escape_python;
mod help;
mod host_limits;
mod host_pool;
mod host_support;
mod languages;
mod mixed;
mod run;
mod signals;
mod workspace;
