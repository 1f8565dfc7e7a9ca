//! What a caller asks for.

use std::{collections::BTreeMap, path::PathBuf};

use belljar_paths::names::all_executed;
pub use belljar_wire::Language;
use serde_json::value::RawValue;

use serde::{Deserialize, Serialize};

use crate::Limits;

/// One piece of guest code, and what it may use.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The code.
    pub code: String,
    /// What it is written in.
    pub language: Language,
    /// The name errors and stacks show for it.
    pub file_name: String,
    /// The global `context`; `None` is an empty object.
    pub context: Option<Box<RawValue>>,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub grants: Grants,
    /// The directory it works in; `None` is an empty one of its own.
    pub workspace: Option<Workspace>,
}

/// What a run may reach beyond nothing (A5).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Files and directories of the host it may read, at their own paths.
    pub read: Vec<PathBuf>,
    /// Files and directories of the host it may change, at their own paths.
    pub write: Vec<PathBuf>,
    /// Environment variables it sees.
    pub env: BTreeMap<String, String>,
    /// Python modules and builtins that restricted mode would refuse.
    pub modules: Vec<String>,
    /// Commands beyond the default set.
    pub commands: Vec<String>,
    /// Nothing is refused at the level of the language; the jail stays as it is.
    pub permissive: bool,
}

/// A directory of the host that a run works on a copy-on-write view of (C1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// The directory.
    pub path: PathBuf,
    /// Whether what the run changed goes to the directory if it succeeds. Otherwise it is only told.
    pub commit: bool,
    /// What a commit brings of what the host would execute.
    pub executable: CommitExecutable,
}

/// Which names a commit brings that some tool of the host would execute by itself, such as `.git` or
/// `.envrc`: see [`belljar_paths::names::EXECUTED`]. All others are told, and left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitExecutable {
    /// These, spelt as they are listed.
    Names(Vec<String>),
    /// All of them: for a directory that no tool of the host looks at.
    All,
}

impl Default for CommitExecutable {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

impl CommitExecutable {
    /// Whether a name of the list is brought.
    pub fn has(&self, listed: &str) -> bool {
        match self {
            Self::Names(names) => names.iter().any(|name| name == listed),
            Self::All => true,
        }
    }

    /// The first of the names that is not on the list: somebody means something else.
    pub fn unlisted(&self) -> Option<&str> {
        let Self::Names(names) = self else { return None };
        let is_listed = |name: &&String| all_executed().any(|listed| listed == name.as_str());
        names.iter().find(|name| !is_listed(name)).map(String::as_str)
    }
}

impl RunRequest {
    /// TypeScript with the default limits and no context.
    pub fn typescript(code: impl Into<String>) -> Self {
        Self::new(Language::TypeScript, code)
    }

    /// Code with the default limits, no context and no grants.
    pub fn new(language: Language, code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            language,
            file_name: language.file_name().to_owned(),
            context: None,
            limits: Limits::DEFAULT,
            grants: Grants::default(),
            workspace: None,
        }
    }
}
