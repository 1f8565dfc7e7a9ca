//! The proxy against real servers on loopback, with a resolver of the test's own.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test program")]

mod bodies;
mod credentials;
mod fetch;
mod http;
mod pauses;
mod requests;
mod site;
mod support;
mod termination;
mod tunnels;
