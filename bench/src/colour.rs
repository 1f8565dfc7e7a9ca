//! Colours of the table and of errors, on a terminal that supports them.

use std::{
    env,
    io::{self, IsTerminal as _},
};

/// Decides whether text on one stream is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Painter {
    has_colours: bool,
}

/// The role of a piece of text, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Bad,
    Good,
    Caution,
    Strong,
    Dim,
    Accent,
}

impl Painter {
    /// Never colours, as for a file.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { has_colours: false };

    pub(crate) fn of_stdout() -> Self {
        Self::of(io::stdout().is_terminal())
    }

    pub(crate) fn of_stderr() -> Self {
        Self::of(io::stderr().is_terminal())
    }

    fn of(is_terminal: bool) -> Self {
        let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { has_colours: is_terminal && !is_plain && !is_dumb }
    }

    /// Wraps text in the colour of its role.
    pub(crate) fn paint(self, role: Paint, text: &str) -> String {
        if !self.has_colours || text.is_empty() {
            return text.to_owned();
        }
        let code = match role {
            Paint::Bad => "1;31",
            Paint::Good => "32",
            Paint::Caution => "33",
            Paint::Strong => "1",
            Paint::Dim => "2",
            Paint::Accent => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
