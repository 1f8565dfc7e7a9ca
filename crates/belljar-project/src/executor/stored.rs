//! A request as it is kept, so that its run can be started again.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use belljar_runtime::{
    CommitExecutable, Grants, Language, Limits, RunRequest, ToolReport, Workspace,
};
use belljar_tools::ToolGrants;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// All of a request but its code, which is kept beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredRequest {
    language: Language,
    file_name: String,
    context: Option<Box<RawValue>>,
    limits: StoredLimits,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    env: BTreeMap<String, String>,
    modules: Vec<String>,
    commands: Vec<String>,
    permissive: bool,
    workspace: Option<(PathBuf, bool)>,
    /// What its commit brings of what the host would execute.
    #[serde(default, skip_serializing_if = "is_default")]
    executable: CommitExecutable,
    pub(super) tools: ToolGrants,
    pub(super) max_output_tokens: Option<u32>,
    /// Which tools it got. Not part of what makes two requests the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<ToolReport>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredLimits {
    timeout: Duration,
    cpu: Duration,
    memory: u64,
    code_bytes: u64,
    context_bytes: u64,
    output_bytes: u64,
    result_bytes: u64,
    processes: u32,
    open_files: u32,
    disk: u64,
    inodes: u64,
    tool_calls: u32,
    tool_timeout: Duration,
}

impl StoredRequest {
    pub(super) fn of(
        request: &RunRequest,
        tools: &ToolGrants,
        max_output_tokens: Option<u32>,
    ) -> Self {
        let RunRequest { language, file_name, context, limits, grants, workspace, .. } =
            request.clone();
        let Grants { read, write, env, modules, commands, permissive } = grants;
        let executable = workspace.as_ref().map(|workspace| workspace.executable.clone());
        let workspace = workspace.map(|workspace| (workspace.path, workspace.commit));
        Self {
            language,
            file_name,
            context,
            limits: limits.into(),
            read,
            write,
            env,
            modules,
            commands,
            permissive,
            workspace,
            executable: executable.unwrap_or_default(),
            tools: tools.clone(),
            max_output_tokens,
            report: None,
        }
    }

    pub(super) fn into_request(self, code: String) -> RunRequest {
        let Self { read, write, env, modules, commands, permissive, executable, .. } = self;
        RunRequest {
            code,
            language: self.language,
            file_name: self.file_name,
            context: self.context,
            limits: self.limits.into(),
            grants: Grants { read, write, env, modules, commands, permissive },
            workspace: self.workspace.map(|(path, commit)| Workspace { path, commit, executable }),
        }
    }
}

fn is_default(executable: &CommitExecutable) -> bool {
    *executable == CommitExecutable::default()
}

macro_rules! same_fields {
    ($($field:ident),*) => {
        impl From<Limits> for StoredLimits {
            fn from(limits: Limits) -> Self {
                Self { $($field: limits.$field),* }
            }
        }

        impl From<StoredLimits> for Limits {
            fn from(limits: StoredLimits) -> Self {
                Self { $($field: limits.$field),* }
            }
        }
    };
}

same_fields!(
    timeout,
    cpu,
    memory,
    code_bytes,
    context_bytes,
    output_bytes,
    result_bytes,
    processes,
    open_files,
    disk,
    inodes,
    tool_calls,
    tool_timeout
);
