//! Names that nothing else has.

use belljar_contract::{CheckpointId, RunId, SessionId};

/// A new name for a run.
pub fn run_id() -> String {
    RunId::from_random(random()).into()
}

/// A new name for a session.
pub(crate) fn session_id() -> String {
    SessionId::from_random(random()).into()
}

/// A new name for a checkpoint.
pub(crate) fn checkpoint_id() -> String {
    CheckpointId::from_random(random()).into()
}

fn random() -> [u8; 10] {
    let mut bytes = [0; 10];
    // Without randomness the name is merely not unique; nothing fails for it.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes
}
