//! Generated types against programs that read them: the TypeScript compiler, another converter of
//! JSON Schema, and Python's type checkers, over the tools of real servers and over hostile ones.
//!
//! `scripts/oracles` installs the programs and `scripts/tool-corpus` collects the tools; a test
//! that lacks them fails and says so.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test these are how a failure is told"
)]

mod arguments;
mod assignable;
mod corpus;
mod hostile;
mod oracle;
mod python;
mod typescript;
