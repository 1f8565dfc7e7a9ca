//! The gateway as clients see it, with a backend that runs nothing.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test these are how a failure is told"
)]

mod api_bad_input;
mod api_runs;
mod api_schema;
mod api_sessions;
mod api_support;
mod api_traces;
mod api_workflows;
mod approvals;
mod calls;
mod fake;
mod fake_sessions;
mod fake_workflows;
mod http;
mod lines;
mod workflows;
