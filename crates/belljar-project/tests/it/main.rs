//! The library as a Rust program uses it, in this process. What the `belljar` program does with it is
//! tested there.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test these are how a failure is told")]

mod embed;
mod zygote;
