//! What every attempt stands on: making calls, reporting, baiting, running inside and outside.

pub(crate) mod attempt;
pub(crate) mod bait;
pub(crate) mod control;
pub(crate) mod held;
pub(crate) mod home;
pub(crate) mod host;
pub(crate) mod outcome;
pub(crate) mod probe;
pub(crate) mod processes;
pub(crate) mod raw;
pub(crate) mod software;
pub(crate) mod spawn;
