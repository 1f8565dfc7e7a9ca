//! The languages guest code is written in.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::EngineName;

/// The language of guest code. JSON has its name; the others are understood as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// TypeScript; its types are stripped, not checked.
    TypeScript,
    /// JavaScript, run as it is written.
    JavaScript,
    /// Python, by the machine's own CPython.
    Python,
    /// Shell, by the machine's own bash.
    Bash,
}

impl Language {
    /// Every language there is.
    pub const ALL: [Self; 4] = [Self::TypeScript, Self::JavaScript, Self::Python, Self::Bash];

    /// Their names, in the same order.
    pub const NAMES: [&'static str; 4] = {
        let [typescript, javascript, python, bash] = Self::ALL;
        [typescript.as_str(), javascript.as_str(), python.as_str(), bash.as_str()]
    };

    /// All of them for a message, each as it is to be shown: "a, b or c".
    pub fn one_of(show: impl Fn(Self) -> String) -> String {
        let [first, second, third, last] = Self::ALL.map(show);
        format!("{first}, {second}, {third} or {last}")
    }

    /// The name that requests, results and records use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::Bash => "bash",
        }
    }

    /// The ending of its source files, which is also its short name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::TypeScript => "ts",
            Self::JavaScript => "js",
            Self::Python => "py",
            Self::Bash => "sh",
        }
    }

    /// The name errors and stacks show for code that has no file.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::TypeScript => "main.ts",
            Self::JavaScript => "main.js",
            Self::Python => "main.py",
            Self::Bash => "main.sh",
        }
    }

    /// The language of code whose request names none: the first language of the engine that it names, or
    /// else TypeScript.
    pub fn default_for(engine: Option<EngineName>) -> Self {
        let first = engine.and_then(|engine| engine.row().languages.first());
        first.copied().unwrap_or(Self::TypeScript)
    }

    /// The language that the first line of the code names, as in `#!/usr/bin/env python3`.
    pub fn of_shebang(code: &str) -> Option<Self> {
        let line = code.strip_prefix("#!")?.lines().next()?;
        let mut words = line.split_whitespace().filter(|word| !word.starts_with('-'));
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let mut program = name(words.next()?);
        if program == "env" {
            program = name(words.next()?);
        }
        match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "python" => Some(Self::Python),
            "bash" | "sh" | "dash" | "zsh" => Some(Self::Bash),
            "node" | "deno" | "bun" => Some(Self::JavaScript),
            "ts-node" | "tsx" => Some(Self::TypeScript),
            _ => None,
        }
    }

    /// Another name that people and models use for it.
    const fn also(self) -> Option<&'static str> {
        match self {
            Self::TypeScript | Self::JavaScript => None,
            Self::Python => Some("python3"),
            Self::Bash => Some("shell"),
        }
    }

    /// The language a person or a model means: one of its names, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| {
            let names =
                [language.as_str(), language.extension()].into_iter().chain(language.also());
            names.into_iter().any(|known| name.eq_ignore_ascii_case(known))
        })
    }
}

impl<'de> Deserialize<'de> for Language {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let name = String::deserialize(json)?;
        Self::from_name(&name).ok_or_else(|| de::Error::unknown_variant(&name, &Self::NAMES))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
