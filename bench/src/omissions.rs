//! Cases that were not measured, and why. They are reported at the end of a run.

use std::{cell::RefCell, fmt::Write as _};

/// Missing peers, and cases that cannot be measured.
#[derive(Debug, Default)]
pub(super) struct Omissions {
    missing: RefCell<Vec<String>>,
    left_out: RefCell<Vec<(String, String)>>,
}

impl Omissions {
    /// Records that a peer is not installed on this machine.
    pub(super) fn missing(&self, peer: &str) {
        let mut missing = self.missing.borrow_mut();
        if !missing.iter().any(|known| known == peer) {
            missing.push(peer.to_owned());
        }
    }

    /// Records that a case cannot be measured although its peer is installed.
    pub(super) fn left_out(&self, case: &str, reason: &str) {
        self.left_out.borrow_mut().push((case.to_owned(), reason.to_owned()));
    }

    /// Lists everything that was left out, with how to install missing peers; empty if nothing was.
    pub(super) fn text(&self) -> String {
        let missing = self.missing.borrow().join(", ");
        let mut text = String::new();
        if !missing.is_empty() {
            let how = "install with scripts/peers";
            let _ = writeln!(text, "missing: {missing} ({how})");
        }
        for (case, reason) in self.left_out.borrow().iter() {
            let _ = writeln!(text, "left out: {case}: {reason}");
        }
        text
    }
}
