//! The host's work on a workspace once its cell is dead: list the changes, commit them to the
//! real directory, collect artifacts. In a session that lives: bring files in and out (`files.rs`).
//!
//! Everything in an upper directory was written by hostile code, and the real directory may be
//! changed by others meanwhile. So every path is opened beneath a directory handle without
//! following any link, walks are iterative and bounded in depth, entries and descriptors, and
//! nothing in the real directory is replaced or removed unless it still is what the change list
//! saw.
//!
//! Mounting the overlay, and making sure that its cell is dead, is the caller's duty.

mod artifacts;
mod attributes;
mod beneath;
mod change;
mod commit;
mod compare;
mod files;
mod links;
mod media;
mod protected;
mod remove;
mod stage;
mod unreturned;
mod upper;
mod walk;

pub use artifacts::{ArtifactCaps, ArtifactFile, Artifacts, LeftOut, SkippedArtifact, collect};
pub use change::{ChangeCaps, ChangeKind, ChangeList, EntryKind, PathChange, WithheldReason};
pub use commit::{
    CommitDurability, CommitOptions, CommitReport, NotCommitted, SkippedChange, commit,
};
pub use files::{BranchEntry, BranchFiles};
pub use protected::{ExecutedDirectory, NameUse, ProtectedPaths};
pub use unreturned::{WorkFile, unreturned};
pub use walk::changes;
