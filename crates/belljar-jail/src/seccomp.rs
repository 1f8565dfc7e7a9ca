//! The system-call filters of each kind of process, compiled to a compact decision tree.
//!
//! A [`SeccompPolicy`] is a table from system-call number to [`SeccompRule`]; everything not in it is refused
//! with EPERM. Foreign architectures and x32 numbers end the process. The tree form matters: the
//! kernel walks every instruction of a filter for each loaded syscall number when it builds its
//! cache, and a linear list of the same policy takes six times as long to load.

mod policy;
mod program;

pub use policy::{ArgumentTest, SeccompPolicy, SeccompRule};
pub use program::{Instruction, SeccompProgram};

#[cfg(test)]
mod tests;
