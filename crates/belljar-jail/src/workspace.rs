//! What the host does with a workspace once its cell is dead: list what changed, commit it to the
//! real directory, collect artifacts. In a session that lives: bring files in and out (`files.rs`).
//!
//! Everything in an upper directory was written by hostile code, and the real directory may be
//! changed by others meanwhile. So every path is opened beneath a directory handle without
//! following any link, walks are iterative and bounded in depth, entries and descriptors, and
//! nothing in the real directory is replaced or removed unless it still is what the change list saw.
//!
//! Mounting the overlay, and making sure that its cell is dead, is left to others.

mod artifacts;
mod attributes;
mod beneath;
mod change;
mod commit;
mod compare;
mod files;
mod kept;
mod links;
mod media;
mod remove;
mod stage;
mod upper;
mod walk;

pub use artifacts::{Artifact, ArtifactCaps, Artifacts, LeftOut, SkippedArtifact, collect};
pub use change::{Change, ChangeCaps, ChangeKind, Changes, EntryKind, Withheld};
pub use commit::{CommitOptions, CommitReport, Durability, NotCommitted, Skipped, commit};
pub use files::{BranchFiles, Listed};
pub use kept::{ExecutedDirectory, Kept, Obeyed};
pub use walk::changes;
