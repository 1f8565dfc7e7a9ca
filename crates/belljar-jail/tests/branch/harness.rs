//! The sessions, guests and roles that the tests share.

pub(crate) mod guest;
pub(crate) mod hidden;
#[path = "../escape/harness/raw.rs"]
#[expect(dead_code, reason = "the security suite uses more of it")]
pub(crate) mod raw;
#[allow(dead_code, reason = "the security suite uses the rest of it")]
pub(crate) mod session;
