//! The engines that run code, as a request and a result name them.
//!
//! One row an engine. The host reads the abilities of an engine from its row and never infers them
//! from a language. The project finds engines on a machine, and the worker starts their zygotes.

use std::{error::Error, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Language;

/// The facts about an engine that the host needs before it starts one.
#[derive(Debug, Clone, Copy)]
pub struct EngineRow {
    /// The engine's name in requests, results and arguments of zygotes.
    pub name: &'static str,
    /// The languages it runs. The first engine that runs a language is that language's default; the
    /// first language is what a request means that names the engine only.
    pub languages: &'static [Language],
    /// Whether it is part of Belljar's own program. Other engines are programs of the machine, and the
    /// project has a finder for each.
    pub is_built_in: bool,
    /// Whether its code starts programs, so that commands can be granted to it.
    pub starts_programs: bool,
    /// Whether its code imports modules that a grant can allow.
    pub imports_modules: bool,
    /// Whether its code opens connections, which lead to a proxy if hosts are granted.
    pub opens_connections: bool,
    /// Whether its code has `fetch`, by which its host makes requests to granted hosts.
    pub fetches: bool,
    /// Whether the processes that code in a session leaves behind end with their run. Otherwise they
    /// end at the next check of the cell, which costs the run no time.
    pub ends_strays_with_run: bool,
    /// Variables that a session sets to 1 unless its caller sets them: they stop libraries from starting
    /// threads, and a guest with threads cannot be branched.
    pub one_thread_variables: &'static [&'static str],
    /// Code that names one of these libraries gets a zygote that has loaded the data libraries.
    pub data_libraries: &'static [&'static str],
}

impl EngineRow {
    /// A part of Belljar's own program, with no further ability.
    const fn built_in(name: &'static str, languages: &'static [Language]) -> Self {
        Self {
            name,
            languages,
            is_built_in: true,
            starts_programs: false,
            imports_modules: false,
            opens_connections: false,
            fetches: false,
            ends_strays_with_run: false,
            one_thread_variables: &[],
            data_libraries: &[],
        }
    }

    /// A program of the machine, with no further ability.
    const fn program(name: &'static str, languages: &'static [Language]) -> Self {
        Self { is_built_in: false, ..Self::built_in(name, languages) }
    }
}

macro_rules! engines {
    ($($(#[$doc:meta])* $variant:ident => $row:expr,)*) => {
        /// An engine, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
        #[schemars(rename_all = "lowercase")]
        pub enum EngineName {
            $($(#[$doc])* $variant,)*
        }

        impl EngineName {
            /// Every engine there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The row of this engine.
            pub const fn row(self) -> &'static EngineRow {
                match self {
                    $(Self::$variant => {
                        const ROW: EngineRow = $row;
                        &ROW
                    })*
                }
            }
        }
    };
}

engines! {
    /// TypeScript and JavaScript, inside Belljar's own program.
    QuickJs => EngineRow {
        fetches: true,
        ..EngineRow::built_in("quickjs", &[Language::TypeScript, Language::JavaScript])
    },
    /// The machine's own Python.
    CPython => EngineRow {
        starts_programs: true,
        imports_modules: true,
        opens_connections: true,
        fetches: true,
        one_thread_variables: &[
            "OPENBLAS_NUM_THREADS",
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "NUMEXPR_NUM_THREADS",
        ],
        data_libraries: &["numpy", "pandas", "matplotlib", "scipy", "sklearn", "seaborn"],
        ..EngineRow::program("cpython", &[Language::Python])
    },
    /// The machine's own bash.
    Bash => EngineRow {
        starts_programs: true,
        opens_connections: true,
        ends_strays_with_run: true,
        ..EngineRow::program("bash", &[Language::Bash])
    },
}

impl EngineName {
    /// The name in requests, results and arguments of zygotes.
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The engine of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|engine| engine.as_str() == name)
    }

    /// The engine that runs a language unless a request names another.
    pub fn default_for(language: Language) -> Self {
        let first = Self::ALL.iter().copied().find(|engine| engine.runs(language));
        first.unwrap_or(Self::QuickJs)
    }

    /// Whether it runs code of a language.
    pub fn runs(self, language: Language) -> bool {
        self.row().languages.contains(&language)
    }

    /// Refuses a language that it does not run.
    ///
    /// # Errors
    /// If it does not run code of the language.
    pub fn check(self, language: Language) -> Result<(), EngineMismatch> {
        if self.runs(language) { Ok(()) } else { Err(EngineMismatch { engine: self, language }) }
    }

    /// The names of all engines, for messages.
    pub fn names() -> String {
        names(|_| true)
    }
}

fn names(is_meant: impl Fn(EngineName) -> bool) -> String {
    let meant = EngineName::ALL.iter().filter(|engine| is_meant(**engine));
    meant.map(|engine| engine.as_str()).collect::<Vec<_>>().join(", ")
}

/// A name that no engine has. The message lists the engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEngine {
    /// The name as it was given.
    pub name: String,
}

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no engine {:?}; engines: {}", self.name, EngineName::names())
    }
}

impl Error for UnknownEngine {}

/// An engine that was named for code in a language that it does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineMismatch {
    /// The engine that was named.
    pub engine: EngineName,
    /// The language of the code.
    pub language: Language,
}

impl EngineMismatch {
    /// Lists the engines that do run the language.
    pub fn hint(self) -> String {
        format!(
            "engines that run {}: {}",
            self.language,
            names(|engine| engine.runs(self.language))
        )
    }
}

impl fmt::Display for EngineMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine {} does not run {}", self.engine, self.language)
    }
}

impl Error for EngineMismatch {}

impl FromStr for EngineName {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        Self::from_name(name).ok_or_else(|| UnknownEngine { name: name.to_owned() })
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for EngineName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EngineName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
