//! Permissions of clients, and the grants that a run gets within them.

use std::time::Duration;

use belljar_contract::{
    Audience, ClientGrants, CommitExecutable, ErrorCode, Grants, GrantsRequest, Limits, RunError,
    RunResult, Workspace, WorkspaceRequest,
};
use belljar_tools::Glob;

use super::WorkflowServiceOptions;
use crate::ClientHosts;

/// The permissions of clients, set by the operator.
#[derive(Debug, Clone)]
pub struct ClientPermissions {
    /// The limits of a run that states none.
    pub limits: Limits,
    /// The grants that a client may ask for.
    pub grants: ClientGrants,
    /// The hosts of the network that a client may ask to reach.
    pub hosts: ClientHosts,
    /// Names that are committed although the host would execute them.
    pub commit_executable: ExecutablePermissions,
    /// The token budget of a result, unless the client states one.
    pub max_output_tokens: u32,
    /// How long a result may be reused for the same request.
    pub cache: Option<Duration>,
    /// The caller named in audit rows and approvals.
    pub caller: String,
    /// Upstream tools that clients see beside the gateway's own.
    pub pass_through: Vec<Glob>,
    /// The workflow service; `None` if the operator has switched it off.
    pub workflows: Option<WorkflowServiceOptions>,
}

/// Names that a commit may write although the host would execute them, out of
/// [`belljar_paths::names::EXECUTED`].
#[derive(Debug, Clone, Default)]
pub struct ExecutablePermissions {
    /// Names that every commit may write.
    pub always: Vec<String>,
    /// Names that a commit may write if its request names them.
    pub on_request: Vec<String>,
}

impl ClientPermissions {
    /// The requested grants, if the operator allows all of them. Tools are policy's to decide.
    pub(super) fn grants(&self, asked: &GrantsRequest) -> Result<Grants, RunError> {
        self.grants.given(asked.asked(), |hosts| self.hosts.given(hosts))
    }

    /// The hosts that flags allow, as text.
    pub(super) fn host_flags(&self) -> Vec<String> {
        self.hosts.flags.iter().map(ToString::to_string).collect()
    }

    /// The requested workspace, if the operator allows it.
    pub(super) fn workspace(
        &self,
        asked: Option<&WorkspaceRequest>,
    ) -> Result<Option<Workspace>, RunError> {
        let Some(asked) = asked else { return Ok(None) };
        let WorkspaceRequest { path, commit, commit_executable } = asked;
        let path = self.grants.workspace(path, *commit)?;
        let executable = self.executable(commit_executable)?;
        Ok(Some(Workspace { path, commit: *commit, executable }))
    }

    /// The result with hints in a client's words: fields that it may send, or what the operator sets.
    pub(super) fn reworded(&self, mut result: RunResult) -> RunResult {
        let Some(error) = &mut result.error else { return result };
        let may_ask = error
            .missing
            .as_ref()
            .is_none_or(|missing| self.grants.allows(missing, |hosts| self.hosts.given(hosts)));
        error.hint = error.hint_for(if may_ask { Audience::Client } else { Audience::Operator });
        result
    }

    fn executable(&self, asked: &[String]) -> Result<CommitExecutable, RunError> {
        let ExecutablePermissions { always, on_request } = &self.commit_executable;
        if let Some(name) =
            asked.iter().find(|name| !always.contains(name) && !on_request.contains(name))
        {
            let message =
                format!("committing {name:?}, which the host would execute, is not allowed");
            return Err(RunError::new(ErrorCode::PermissionFile, message).with_hint(
                "the operator allows it with `belljar serve --commit-executable NAME`",
            ));
        }
        let names = asked.iter().chain(always).cloned().collect();
        Ok(CommitExecutable::Names(names))
    }
}
