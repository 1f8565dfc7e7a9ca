//! A status line on a terminal's standard error that names the case being measured.

use std::io::{self, IsTerminal as _, Write as _};

#[derive(Debug, Clone, Copy)]
pub(super) struct ProgressLine {
    is_terminal: bool,
}

impl ProgressLine {
    pub(super) fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal() }
    }

    /// Replaces the line on the terminal.
    pub(super) fn show(self, what: &str) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\u{1b}[K{what}");
            let _ = io::stderr().flush();
        }
    }

    /// Removes the line, so that the result stands alone.
    pub(super) fn done(self) {
        self.show("");
    }
}
