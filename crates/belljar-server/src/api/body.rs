//! What bodies of requests hold, as clients write it (DESIGN: one request everywhere).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::input::object;
use crate::{
    backend::Verdict,
    request::{Access, ExecuteRequest, Grants, Language, Limits, Workspace, whole_number},
    sessions::SessionRequest,
};

/// A request to run code.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRequest {
    /// The code.
    code: String,
    /// What it is written in; TypeScript, or what its session is for, if absent.
    #[serde(default)]
    language: Option<Language>,
    /// What the code finds as `context`: any JSON.
    #[serde(default)]
    context: Option<Value>,
    /// What it may use.
    #[serde(default, deserialize_with = "object")]
    limits: Option<Limits>,
    /// What it may reach.
    #[serde(default, deserialize_with = "object")]
    grants: Option<GrantsAsked>,
    /// The directory it works on, copy-on-write, at `/work`.
    #[serde(default, deserialize_with = "object")]
    workspace: Option<Workspace>,
    /// What it is for, in words; tools that fit are named in the result.
    #[serde(default)]
    intent: Option<String>,
    /// Whether it survives a restart of the host, and its client going away.
    #[serde(default)]
    durable: Option<bool>,
    /// The session to run it in.
    #[serde(default)]
    session_id: Option<String>,
    /// A value larger than this many tokens is stored, and a summary takes its place.
    #[serde(default, deserialize_with = "whole_number")]
    max_output_tokens: Option<u32>,
}

/// What a run may reach. Paths are within what the operator allows, or the run is refused.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Grants")]
pub(super) struct GrantsAsked {
    /// Files and directories of the host to read, at their own paths.
    read: Vec<String>,
    /// Files and directories of the host to change, at their own paths.
    write: Vec<String>,
    /// Hosts to reach, `host` or `host:port`.
    net: Vec<String>,
    /// Environment variables, with values.
    env: BTreeMap<String, String>,
    /// Python modules and builtins that restricted mode would refuse.
    modules: Vec<String>,
    /// Commands beyond the default set.
    commands: Vec<String>,
    /// The only tools it may call (`server__tool`, globs); absent means what policy allows.
    tools: Option<Vec<String>>,
}

/// A session that is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SessionRequest")]
pub(super) struct SessionAsked {
    /// What its code is written in; TypeScript if absent.
    #[serde(default)]
    language: Option<Language>,
    /// What its runs may reach.
    #[serde(default, deserialize_with = "object")]
    grants: Option<GrantsAsked>,
    /// What the session may use; a run in it may ask for less.
    #[serde(default, deserialize_with = "object")]
    limits: Option<Limits>,
    /// The directory it works on, copy-on-write, at `/work`.
    #[serde(default, deserialize_with = "object")]
    workspace: Option<Workspace>,
    /// It ends when nothing was asked of it for so long.
    #[serde(default, deserialize_with = "whole_number")]
    idle_seconds: Option<u64>,
    /// It ends after so long, used or not.
    #[serde(default, deserialize_with = "whole_number")]
    lifetime_seconds: Option<u64>,
}

/// Which checkpoint to go back to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RollbackRequest {
    /// As `POST …/checkpoints` named it.
    pub(super) checkpoint_id: String,
}

/// How many sessions to make of one, and from where.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ForkRequest {
    /// How many; one if absent.
    #[serde(deserialize_with = "whole_number")]
    #[schemars(range(min = 1, max = 512))]
    pub(super) count: Option<u32>,
    /// From this checkpoint; from how it is now if absent.
    pub(super) checkpoint_id: Option<String>,
}

/// What a person decided. Of a call that was not made yet, `approve` or `deny`; of one in doubt, `retry`,
/// `use` or `deny`: who says yes to a call does not say yes to making it twice.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum DecisionRequest {
    /// It may be made.
    Approve {},
    /// It may not; one in doubt fails in the code.
    Deny {},
    /// One in doubt is made again.
    Retry {},
    /// One in doubt happened.
    Use {
        /// What it gave, as the code would have got it: any JSON.
        result: Value,
    },
}

/// What became of a call.
#[derive(Debug, Clone, Copy, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Decision")]
pub(super) enum ApprovalDecision {
    /// It may be made.
    Approve,
    /// It is not made; one in doubt fails.
    Deny,
    /// It is made again.
    Retry,
    /// It happened.
    Use,
}

impl DecisionRequest {
    /// What the port takes, and what is said to it.
    pub(super) fn into_verdict(self) -> (Verdict, ApprovalDecision) {
        match self {
            Self::Approve {} => (Verdict::Approve, ApprovalDecision::Approve),
            Self::Deny {} => (Verdict::Deny, ApprovalDecision::Deny),
            Self::Retry {} => (Verdict::Retry, ApprovalDecision::Retry),
            Self::Use { result } => (Verdict::Use(result), ApprovalDecision::Use),
        }
    }
}

/// A search for tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchRequest {
    /// What is to be done, in words.
    pub(super) intent: String,
    /// How many to name; 5 if absent.
    #[serde(default, deserialize_with = "whole_number")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) k: Option<u32>,
}

impl RunRequest {
    /// The session it names.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// What the port takes. A program that asks gets the whole value unless it says otherwise.
    pub(super) fn into_request(self, session_id: Option<String>) -> ExecuteRequest {
        let (grants, tools) = self.grants.unwrap_or_default().into_grants();
        ExecuteRequest {
            code: self.code,
            language: self.language,
            intent: self.intent,
            tools,
            context: self.context,
            limits: self.limits.unwrap_or_default(),
            grants,
            workspace: self.workspace,
            session_id: session_id.or(self.session_id),
            max_output_tokens: Some(self.max_output_tokens.unwrap_or(u32::MAX).into()),
            durable: self.durable,
        }
    }
}

impl SessionAsked {
    /// What the port takes, and the tools its runs may call.
    pub(super) fn into_request(self) -> SessionRequest {
        let (grants, tools) = self.grants.unwrap_or_default().into_grants();
        SessionRequest {
            language: self.language,
            grants,
            tools,
            limits: self.limits.unwrap_or_default(),
            workspace: self.workspace,
            idle_seconds: self.idle_seconds,
            lifetime_seconds: self.lifetime_seconds,
        }
    }
}

impl GrantsAsked {
    fn into_grants(self) -> (Grants, Option<Vec<String>>) {
        let some = |list: Vec<String>| match list.is_empty() {
            true => Access::None,
            false => Access::Only(list),
        };
        let Self { read, write, net, env, modules, commands, tools } = self;
        let (read, write, net) = (some(read), some(write), some(net));
        (Grants { read, write, net, env, modules, commands }, tools)
    }
}
