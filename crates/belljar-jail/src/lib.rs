//! Confinement of a process on Linux, and nothing else.
//!
//! A [`ZygotePlan`] is a value. [`zygote::serve`] turns the calling process into a zygote with
//! every mechanism of the plan in force, and clones cells from it on request; whatever cannot be
//! put in force is a [`ConfineError`] naming the [`Mechanism`], and no guest code runs.
//!
//! This is the only crate with `unsafe`. It knows no engine, no tool and nothing asynchronous.

mod branch;
mod cell;
mod certificates;
pub mod cgroup;
mod code_pages;
pub mod control;
mod error;
pub mod examine;
mod identity;
mod keeper;
mod landlock;
#[cfg(feature = "library")]
pub mod library;
mod mechanism;
mod mounts;
mod network;
mod numbers;
mod plan;
pub mod process_tree;
mod rlimits;
pub mod sample;
pub mod seccomp;
pub mod session;
pub mod strays;
mod sys;
mod trees;
pub mod workspace;
pub mod zygote;

pub use branch::{BranchSide, BranchStep, Brancher};
pub use cell::{ConfinedCell, Guest, OwnLimits};
pub use certificates::CERTIFICATE_BUNDLE;
pub use error::ConfineError;
pub use keeper::{
    GuestEnd, KeeperReport, receive_answer, receive_report, request_branch, request_branch_files,
    request_drop, request_first_guest, request_resize, request_work,
};
pub use mechanism::Mechanism;
pub use network::PROXY_PORT;
pub use plan::{
    CellGrants, CellKind, CellLimits, GrantedTree, Guests, NetworkAccess, TreeAccess, View,
    ZygotePlan,
};
pub use sys::process::kill_by_pidfd;
