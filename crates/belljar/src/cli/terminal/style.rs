//! How text is rendered on one stream: colours, terminal or file, width.
//!
//! Detected once per stream, from the environment. Everything that renders text takes a
//! [`TextStyle`] and stays a pure function.

use std::{
    env,
    io::{self, IsTerminal},
};

/// The target of the text. Guest text is escaped for terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    /// A person's terminal: control sequences are escaped, never obeyed.
    Terminal,
    /// A file or another program: bytes stay as they are.
    Pipe,
}

/// Whether colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

/// How text is rendered on one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextStyle {
    pub(crate) device: Device,
    pub(crate) colours: Colours,
    pub(crate) width: usize,
}

/// The role of a piece of text, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextRole {
    Bad,
    Good,
    Caution,
    Strong,
    Dim,
    Accent,
    Key,
    Text,
    Number,
    Literal,
}

impl TextStyle {
    /// Plain text, as for a file.
    pub(crate) const PLAIN: Self = Self { device: Device::Pipe, colours: Colours::Off, width: 80 };

    pub(crate) fn of_stdout() -> Self {
        Self::of(io::stdout().is_terminal())
    }

    pub(crate) fn of_stderr() -> Self {
        Self::of(io::stderr().is_terminal())
    }

    fn of(terminal: bool) -> Self {
        if !terminal {
            return Self::PLAIN;
        }
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        let colours = if dumb || set("NO_COLOR") { Colours::Off } else { Colours::On };
        Self { device: Device::Terminal, colours, width: 80 }
    }

    pub(crate) fn is_terminal(self) -> bool {
        self.device == Device::Terminal
    }

    /// Wraps text in the colour of its role.
    pub(crate) fn paint(self, role: TextRole, text: &str) -> String {
        if self.colours == Colours::Off || text.is_empty() {
            return text.to_owned();
        }
        let code = match role {
            TextRole::Bad => "1;31",
            TextRole::Good => "32",
            TextRole::Caution => "33",
            TextRole::Strong => "1",
            TextRole::Dim => "2",
            TextRole::Accent => "36",
            TextRole::Key => "34",
            TextRole::Text => "32",
            TextRole::Number => "33",
            TextRole::Literal => "35",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
