//! The store as its callers and other processes see it.
#![expect(clippy::unwrap_used, reason = "in a test this is how a failure is told")]

mod approvals;
mod audit;
mod blobs;
mod cache;
mod crash;
mod events;
mod group;
mod journal;
mod open;
mod retention;
mod runs;
mod sessions;
mod support;
mod upkeep;
mod workflows;
