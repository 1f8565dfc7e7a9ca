//! Permissions of a workflow, set by the operator when it is submitted.

use std::{collections::BTreeMap, path::PathBuf};

use belljar_contract::{Access, Grant, GrantAsk, GrantValue, Grants, Language, TaskGrants};
use belljar_workflow::{Task, TaskFailure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ProjectWorkflowError, walk};
use crate::containment::contained;

/// How to allow more: the flags and the commands that take them.
const READ: &str = "`--read PATH` of `belljar workflow run` or `belljar serve`";
const WRITE: &str = "`belljar serve --write PATH`; `belljar workflow run` has no such flag, and brings \
                     changed files to the host only with `--workspace DIR --commit`";
const ENV: &str = "`belljar workflow run --env NAME`";

/// What workflows may do beyond calling the tools that the policy allows.
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
}

impl WorkflowPermissions {
    /// The JSON that is stored with a workflow.
    pub(super) fn kept(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Parses the stored JSON; unreadable JSON permits nothing.
    pub(super) fn of(kept: &Value) -> Self {
        serde_json::from_value(kept.clone()).unwrap_or_default()
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
    pub(super) fn grants(&self, asked: &TaskGrants) -> Result<Grants, TaskFailure> {
        let mut grants = Grants::default();
        for (grant, ask) in asked.asked() {
            let value = match ask {
                GrantAsk::Paths(access) => GrantValue::Paths(self.paths(grant, access)?),
                GrantAsk::Variables(names) => {
                    let variables = names.iter().map(|name| self.variable(name));
                    GrantValue::Variables(variables.collect::<Result<_, _>>()?)
                }
                GrantAsk::Hosts(_) => return Err(denied("code has no network".to_owned())),
                GrantAsk::Tools(_) => continue,
                GrantAsk::Value(value) => value,
            };
            grants.give(grant, value);
        }
        Ok(grants)
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
