//! The parts that every attempt uses: making calls, reporting, baiting, running inside and outside.

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
#[path = "../branch/harness/session.rs"]
#[expect(dead_code, reason = "the tests of branches use more of it")]
pub(crate) mod session;
pub(crate) mod software;
pub(crate) mod spawn;
