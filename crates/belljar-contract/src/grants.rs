//! Grants and workspaces (A5): the access of a run beyond its own cell, as requested and as given.
//!
//! A client requests ([`GrantsRequest`], [`WorkspaceRequest`]); the operator's rules decide what
//! the run gets ([`Grants`], [`Workspace`]). Only the second pair reaches the runtime.

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// The access that a run is given.
///
/// ```
/// use belljar_contract::{Grants, RunRequest};
///
/// let mut request = RunRequest::typescript("return Deno.readTextFileSync('/srv/data/a.csv')");
/// request.grants = Grants { read: vec!["/srv/data".into()], ..Grants::default() };
/// assert!(request.has_host_files());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grants {
    /// Files and directories of the host it may read, at their own paths.
    pub read: Vec<PathBuf>,
    /// Files and directories of the host it may change, at their own paths.
    pub write: Vec<PathBuf>,
    /// Environment variables it sees, with their values.
    pub env: BTreeMap<String, String>,
    /// Python modules and builtins that restricted mode would refuse.
    pub modules: Vec<String>,
    /// Commands beyond the default set.
    pub commands: Vec<String>,
    /// Nothing is refused at the level of the language; the jail stays as it is.
    pub permissive: bool,
}

/// The access that a client requests. A request beyond the operator's rules is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Grants")]
pub struct GrantsRequest {
    /// Files and directories of the host to read, at their own paths.
    pub read: Access,
    /// Files and directories of the host to change, at their own paths.
    pub write: Access,
    /// Hosts to reach, `host` or `host:port`.
    pub net: Access,
    /// Environment variables, with values.
    pub env: BTreeMap<String, String>,
    /// Python modules and builtins that restricted mode would refuse.
    pub modules: Vec<String>,
    /// Commands beyond the default set.
    pub commands: Vec<String>,
    /// The only tools it may call (`server__tool`, globs); absent means what policy allows.
    pub tools: Option<Vec<String>>,
}

/// How much of something a request asks for. In JSON it is a list; [`Access::All`] has no JSON of its
/// own, so only a caller that knows the operator's rules can ask for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub enum Access {
    /// No access, which is also the meaning of an empty list.
    #[default]
    None,
    /// All that the operator allows.
    All,
    /// Access to the entries of this list only.
    Only(Vec<String>),
}

impl From<Vec<String>> for Access {
    fn from(list: Vec<String>) -> Self {
        if list.is_empty() { Self::None } else { Self::Only(list) }
    }
}

impl From<Access> for Vec<String> {
    fn from(access: Access) -> Self {
        match access {
            Access::None | Access::All => Self::new(),
            Access::Only(list) => list,
        }
    }
}

impl JsonSchema for Access {
    fn schema_name() -> Cow<'static, str> {
        Vec::<String>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<String>::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A directory of the host that a run works on a copy-on-write view of (C1).
///
/// ```
/// use belljar_contract::{Language, RunRequest, Workspace};
///
/// let mut request = RunRequest::new(Language::Bash, "echo done > /work/status.txt");
/// // The run sees the directory at `/work`. Without `commit` the result only lists the changes.
/// request.workspace = Some(Workspace { path: "/srv/project".into(), ..Workspace::default() });
/// assert!(request.has_host_files());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// The directory on the host; the run sees it at `/work`.
    pub path: PathBuf,
    /// Whether a run that succeeds changes the directory itself. Otherwise its changes are only listed.
    pub commit: bool,
    /// Which names a commit brings that the host would execute.
    pub executable: CommitExecutable,
}

/// A workspace as a client asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Workspace")]
pub struct WorkspaceRequest {
    /// The directory, on the host.
    pub path: String,
    /// Whether the changes of a successful run are written to the directory.
    #[serde(default)]
    pub commit: bool,
    /// Names that are committed although the host would execute them, e.g. `.git`; only those that
    /// the operator allows.
    #[serde(default)]
    pub commit_executable: Vec<String>,
}

/// Which names a commit brings that some tool of the host would execute by itself, such as `.git` or
/// `.envrc`. Changes to all other such names are reported, and left out of the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitExecutable {
    /// These, spelt as the list of executed names has them.
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

    /// The names it was made from; empty when it brings all.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Names(names) => names,
            Self::All => &[],
        }
    }
}
