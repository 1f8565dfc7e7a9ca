//! Which engine runs what, and the port by which the host learns how to start one.

use std::{fmt::Debug, path::PathBuf};

use belljar_jail::View;
use belljar_wire::Language;

use crate::ZygoteProgram;

/// What runs a language. Each has a zygote of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// TypeScript and JavaScript, inside Belljar's own program.
    QuickJs,
    /// Python, with the standard library imported.
    CPython,
    /// Python, with numpy and pandas imported too.
    CPythonData,
    /// Shell.
    Bash,
}

impl EngineKind {
    /// Every engine there is.
    pub const ALL: [Self; 4] = [Self::QuickJs, Self::CPython, Self::CPythonData, Self::Bash];

    /// The engine's name in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuickJs => "quickjs",
            Self::CPython | Self::CPythonData => "cpython",
            Self::Bash => "bash",
        }
    }
}

/// How to start a zygote of an engine.
#[derive(Debug, Clone)]
pub struct EngineLaunch {
    /// The program that becomes it.
    pub program: ZygoteProgram,
    /// What it needs to see of the host's software; `None` for an engine that needs nothing.
    pub view: Option<View>,
}

/// Where engines come from. Found once each, when first needed.
pub trait EngineSource: Debug + Send + Sync {
    /// The engine for a piece of code.
    fn choose(&self, language: Language, code: &str) -> EngineKind;

    /// How to start a zygote of it, or why that cannot be done here and what to do about it. May
    /// take a while: it is not called on an asynchronous thread.
    fn find(&self, engine: EngineKind) -> Result<EngineLaunch, String>;

    /// The program a command's name means, if cells can be given it.
    fn command(&self, name: &str) -> Option<PathBuf>;
}

/// A program that becomes a zygote of TypeScript and JavaScript, and of nothing else.
impl EngineSource for ZygoteProgram {
    fn choose(&self, language: Language, _code: &str) -> EngineKind {
        match language {
            Language::TypeScript | Language::JavaScript => EngineKind::QuickJs,
            Language::Python => EngineKind::CPython,
            Language::Bash => EngineKind::Bash,
        }
    }

    fn find(&self, engine: EngineKind) -> Result<EngineLaunch, String> {
        match engine {
            EngineKind::QuickJs => Ok(EngineLaunch { program: self.clone(), view: None }),
            EngineKind::CPython | EngineKind::CPythonData | EngineKind::Bash => {
                Err(format!("this host has no {}", engine.as_str()))
            }
        }
    }

    fn command(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}
