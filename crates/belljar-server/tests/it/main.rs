//! The gateway as clients see it, with a backend that runs nothing.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test these are how a failure is told"
)]

mod approvals;
mod calls;
mod fake;
mod http;
mod lines;
