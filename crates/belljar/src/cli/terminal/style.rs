//! How text is rendered on one stream: colours, terminal or file, width.
//!
//! Detected once per stream, from the environment. Everything that renders text takes a
//! [`TextStyle`] and stays a pure function.

use std::{
    env,
    io::{self, IsTerminal},
    sync::OnceLock,
};

use clap::ValueEnum;

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

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColourChoice {
    // Doc comments here would be part of --help.
    #[default]
    Auto,
    Always,
    Never,
}

static CHOICE: OnceLock<ColourChoice> = OnceLock::new();

/// Decides about colours for the whole process. Only the first call has an effect.
pub(crate) fn choose(choice: ColourChoice) {
    let _ = CHOICE.set(choice);
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
        let choice = CHOICE.get().copied().unwrap_or_default();
        let device = if terminal { Device::Terminal } else { Device::Pipe };
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let colours = match choice {
            ColourChoice::Always => Colours::On,
            ColourChoice::Never => Colours::Off,
            ColourChoice::Auto if set("NO_COLOR").is_some() => Colours::Off,
            ColourChoice::Auto if forced || terminal && Self::can_redraw() => Colours::On,
            ColourChoice::Auto => Colours::Off,
        };
        Self { device, colours, width: 80 }
    }

    /// Whether a terminal obeys control sequences.
    pub(crate) fn can_redraw() -> bool {
        env::var_os("TERM").is_some_and(|term| term != "dumb")
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
