//! Grants and workspaces (A5): the access of a run beyond its own cell, declared in one table.
//!
//! A grant is a row: its name in requests and files, what kind of thing it gives, its flag, what its engine
//! must be able to do, and its type as a client asks for it, as a task of a workflow asks for it, and as a
//! run is given it. The command line, the HTTP API, the MCP tool, workflow files, the operator's checks and
//! `docs/grants.md` follow this table. Adding a grant is one row here and one place that enforces it.
//!
//! A request asks ([`GrantsRequest`], [`TaskGrants`], [`WorkspaceRequest`]); the operator's rules turn that
//! into what the run is given ([`Grants`], [`Workspace`]). Only the second kind reaches the runtime.

mod clients;
mod containment;
mod fields;
mod operator;
mod table;
mod variables;

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap as _};
use serde_json::Value;

use crate::{EngineRow, ErrorCode, StrictObject};

pub use clients::{ClientGrants, GrantRefusal, GrantRule, NameRule};
pub use containment::contained;
pub use operator::{GrantKey, GrantTable, IgnoredGrant, resolved_path};
pub use table::{Grant, Grants, GrantsRequest, TaskGrants};
pub use variables::VariablesRequest;

/// The kind of thing that a grant gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// Paths of the host, within those that the operator allows.
    Paths,
    /// Hosts of the network, within those that the operator allows.
    Hosts,
    /// Environment variables. A client states values of its own or names variables of the operator; a task
    /// names them, and the operator has the values.
    Variables,
    /// Names of things that the jail confines anyway.
    Names,
    /// Names of tools; policy decides about their calls.
    Tools,
    /// Something that is on or off.
    Switch,
}

/// A flag of the command line that gives a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantFlag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// How `--help` calls its value; a switch has none.
    pub value_name: &'static str,
    /// The text of `belljar run --help` about it.
    pub help: &'static str,
    /// The text of `belljar workflow run --help`. There the flag allows the file to ask for the grant;
    /// `None` if there is nothing to allow.
    pub workflow_help: Option<&'static str>,
    /// The text of `belljar serve --help`. There the flag allows clients to ask for the grant; `None` if no
    /// flag does.
    pub serve_help: Option<&'static str>,
}

/// The operator's key for a grant. The operator says which values clients and tasks may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorKey {
    /// The values in messages: "reading", "the module".
    pub noun: &'static str,
    /// The code of a refusal.
    pub code: ErrorCode,
    /// Whether every value is allowed if the operator states none.
    pub is_open: bool,
}

/// An ability that an engine needs for a grant to be of use to its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineAbility {
    /// Start programs.
    StartsPrograms,
    /// Import modules that a grant can allow.
    ImportsModules,
}

impl EngineAbility {
    /// Whether an engine has it.
    pub const fn is_of(self, engine: &EngineRow) -> bool {
        match self {
            Self::StartsPrograms => engine.starts_programs,
            Self::ImportsModules => engine.imports_modules,
        }
    }

    /// The shortcoming of an engine without it, for messages.
    pub const fn lack(self) -> &'static str {
        match self {
            Self::StartsPrograms => "starts no programs",
            Self::ImportsModules => "imports no modules",
        }
    }
}

/// The value of one grant that a run is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantValue {
    /// Paths of the host.
    Paths(Vec<PathBuf>),
    /// Environment variables, with their values.
    Variables(BTreeMap<String, String>),
    /// Names of modules or commands.
    Names(Vec<String>),
    /// Whether it is on.
    Switch(bool),
}

/// A request for one grant, by the kind of decision that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantAsk<'a> {
    /// Paths of the host: the operator says which.
    Paths(&'a Access),
    /// Hosts of the network: the operator says which.
    Hosts(&'a Access),
    /// Variables, each with the value that the request states. The operator has the other values.
    Variables(Vec<(&'a str, Option<&'a str>)>),
    /// Tools: policy decides about each call.
    Tools(&'a [String]),
    /// Names or a switch. The jail confines what they do; the operator may still decide which.
    Value(GrantValue),
}

impl Grant {
    /// The names that requests and workflow files may use for it, the usual one first.
    pub fn names(self) -> Vec<&'static str> {
        let mut names = vec![self.key()];
        names.extend(self.also());
        names
    }

    /// Its flag, without the dashes; its key, if it has none.
    pub fn flag_name(self) -> &'static str {
        self.flag().map_or(self.key(), |flag| flag.name)
    }

    /// The grant of this name that code can miss: a path, a variable, a name or a host. Code cannot know
    /// that a policy or a mode kept something from it.
    pub fn of_missing(key: &str) -> Option<Self> {
        let has_names = |grant: &Self| {
            !matches!(grant.kind(), GrantKind::Tools | GrantKind::Switch) && grant.key() == key
        };
        Self::ALL.iter().copied().find(has_names)
    }
}

/// Its name in requests.
impl Serialize for Grant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

impl Grants {
    /// The grants that give something.
    pub fn given(&self) -> Vec<Grant> {
        let fields = self.fields().into_iter();
        fields.filter(|(_, field)| field.is_given()).map(|(grant, _)| grant).collect()
    }

    /// Every grant with its value.
    pub fn values(&self) -> Vec<(Grant, GrantValue)> {
        self.fields().into_iter().map(|(grant, field)| (grant, field.value())).collect()
    }

    /// Gives one grant. A value that is not of the grant's kind gives nothing.
    pub fn give(&mut self, grant: Grant, value: GrantValue) {
        let field = self.fields_mut().into_iter().find(|(other, _)| *other == grant);
        if let Some((_, field)) = field {
            field.give(value);
        }
    }
}

impl GrantsRequest {
    /// The requested grants.
    pub fn asked(&self) -> Vec<(Grant, GrantAsk<'_>)> {
        asked(self.fields())
    }

    /// Asks for one grant, as JSON states it; `true` asks for all paths that the operator allows.
    ///
    /// # Errors
    /// The JSON is something else; the text says what the grant takes.
    pub fn set(&mut self, grant: Grant, json: &Value) -> Result<(), &'static str> {
        set(self.fields_mut(), grant, json)
    }
}

impl TaskGrants {
    /// The requested grants.
    pub fn asked(&self) -> Vec<(Grant, GrantAsk<'_>)> {
        asked(self.fields())
    }

    /// Asks for one grant, as for [`GrantsRequest::set`].
    ///
    /// # Errors
    /// As for [`GrantsRequest::set`].
    pub fn set(&mut self, grant: Grant, json: &Value) -> Result<(), &'static str> {
        set(self.fields_mut(), grant, json)
    }

    /// These, and what others ask for: paths add up, and of anything else its own counts.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        for ((_, own), (_, other)) in self.fields_mut().into_iter().zip(others.fields()) {
            if let Some(more) = other.write() {
                own.add(&more);
            }
        }
        self
    }
}

fn asked<'a>(fields: Vec<(Grant, &'a dyn fields::AskedField)>) -> Vec<(Grant, GrantAsk<'a>)> {
    let fields = fields.into_iter();
    fields.filter_map(|(grant, field)| Some((grant, field.ask(grant.kind())?))).collect()
}

fn set(
    fields: Vec<(Grant, &mut dyn fields::AskedField)>,
    grant: Grant,
    json: &Value,
) -> Result<(), &'static str> {
    let field = fields.into_iter().find(|(other, _)| *other == grant);
    field.map_or(Err("left out: it cannot be asked for here"), |(_, field)| field.read(json))
}

/// The text is hashed into the name of the task's run, so it never changes for grants that there are: see
/// the table.
impl Serialize for TaskGrants {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unasked = |grant: Grant| serde_json::from_str(grant.unasked()?).ok();
        let mut map = serializer.serialize_map(None)?;
        for (grant, field) in self.fields() {
            if let Some(json) = field.write().or_else(|| unasked(grant)) {
                map.serialize_entry(grant.key(), &json)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TaskGrants {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let StrictObject(given) = StrictObject::<BTreeMap<String, Value>>::deserialize(json)?;
        let mut grants = Self::default();
        for (name, value) in given {
            let grant = Grant::OF_TASKS.iter().copied().find(|grant| grant.key() == name);
            let grant =
                grant.ok_or_else(|| de::Error::custom(format!("unknown field `{name}`")))?;
            let wrong = |wanted| de::Error::custom(format!("`{name}` must be {wanted}"));
            grants.set(grant, &value).map_err(wrong)?;
        }
        Ok(grants)
    }
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
