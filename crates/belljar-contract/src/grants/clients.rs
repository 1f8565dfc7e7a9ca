//! The grants that clients may ask for, and the check of each request.
//!
//! Invariant: a request is given in full or refused; a refusal names the flag and the key by which the
//! operator would allow it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{Access, Grant, GrantAsk, GrantValue, Grants, GrantsRequest, contained};
use crate::{ErrorCode, MissingGrant, MissingKind, RunError, operator_phrase};

/// The grants that a client may ask for, set by the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientGrants {
    /// Directories and files to read.
    pub readable: Vec<PathBuf>,
    /// Directories and files to change.
    pub writable: Vec<PathBuf>,
    /// Directories to work on, copy-on-write.
    pub workspaces: Vec<PathBuf>,
    /// Variables of the operator, with their values.
    pub env: BTreeMap<String, String>,
    /// Python modules and builtins.
    pub modules: NameRule,
    /// Commands beyond the default set.
    pub commands: NameRule,
}

/// Names that may be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameRule {
    /// Every name.
    Any,
    /// These names.
    Only(Vec<String>),
}

impl Default for NameRule {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl NameRule {
    /// Whether a name may be asked for.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(names) => names.iter().any(|allowed| allowed == name),
        }
    }

    /// The names, if only some may be asked for.
    pub fn only(&self) -> Option<&[String]> {
        match self {
            Self::Any => None,
            Self::Only(names) => Some(names),
        }
    }
}

impl ClientGrants {
    /// The requested grants. Tools are policy's to decide, and `hosts` decides about hosts.
    ///
    /// # Errors
    /// Something is not allowed; the hint says how the operator would allow it.
    pub fn given(
        &self,
        asked: &GrantsRequest,
        hosts: impl Fn(&Access) -> Result<Vec<String>, RunError>,
    ) -> Result<Grants, RunError> {
        let mut grants = Grants::default();
        for (grant, ask) in asked.asked() {
            let value = match ask {
                GrantAsk::Paths(access) => GrantValue::Paths(self.paths(grant, access)?),
                GrantAsk::Hosts(access) => GrantValue::Names(hosts(access)?),
                GrantAsk::Variables(asked) => {
                    let variables =
                        asked.into_iter().map(|(name, value)| self.variable(name, value));
                    GrantValue::Variables(variables.collect::<Result<_, _>>()?)
                }
                GrantAsk::Tools(_) => continue,
                GrantAsk::Value(value) => self.checked(grant, value)?,
            };
            grants.give(grant, value);
        }
        Ok(grants)
    }

    /// The directory of a requested workspace. A commit needs what writing needs.
    ///
    /// # Errors
    /// As for [`ClientGrants::given`].
    pub fn workspace(&self, asked: &str, commit: bool) -> Result<PathBuf, RunError> {
        if commit {
            return contained(asked, &self.writable)
                .ok_or_else(|| beyond_paths("committing to", "write", asked, &self.writable));
        }
        let allowed: Vec<PathBuf> = self.workspaces.iter().chain(&self.readable).cloned().collect();
        contained(asked, &allowed)
            .ok_or_else(|| beyond_paths("working on", "workspace", asked, &allowed))
    }

    /// Whether a client may ask for what code was missing. `hosts` decides about hosts.
    pub fn allows(
        &self,
        missing: &MissingGrant,
        hosts: impl Fn(&Access) -> Result<Vec<String>, RunError>,
    ) -> bool {
        let name = missing.name.as_str();
        match missing.kind {
            MissingKind::Read => contained(name, &self.readable).is_some(),
            MissingKind::Write => contained(name, &self.writable).is_some(),
            MissingKind::Env => self.env.contains_key(name),
            MissingKind::Modules => self.modules.allows(name),
            MissingKind::Commands => self.commands.allows(name),
            MissingKind::Net => hosts(&Access::Only(vec![name.to_owned()])).is_ok(),
        }
    }

    fn paths(&self, grant: Grant, asked: &Access) -> Result<Vec<PathBuf>, RunError> {
        let rules =
            [(Grant::Read, &self.readable, "reading"), (Grant::Write, &self.writable, "writing")];
        let Some((_, allowed, what)) = rules.into_iter().find(|(ruled, ..)| *ruled == grant) else {
            return Err(RunError::new(ErrorCode::PermissionFile, "no path can be granted here"));
        };
        let beyond = |path: &str| beyond_paths(what, grant.key(), path, allowed);
        match asked {
            Access::None => Ok(Vec::new()),
            Access::All if allowed.is_empty() => Err(beyond("any path")),
            Access::All => Ok(allowed.clone()),
            Access::Only(paths) => {
                let given =
                    paths.iter().map(|path| contained(path, allowed).ok_or_else(|| beyond(path)));
                given.collect()
            }
        }
    }

    /// A variable with the client's own value, or with the operator's.
    fn variable(&self, name: &str, own: Option<&str>) -> Result<(String, String), RunError> {
        let value = own.or_else(|| self.env.get(name).map(String::as_str));
        if let Some(value) = value {
            return Ok((name.to_owned(), value.to_owned()));
        }
        let message =
            format!("the environment variable {name} of the operator is not allowed here");
        let hint = format!(
            "{}; or state a value of your own: {{{name:?}: \"…\"}}",
            allow("env", "env", name)
        );
        Err(RunError::new(ErrorCode::PermissionHost, message).with_hint(hint))
    }

    /// Names, if the operator allows all of them.
    fn checked(&self, grant: Grant, value: GrantValue) -> Result<GrantValue, RunError> {
        let GrantValue::Names(names) = &value else { return Ok(value) };
        let (rule, what, code) = match grant {
            Grant::Modules => (&self.modules, "the module", ErrorCode::PermissionModule),
            Grant::Commands => (&self.commands, "the command", ErrorCode::PermissionCommand),
            Grant::Tools
            | Grant::Read
            | Grant::Write
            | Grant::Net
            | Grant::Env
            | Grant::Permissive => return Ok(value),
        };
        let Some(name) = names.iter().find(|name| !rule.allows(name)) else { return Ok(value) };
        let known = rule.only().unwrap_or_default().join(", ");
        let message = format!("{what} {name} may not be asked for here{}", listed(&known));
        let flag = grant.flag().map_or(grant.key(), |flag| flag.name);
        Err(RunError::new(code, message).with_hint(allow(flag, grant.key(), name)))
    }
}

/// How the operator allows something.
fn allow(flag: &str, key: &str, name: &str) -> String {
    format!("the operator allows it with {}", operator_phrase(flag, ("grants", key), name))
}

fn beyond_paths(what: &str, key: &str, path: &str, allowed: &[PathBuf]) -> RunError {
    let known: Vec<_> = allowed.iter().map(|path| path.to_string_lossy()).collect();
    let message = format!("{what} {path} is not allowed here{}", listed(&known.join(", ")));
    let named = if Path::new(path).is_absolute() { path } else { "/PATH" };
    RunError::new(ErrorCode::PermissionFile, message).with_hint(allow(key, key, named))
}

/// The allowed values, for the end of a message.
fn listed(known: &str) -> String {
    if known.is_empty() { String::new() } else { format!("; allowed: {known}") }
}
