//! System calls no crate wraps safely: one call, one wrapper, one reason.

pub(crate) mod filesystem_user;
pub(crate) mod interface;
pub(crate) mod memory;
pub(crate) mod mount;
pub(crate) mod process;
pub(crate) mod seccomp;
pub(crate) mod signals;
pub(crate) mod socket;
