//! Permissions of a workflow, set by the operator when it is submitted.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use belljar_contract::JsonValue;
use belljar_contract::{
    Access, Grant, GrantAsk, GrantValue, Grants, Language, NameRule, TaskGrants, contained,
    json_value,
};
use belljar_net::NetRules;
use belljar_workflow::{Task, TaskFailure};
use serde::{Deserialize, Serialize};

use super::{ProjectWorkflowError, walk};
use crate::{
    Executor,
    network::{self, HostsRefusal, PATTERNS},
};

/// How to allow more: the flags and the commands that take them.
const READ: &str = "`--read PATH` of `belljar workflow run` or `belljar serve`";
const WRITE: &str = "`belljar serve --write PATH`; `belljar workflow run` has no such flag, and brings \
                     changed files to the host only with `--workspace DIR --commit`";
const ENV: &str = "`--env NAME` of `belljar workflow run` or `belljar serve`";
const MODULE: &str = "`belljar serve --module NAME`";
const NET: &str = "`--net HOST` of `belljar workflow run` or `belljar serve`, or with `allow` under [net] in \
                   the user's belljar.toml";
const COMMAND: &str = "`belljar serve --command NAME`";

/// The permissions of workflows beyond calling the tools that the policy allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowPermissions {
    /// Whether tasks may run code.
    pub code: bool,
    /// Whether the code may be bash. Workflows stored by earlier versions have no value: it may then.
    pub shell: Option<bool>,
    /// Directories and files that tasks may ask to read.
    pub readable: Vec<PathBuf>,
    /// Directories and files that tasks may ask to write.
    pub writable: Vec<PathBuf>,
    /// Environment variables that tasks may ask for, with their values.
    pub env: BTreeMap<String, String>,
    /// Python modules that tasks may ask for; `None` is any. With a list, no task is `permissive`.
    pub modules: Option<Vec<String>>,
    /// Commands that tasks may ask for; `None` is any.
    pub commands: Option<Vec<String>>,
    /// Hosts that flags allow tasks to ask for, beside those of `[net]`.
    pub hosts: Vec<String>,
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
        let mut grants = Grants::default();
        for (grant, ask) in asked.asked() {
            let value = match ask {
                GrantAsk::Paths(access) => GrantValue::Paths(self.paths(grant, access)?),
                GrantAsk::Variables(names) => {
                    let variables = names.iter().map(|(name, _)| self.variable(name));
                    GrantValue::Variables(variables.collect::<Result<_, _>>()?)
                }
                GrantAsk::Hosts(access) => GrantValue::Names(self.hosts(access, executor)?),
                GrantAsk::Tools(_) => continue,
                GrantAsk::Value(value) => self.checked(grant, value)?,
            };
            grants.give(grant, value);
        }
        Ok(grants)
    }

    /// The requested hosts, if flags and files of the operator allow them.
    fn hosts(&self, asked: &Access, executor: &Executor) -> Result<Vec<String>, TaskFailure> {
        let rules = executor.host_rules(&self.hosts);
        let rules = rules.map_err(|error| denied(error.message))?;
        network::within(&rules, asked).map_err(|refusal| match refusal {
            HostsRefusal::Malformed(fault) => denied(format!("{fault}; {PATTERNS}")),
            HostsRefusal::NotAllowed(host, _) => {
                beyond(format!("reaching {host} is not allowed here"), NET)
            }
            HostsRefusal::None => beyond("reaching any host is not allowed here".to_owned(), NET),
        })
    }

    /// The rules about the hosts that a sandbox was granted, for its whole life.
    pub(super) fn rules(
        &self,
        granted: &Grants,
        executor: &Executor,
    ) -> Result<Option<Arc<NetRules>>, TaskFailure> {
        if granted.net.is_empty() {
            return Ok(None);
        }
        let rules = executor.granted_rules(Some(&self.hosts), &granted.net);
        rules.map(|rules| Some(Arc::new(rules))).map_err(|error| denied(error.message))
    }

    /// The requested paths, if the operator allows them for this grant.
    fn paths(&self, grant: Grant, asked: &Access) -> Result<Vec<PathBuf>, TaskFailure> {
        let rules = [
            (Grant::Read, &self.readable, ("reading", "from"), READ),
            (Grant::Write, &self.writable, ("writing", "to"), WRITE),
        ];
        let rule = rules.into_iter().find(|(ruled, ..)| *ruled == grant);
        let Some((_, allowed, (what, where_to), flag)) = rule else {
            return Err(denied(format!("`{}` is not allowed here", grant.key())));
        };
        match asked {
            Access::None => Ok(Vec::new()),
            Access::All if allowed.is_empty() => {
                Err(beyond(format!("{what} {where_to} the host is not allowed here"), flag))
            }
            Access::All => Ok(allowed.clone()),
            Access::Only(paths) => {
                paths.iter().map(|path| within(path, allowed, what, flag)).collect()
            }
        }
    }

    /// Names or a switch, if the operator allows them.
    fn checked(&self, grant: Grant, value: GrantValue) -> Result<GrantValue, TaskFailure> {
        let rule = match grant {
            Grant::Modules | Grant::Permissive => &self.modules,
            Grant::Commands => &self.commands,
            Grant::Tools | Grant::Read | Grant::Write | Grant::Net | Grant::Env => &None,
        };
        let Some(allowed) = rule else { return Ok(value) };
        let rule = NameRule::Only(allowed.clone());
        let missing = match &value {
            GrantValue::Names(names) => names.iter().find(|name| !rule.allows(name)),
            GrantValue::Switch(true) => None,
            GrantValue::Switch(false) | GrantValue::Paths(_) | GrantValue::Variables(_) => {
                return Ok(value);
            }
        };
        match (missing, grant) {
            (Some(name), Grant::Modules) => {
                Err(beyond(format!("the module {name} is not allowed here"), MODULE))
            }
            (Some(name), _) => {
                Err(beyond(format!("the command {name} is not allowed here"), COMMAND))
            }
            (None, Grant::Permissive) => Err(denied(
                "`permissive` is not allowed here: the operator limits modules".to_owned(),
            )),
            (None, _) => Ok(value),
        }
    }

    fn variable(&self, name: &str) -> Result<(String, String), TaskFailure> {
        match self.env.get(name) {
            Some(value) => Ok((name.to_owned(), value.clone())),
            None => {
                Err(beyond(format!("the environment variable {name} is not allowed here"), ENV))
            }
        }
    }
}

/// The path, if it is one of the allowed ones or below one.
fn within(
    asked: &str,
    allowed: &[PathBuf],
    what: &str,
    flag: &str,
) -> Result<PathBuf, TaskFailure> {
    contained(asked, allowed)
        .ok_or_else(|| beyond(format!("{what} {asked} is not allowed here"), flag))
}

fn beyond(message: String, flag: &str) -> TaskFailure {
    let message =
        format!("{message}; the operator can allow it when the workflow is submitted, with {flag}");
    denied(message)
}

fn denied(message: String) -> TaskFailure {
    TaskFailure { lasting: true, ..TaskFailure::new("permission.denied", message) }
}

#[cfg(test)]
mod tests;
