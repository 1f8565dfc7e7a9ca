//! New, random names for runs, sessions and checkpoints.

use belljar_contract::{CheckpointId, RunId, SessionId};

/// A new name for a run, `run_…`.
pub fn run_id() -> RunId {
    RunId::from_random(random())
}

/// A new name for a session, `ses_…`.
pub(crate) fn session_id() -> SessionId {
    SessionId::from_random(random())
}

/// A new name for a checkpoint, `chk_…`.
pub(crate) fn checkpoint_id() -> CheckpointId {
    CheckpointId::from_random(random())
}

fn random() -> [u8; 10] {
    let mut bytes = [0; 10];
    // Without randomness the name is not unique, which is no reason to fail.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes
}
