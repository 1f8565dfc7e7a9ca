//! Permissions of clients, and the grants that a run gets within them.

use std::{path::PathBuf, time::Duration};

use belljar_contract::{
    Access, CommitExecutable, ErrorCode, Grant, GrantAsk, GrantValue, Grants, GrantsRequest,
    Limits, RunError, Workspace, WorkspaceRequest,
};
use belljar_tools::Glob;

use super::WorkflowServiceOptions;
use crate::containment::contained;

/// What a client may ask for, set by the operator.
#[derive(Debug, Clone)]
pub struct ClientPermissions {
    /// The limits of a run that states none.
    pub limits: Limits,
    /// Directories and files that a client may ask to read.
    pub readable: Vec<PathBuf>,
    /// Directories and files that a client may ask to change.
    pub writable: Vec<PathBuf>,
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
        let mut grants = Grants::default();
        for (grant, ask) in asked.asked() {
            let value = match ask {
                GrantAsk::Paths(access) => GrantValue::Paths(self.paths(grant, access)?),
                GrantAsk::Hosts(_) => return Err(no_network()),
                GrantAsk::Variables(names) => return Err(without_values(names)),
                GrantAsk::Tools(_) => continue,
                GrantAsk::Value(value) => value,
            };
            grants.give(grant, value);
        }
        Ok(grants)
    }

    /// The requested paths, if the operator allows them for this grant.
    fn paths(&self, grant: Grant, asked: &Access) -> Result<Vec<PathBuf>, RunError> {
        let rules =
            [(Grant::Read, &self.readable, "reading"), (Grant::Write, &self.writable, "writing")];
        match rules.into_iter().find(|(ruled, ..)| *ruled == grant) {
            Some((_, allowed, what)) => within(asked, allowed, what),
            None => Err(beyond(grant.key(), "any path")),
        }
    }

    /// The requested workspace. It must be writable if it is committed, else readable.
    pub(super) fn workspace(
        &self,
        asked: Option<&WorkspaceRequest>,
    ) -> Result<Option<Workspace>, RunError> {
        let Some(asked) = asked else { return Ok(None) };
        let WorkspaceRequest { path, commit, commit_executable } = asked;
        let (roots, what) = match commit {
            true => (&self.writable, "committing to"),
            false => (&self.readable, "working on"),
        };
        let path = one_within(path, roots, what)?;
        let executable = self.executable(commit_executable)?;
        Ok(Some(Workspace { path, commit: *commit, executable }))
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

/// The requested paths; a request for all gets those that the operator allows, if there are any.
fn within(asked: &Access, allowed: &[PathBuf], what: &str) -> Result<Vec<PathBuf>, RunError> {
    match asked {
        Access::None => Ok(Vec::new()),
        Access::All if allowed.is_empty() => Err(beyond(what, "any path")),
        Access::All => Ok(allowed.to_vec()),
        Access::Only(paths) => paths.iter().map(|path| one_within(path, allowed, what)).collect(),
    }
}

fn one_within(asked: &str, allowed: &[PathBuf], what: &str) -> Result<PathBuf, RunError> {
    contained(asked, allowed).ok_or_else(|| beyond(what, asked))
}

/// A client states the values of its variables: it cannot have those of the operator.
fn without_values(names: &[String]) -> RunError {
    let message = format!("the variables {} need values", names.join(", "));
    RunError::new(ErrorCode::RequestInvalid, message)
}

fn no_network() -> RunError {
    let message = "network access cannot be granted here";
    RunError::new(ErrorCode::PermissionNetwork, message)
        .with_hint("use a tool, or have the data passed in with `context`")
}

fn beyond(what: &str, path: &str) -> RunError {
    RunError::new(ErrorCode::PermissionFile, format!("{what} {path} is not allowed here"))
        .with_hint("the operator allows paths with `belljar serve --read` and `--write`")
}
