//! Permissions of a workflow, set by the operator when it is submitted.

use belljar_contract::{
    Access, ClientGrants, Grant, GrantKind, GrantRefusal, GrantRule, Grants, JsonValue, Language,
    NameRule, TaskGrants, json_value,
};
use belljar_net::NetPolicy;
use belljar_runtime::PATTERNS;
use belljar_workflow::{Task, TaskFailure};
use serde::{Deserialize, Serialize};

use super::{ProjectWorkflowError, walk};
use crate::{
    Executor,
    network::{self, HostsRefusal},
};

/// The permissions of workflows beyond calling the tools that the policy allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowPermissions {
    /// Whether tasks may run code.
    pub code: bool,
    /// Whether the code may be bash. Workflows stored by earlier versions have no value: it may then.
    pub shell: Option<bool>,
    /// The grants that tasks may ask for. If the operator limits modules, no task is `permissive`.
    #[serde(flatten, with = "stored")]
    pub grants: ClientGrants,
    /// Hosts that flags allow tasks to ask for, beside those of `[net]`.
    pub hosts: Vec<String>,
}

impl Default for WorkflowPermissions {
    fn default() -> Self {
        let grants = ClientGrants::of_flags(&Grants::default());
        Self { code: false, shell: None, grants, hosts: Vec::new() }
    }
}

impl WorkflowPermissions {
    /// The JSON that is stored with a workflow.
    pub(super) fn kept(&self) -> JsonValue {
        json_value::to_value(self).unwrap_or_default()
    }

    /// Parses the stored JSON; unreadable JSON permits nothing.
    pub(super) fn of(kept: &JsonValue) -> Self {
        json_value::from_value(kept.clone()).unwrap_or_default()
    }

    /// Rejects a workflow with a task whose code may not run.
    pub(super) fn check(&self, tasks: &[Task]) -> Result<(), ProjectWorkflowError> {
        if !self.code
            && let Some(task) = walk::first_code(tasks, |_| true)
        {
            return Err(ProjectWorkflowError::CodeOff { task });
        }
        match walk::first_code(tasks, |language| !self.allows(language)) {
            Some(task) => Err(ProjectWorkflowError::ShellOff { task }),
            None => Ok(()),
        }
    }

    /// Whether code in this language may run, if code may run at all.
    pub(super) fn allows(&self, language: Option<Language>) -> bool {
        language != Some(Language::Bash) || self.shell != Some(false)
    }

    /// The grants that a code task asks for, if all of them are allowed. Tools are policy's to decide.
    pub(super) fn grants(
        &self,
        asked: &TaskGrants,
        executor: &Executor,
    ) -> Result<Grants, TaskFailure> {
        let hosts = |hosts: &Access| self.hosts(hosts, executor);
        let grants =
            self.grants.given::<GrantFailure>(asked.asked(), hosts).map_err(|failure| failure.0)?;
        let modules = self.grants.rule(Grant::Modules);
        if grants.permissive && modules != Some(&GrantRule::Names(NameRule::Any)) {
            let message = "`permissive` is not allowed here: the operator limits modules";
            return Err(denied(message.to_owned()));
        }
        Ok(grants)
    }

    /// The requested hosts, if flags and files of the operator allow them.
    fn hosts(&self, asked: &Access, executor: &Executor) -> Result<Vec<String>, GrantFailure> {
        let rules = executor.host_rules(&self.hosts);
        let rules = rules.map_err(|error| GrantFailure(denied(error.message)))?;
        let refused = |refusal| match refusal {
            HostsRefusal::Malformed(fault) => denied(format!("{fault}; {PATTERNS}")),
            HostsRefusal::NotAllowed(host, _) => {
                beyond(&format!("reaching {host} is not allowed here"), Grant::Net)
            }
            HostsRefusal::None => beyond("reaching any host is not allowed here", Grant::Net),
        };
        network::within(&rules, asked).map_err(|refusal| GrantFailure(refused(refusal)))
    }

    /// The policy of a sandbox about the hosts that it was granted, for its whole life.
    pub(super) fn policy(
        &self,
        granted: &Grants,
        executor: &Executor,
    ) -> Result<Option<NetPolicy>, TaskFailure> {
        if granted.net.is_empty() {
            return Ok(None);
        }
        let policy = executor.granted_policy(Some(&self.hosts), &granted.net);
        policy.map(Some).map_err(|error| denied(error.message))
    }
}

/// A refused grant as the failure of the task.
struct GrantFailure(TaskFailure);

impl From<GrantRefusal> for GrantFailure {
    fn from(refusal: GrantRefusal) -> Self {
        let GrantRefusal { grant, name, allowed: _ } = refusal;
        let what = grant.operator().map_or(grant.key(), |key| key.noun);
        let message = match (name, grant) {
            (Some(name), _) => format!("{what} {name} is not allowed here"),
            (None, Grant::Write) => format!("{what} to the host is not allowed here"),
            (None, _) => format!("{what} from the host is not allowed here"),
        };
        Self(beyond(&message, grant))
    }
}

fn beyond(message: &str, grant: Grant) -> TaskFailure {
    denied(format!(
        "{message}; the operator can allow it when the workflow is submitted, with {}",
        how_to_allow(grant)
    ))
}

/// How to allow more: the flag and the commands that take it.
fn how_to_allow(grant: Grant) -> String {
    let Some(flag) = grant.flag() else { return format!("`{}`", grant.key()) };
    // A variable's value is optional, and so is a port.
    let value = flag.value_name.split('[').next().unwrap_or_default();
    let flag_text = format!("--{} {value}", flag.name);
    let both = format!("`{flag_text}` of `belljar workflow run` or `belljar serve`");
    match (flag.workflow_help, grant.kind()) {
        (Some(_), GrantKind::Hosts) => {
            format!("{both}, or with `allow` under [net] in the user's belljar.toml")
        }
        (Some(_), _) => both,
        (None, GrantKind::Paths) => format!(
            "`belljar serve {flag_text}`; `belljar workflow run` has no such flag, and brings changed files \
             to the host only with `--workspace DIR --commit`"
        ),
        (None, _) => format!("`belljar serve {flag_text}`"),
    }
}

fn denied(message: String) -> TaskFailure {
    TaskFailure { lasting: true, ..TaskFailure::new("permission.denied", message) }
}

mod stored;
#[cfg(test)]
mod tests;
