//! Requests to run code: as a client writes them, and as the runtime takes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    EngineName, Grant, GrantKind, Grants, GrantsRequest, Language, Limits, LimitsRequest,
    SessionId, Workspace, WorkspaceRequest,
};

/// A request to run code, as a client writes it. The operator's rules decide what of it is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunRequest")]
pub struct ExecuteRequest {
    /// The source text of the code.
    pub code: String,
    /// The language of the code; if absent, that of its session or engine, else TypeScript.
    #[serde(default)]
    pub language: Option<Language>,
    /// The engine to run it on; the usual one for its language if absent.
    #[serde(default)]
    pub engine: Option<EngineName>,
    /// The value of `context` in the code: any JSON.
    #[serde(default)]
    pub context: Option<Value>,
    /// The limits of the run; absent ones have the operator's defaults.
    #[serde(default, deserialize_with = "crate::object_or_default")]
    #[schemars(with = "Option<LimitsRequest>")]
    pub limits: LimitsRequest,
    /// The access that the code needs; absent means none.
    #[serde(default, deserialize_with = "crate::object_or_default")]
    #[schemars(with = "Option<GrantsRequest>")]
    pub grants: GrantsRequest,
    /// The directory it works on, copy-on-write, at `/work`.
    #[serde(default, deserialize_with = "crate::optional_object")]
    pub workspace: Option<WorkspaceRequest>,
    /// The purpose of the code in words; the result names tools that fit.
    #[serde(default)]
    pub intent: Option<String>,
    /// Whether the run survives a restart of the host and the disconnection of its client.
    #[serde(default)]
    pub durable: Option<bool>,
    /// The session to run it in.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// A value larger than this many tokens is stored, and a summary takes its place.
    #[serde(default, deserialize_with = "crate::optional_whole_number")]
    pub max_output_tokens: Option<u32>,
}

impl ExecuteRequest {
    /// The language of its code: the one it states, or else the default for its engine.
    pub fn language(&self) -> Language {
        self.language.unwrap_or_else(|| Language::default_for(self.engine))
    }
}

/// Guest code with its limits and grants: the request that reaches the runtime.
///
/// ```
/// use belljar_contract::{EngineName, Language, RunRequest};
///
/// let request = RunRequest::new(Language::Python, "context['a'] + 1");
/// assert_eq!(request.engine(), EngineName::CPython);
/// assert!(!request.has_host_files());
/// ```
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The source text of the code.
    pub code: String,
    /// The language of the code.
    pub language: Language,
    /// The engine that runs it; `None` is the usual one for its language.
    pub engine: Option<EngineName>,
    /// The name errors and stacks show for the code.
    pub file_name: String,
    /// The command-line arguments that the code sees, as a program does.
    pub arguments: Vec<String>,
    /// The global `context`; `None` is an empty object.
    pub context: Option<Box<RawValue>>,
    /// The limits of the run.
    pub limits: Limits,
    /// The access that the run is given.
    pub grants: Grants,
    /// The directory it works in; `None` is an empty one of its own.
    pub workspace: Option<Workspace>,
}

impl RunRequest {
    /// The most that all arguments together may have.
    pub const MAX_ARGUMENT_BYTES: usize = 16 << 10;

    /// TypeScript with the default limits, no context and no grants.
    pub fn typescript(code: impl Into<String>) -> Self {
        Self::new(Language::TypeScript, code)
    }

    /// Code with the default limits, no context and no grants.
    pub fn new(language: Language, code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            language,
            engine: None,
            file_name: language.file_name().to_owned(),
            arguments: Vec::new(),
            context: None,
            limits: Limits::DEFAULT,
            grants: Grants::default(),
            workspace: None,
        }
    }

    /// The engine that runs it: the one it names, or the usual one for its language.
    pub fn engine(&self) -> EngineName {
        self.engine.unwrap_or_else(|| EngineName::default_for(self.language))
    }

    /// Whether it has files of the host in it: a workspace, or paths to read or write.
    pub fn has_host_files(&self) -> bool {
        let has_paths = |grant: &Grant| grant.kind() == GrantKind::Paths;
        self.workspace.is_some() || self.grants.given().iter().any(has_paths)
    }
}
