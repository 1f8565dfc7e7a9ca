//! The stored form of a request, from which its run can be started again.

use std::{mem, path::PathBuf};

use belljar_contract::{
    CommitExecutable, EngineName, Grants, Language, Limits, RunRequest, ToolReport, Workspace,
};
use belljar_tools::ToolGrants;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Execution, RunDurability};

/// All of a request except its code, which has its own column.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredRequest {
    language: Language,
    /// The engine that the request or the configuration named; without one, the default of the language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    engine: Option<EngineName>,
    file_name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<String>,
    context: Option<Box<RawValue>>,
    limits: Limits,
    #[serde(flatten)]
    grants: Grants,
    workspace: Option<(PathBuf, bool)>,
    /// Names that the host would execute and the commit may still write.
    #[serde(default, skip_serializing_if = "is_default")]
    executable: CommitExecutable,
    /// The hosts that the operator's flags allowed. They do not count when two requests are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hosts: Option<Vec<String>>,
    /// It reaches hosts by `fetch` alone, so that it can be replayed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_no_sockets: bool,
    pub(super) tools: ToolGrants,
    pub(super) max_output_tokens: Option<u32>,
    /// The tools it was offered. They do not count when two requests are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<ToolReport>,
}

impl StoredRequest {
    pub(super) fn of(
        request: &RunRequest,
        tools: &ToolGrants,
        max_output_tokens: Option<u32>,
    ) -> Self {
        let RunRequest {
            language,
            engine,
            file_name,
            arguments,
            context,
            limits,
            grants,
            workspace,
            ..
        } = request.clone();
        let executable = workspace.as_ref().map(|workspace| workspace.executable.clone());
        Self {
            language,
            engine,
            file_name,
            arguments,
            context,
            limits,
            grants,
            workspace: workspace.map(|workspace| (workspace.path, workspace.commit)),
            executable: executable.unwrap_or_default(),
            hosts: None,
            has_no_sockets: false,
            tools: tools.clone(),
            max_output_tokens,
            report: None,
        }
    }

    /// The execution again.
    pub(super) fn into_execution(mut self, code: String, caller: String) -> Execution {
        let (hosts, tools) = (self.hosts.take(), mem::take(&mut self.tools));
        let max_output_tokens = self.max_output_tokens;
        let durability = match self.has_no_sockets {
            true => RunDurability::Always,
            false => RunDurability::IfAsked,
        };
        let new = Execution::new(self.into_request(code), caller);
        Execution { hosts, durability, tools, max_output_tokens, ..new }
    }

    /// The request again. Its engine is stated, so that the configuration of today does not change the
    /// engine of a run that began before.
    pub(super) fn into_request(self, code: String) -> RunRequest {
        let Self {
            language,
            engine,
            file_name,
            arguments,
            context,
            limits,
            grants,
            executable,
            ..
        } = self;
        let workspace = self.workspace.map(|(path, commit)| Workspace { path, commit, executable });
        let engine = Some(engine.unwrap_or_else(|| EngineName::default_for(language)));
        RunRequest {
            code,
            language,
            engine,
            file_name,
            arguments,
            context,
            limits,
            grants,
            workspace,
        }
    }
}

fn is_default(executable: &CommitExecutable) -> bool {
    *executable == CommitExecutable::default()
}

#[cfg(test)]
mod tests;
