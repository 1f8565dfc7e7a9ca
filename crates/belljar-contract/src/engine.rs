//! The engines that run code, as a request and a result name them.
//!
//! One row an engine. The host reads the abilities of an engine from its row and never infers them
//! from a language. The project finds engines on a machine, and the worker starts their zygotes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Language;

/// The facts about an engine that the host needs before it starts one.
#[derive(Debug, Clone, Copy)]
pub struct EngineRow {
    /// The engine's name in requests, results and arguments of zygotes.
    pub name: &'static str,
    /// The languages it runs. The first engine that runs a language is that language's default.
    pub languages: &'static [Language],
    /// Whether its code starts programs, so that commands can be granted to it.
    pub starts_programs: bool,
    /// Whether its code imports modules that a grant can allow.
    pub imports_modules: bool,
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
        name: "quickjs",
        languages: &[Language::TypeScript, Language::JavaScript],
        starts_programs: false,
        imports_modules: false,
    },
    /// The machine's own Python.
    CPython => EngineRow {
        name: "cpython",
        languages: &[Language::Python],
        starts_programs: true,
        imports_modules: true,
    },
    /// The machine's own bash.
    Bash => EngineRow {
        name: "bash",
        languages: &[Language::Bash],
        starts_programs: true,
        imports_modules: false,
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

    /// The names of all engines, for messages.
    pub fn names() -> String {
        Self::ALL.iter().map(|engine| engine.as_str()).collect::<Vec<_>>().join(", ")
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
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "no engine is called {name:?}; there are {}",
                Self::names()
            ))
        })
    }
}
