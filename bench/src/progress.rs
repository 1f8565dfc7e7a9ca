//! One line on a terminal's standard error saying what is being measured.

use std::io::{self, IsTerminal as _, Write as _};

#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { shown: io::stderr().is_terminal() }
    }

    /// Replaces the line.
    pub(super) fn say(self, what: &str) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K{what}");
            let _ = io::stderr().flush();
        }
    }

    /// Removes the line.
    pub(super) fn done(self) {
        self.say("");
    }
}
