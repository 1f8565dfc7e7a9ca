//! The in-jail side of Belljar: the zygote, the cell's main, and one module per engine.
//!
//! Nothing here knows policy, secrets or the network, and nothing here is trusted by the host:
//! once guest code has run, this process belongs to it.

pub mod bash;
mod cell;
pub mod cpython;
mod disk;
mod engine;
mod link;
pub mod quickjs;
mod zygote;

pub use engine::{Done, Engine};
pub use link::HostLink;
pub use zygote::{
    BASH_ARGUMENT, COMMANDS_DIRECTORY, CPYTHON_ARGUMENT, ZYGOTE_ARGUMENT, become_zygote,
    become_zygote_if_asked, become_zygote_of_programs, resume_zygote,
};
