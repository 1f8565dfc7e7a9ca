//! What was not measured, and why: said at the end of a run, never silently left out.

use std::{cell::RefCell, fmt::Write as _};

/// Peers that are not there, and cases that could not be measured.
#[derive(Debug, Default)]
pub(super) struct Omissions {
    missing: RefCell<Vec<String>>,
    left_out: RefCell<Vec<(String, String)>>,
}

impl Omissions {
    /// Notes that a peer is not on this machine.
    pub(super) fn missing(&self, peer: &str) {
        let mut missing = self.missing.borrow_mut();
        if !missing.iter().any(|known| known == peer) {
            missing.push(peer.to_owned());
        }
    }

    /// Notes that something is there but cannot be measured.
    pub(super) fn left_out(&self, case: &str, reason: &str) {
        self.left_out.borrow_mut().push((case.to_owned(), reason.to_owned()));
    }

    /// Names all of it and says how to get what is missing; empty if nothing is.
    pub(super) fn text(&self) -> String {
        let missing = self.missing.borrow().join(", ");
        let mut text = String::new();
        if !missing.is_empty() {
            let how = "to install what can be installed: scripts/peers";
            let _ = writeln!(text, "missing: {missing} ({how})");
        }
        for (case, reason) in self.left_out.borrow().iter() {
            let _ = writeln!(text, "left out: {case}: {reason}");
        }
        text
    }
}
