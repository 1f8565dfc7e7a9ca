//! The in-jail side of Belljar: the port of engines and their table, the zygote, the cell's main,
//! and one module per engine.
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

pub use bash::COMMANDS_DIRECTORY;
pub use engine::{CodeRunner, ENGINES, Engine};
pub use link::HostLink;
pub use zygote::{
    ZYGOTE_ARGUMENT, become_zygote, become_zygote_if_asked, become_zygote_of_programs,
    resume_zygote,
};
