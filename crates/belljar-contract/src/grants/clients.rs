//! The operator's rules about grants, and the check of each request.
//!
//! Invariant: a request is given in full or refused. Rules follow the table: a row with an operator's rule
//! needs no code here.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{Access, Grant, GrantAsk, GrantKey, GrantKind, GrantValue, Grants, contained};
use crate::{ErrorCode, MissingGrant, RunError, operator_phrase};

/// The grants that a client, or a task of a workflow, may ask for. What has no rule may not be asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientGrants {
    rules: BTreeMap<GrantKey, GrantRule>,
}

/// The values of one grant that may be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantRule {
    /// These paths, and what is below them.
    Paths(Vec<PathBuf>),
    /// Variables of the operator, with their values.
    Variables(BTreeMap<String, String>),
    /// Names.
    Names(NameRule),
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

/// A requested grant that the operator does not allow. Each surface has its own words for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRefusal {
    /// The grant.
    pub grant: Grant,
    /// The refused path, variable or name; `None` if all allowed paths were asked for and there are none.
    pub name: Option<String>,
    /// The values that are allowed.
    pub allowed: Vec<String>,
}

impl ClientGrants {
    /// Sets the rule of a key.
    pub fn allow(&mut self, key: impl Into<GrantKey>, rule: GrantRule) {
        self.rules.insert(key.into(), rule);
    }

    /// The values that flags granted, and any name: the user who starts a workflow's file trusts it with
    /// names, because the jail confines what they do.
    pub fn of_flags(grants: &Grants) -> Self {
        let mut allowed = Self::default();
        for (grant, value) in grants.values() {
            if grant.operator().is_none() {
                continue;
            }
            allowed.allow(
                grant,
                match value {
                    GrantValue::Paths(paths) => GrantRule::Paths(paths),
                    GrantValue::Variables(variables) => GrantRule::Variables(variables),
                    GrantValue::Names(_) | GrantValue::Switch(_) => GrantRule::Names(NameRule::Any),
                },
            );
        }
        allowed
    }

    /// The rule of a key, if it has one.
    pub fn rule(&self, key: impl Into<GrantKey>) -> Option<&GrantRule> {
        self.rules.get(&key.into())
    }

    /// The requested grants. Tools are policy's to decide, and `hosts` decides about hosts.
    ///
    /// # Errors
    /// Something is not allowed.
    pub fn given<E: From<GrantRefusal>>(
        &self,
        asked: Vec<(Grant, GrantAsk<'_>)>,
        hosts: impl Fn(&Access) -> Result<Vec<String>, E>,
    ) -> Result<Grants, E> {
        let mut grants = Grants::default();
        for (grant, ask) in asked {
            let value = match ask {
                GrantAsk::Paths(access) => GrantValue::Paths(self.paths_of(grant, access)?),
                GrantAsk::Hosts(access) => GrantValue::Names(hosts(access)?),
                GrantAsk::Variables(asked) => {
                    let variables =
                        asked.into_iter().map(|(name, value)| self.variable(grant, name, value));
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
    /// The operator does not allow it; the hint says how the operator would.
    pub fn workspace(&self, asked: &str, commit: bool) -> Result<PathBuf, RunError> {
        let writable = self.paths(Grant::Write);
        if commit {
            return contained(asked, writable)
                .ok_or_else(|| beyond_paths("committing to", "write", asked, &texts(writable)));
        }
        let workspaces = self.paths(GrantKey::Workspace).iter();
        let allowed: Vec<PathBuf> = workspaces.chain(self.paths(Grant::Read)).cloned().collect();
        contained(asked, &allowed)
            .ok_or_else(|| beyond_paths("working on", "workspace", asked, &texts(&allowed)))
    }

    /// Whether a client may ask for what code was missing. `hosts` decides about hosts.
    pub fn allows(
        &self,
        missing: &MissingGrant,
        hosts: impl Fn(&Access) -> Result<Vec<String>, RunError>,
    ) -> bool {
        let name = missing.name.as_str();
        match self.rule(missing.kind) {
            Some(GrantRule::Paths(paths)) => contained(name, paths).is_some(),
            Some(GrantRule::Variables(variables)) => variables.contains_key(name),
            Some(GrantRule::Names(names)) => names.allows(name),
            None if missing.kind == Grant::Net => {
                hosts(&Access::Only(vec![name.to_owned()])).is_ok()
            }
            None => false,
        }
    }

    /// The paths that may be asked for under a key.
    fn paths(&self, key: impl Into<GrantKey>) -> &[PathBuf] {
        match self.rule(key) {
            Some(GrantRule::Paths(paths)) => paths,
            Some(GrantRule::Variables(_) | GrantRule::Names(_)) | None => &[],
        }
    }

    fn paths_of(&self, grant: Grant, asked: &Access) -> Result<Vec<PathBuf>, GrantRefusal> {
        let allowed = self.paths(grant);
        let beyond = |path: Option<&str>| GrantRefusal {
            grant,
            name: path.map(str::to_owned),
            allowed: texts(allowed),
        };
        match asked {
            Access::None => Ok(Vec::new()),
            Access::All if allowed.is_empty() => Err(beyond(None)),
            Access::All => Ok(allowed.to_vec()),
            Access::Only(paths) => {
                let given = paths
                    .iter()
                    .map(|path| contained(path, allowed).ok_or_else(|| beyond(Some(path))));
                given.collect()
            }
        }
    }

    /// A variable with the client's own value, or with the operator's.
    fn variable(
        &self,
        grant: Grant,
        name: &str,
        own: Option<&str>,
    ) -> Result<(String, String), GrantRefusal> {
        let of_operator = match self.rule(grant) {
            Some(GrantRule::Variables(variables)) => variables.get(name).map(String::as_str),
            Some(GrantRule::Paths(_) | GrantRule::Names(_)) | None => None,
        };
        let refusal = || GrantRefusal { grant, name: Some(name.to_owned()), allowed: Vec::new() };
        let value = own.or(of_operator).ok_or_else(refusal)?;
        Ok((name.to_owned(), value.to_owned()))
    }

    /// Names, if the operator allows all of them. What no operator's key is about passes.
    fn checked(&self, grant: Grant, value: GrantValue) -> Result<GrantValue, GrantRefusal> {
        let GrantValue::Names(names) = &value else { return Ok(value) };
        if grant.operator().is_none() {
            return Ok(value);
        }
        let none = NameRule::default();
        let rule = match self.rule(grant) {
            Some(GrantRule::Names(rule)) => rule,
            Some(GrantRule::Paths(_) | GrantRule::Variables(_)) | None => &none,
        };
        match names.iter().find(|name| !rule.allows(name)) {
            None => Ok(value),
            Some(name) => Err(GrantRefusal {
                grant,
                name: Some(name.clone()),
                allowed: rule.only().unwrap_or_default().to_vec(),
            }),
        }
    }
}

/// The refusal as a client reads it; the hint names the flag and the key by which the operator would allow
/// the grant.
impl From<GrantRefusal> for RunError {
    fn from(refusal: GrantRefusal) -> Self {
        let GrantRefusal { grant, name, allowed } = refusal;
        let Some(row) = grant.operator() else {
            let message = format!("`{}` cannot be granted here", grant.key());
            return Self::new(ErrorCode::PermissionHost, message);
        };
        let (what, key) = (row.noun, grant.key());
        let Some(name) = name else { return beyond_paths(what, key, "any path", &allowed) };
        match grant.kind() {
            GrantKind::Paths => beyond_paths(what, key, &name, &allowed),
            GrantKind::Variables => {
                let message = format!("{what} {name} of the operator is not allowed here");
                let hint = format!(
                    "{}; or state a value of your own: {{{name:?}: \"…\"}}",
                    allow(grant.flag_name(), key, &name)
                );
                Self::new(row.code, message).with_hint(hint)
            }
            GrantKind::Names | GrantKind::Hosts | GrantKind::Tools | GrantKind::Switch => {
                let known = listed(&allowed);
                let message = format!("{what} {name} may not be asked for here{known}");
                Self::new(row.code, message).with_hint(allow(grant.flag_name(), key, &name))
            }
        }
    }
}

/// How the operator allows something.
fn allow(flag: &str, key: &str, name: &str) -> String {
    format!("the operator allows it with {}", operator_phrase(flag, ("grants", key), name))
}

fn beyond_paths(what: &str, key: &str, path: &str, allowed: &[String]) -> RunError {
    let message = format!("{what} {path} is not allowed here{}", listed(allowed));
    let named = if Path::new(path).is_absolute() { path } else { "/PATH" };
    RunError::new(ErrorCode::PermissionFile, message).with_hint(allow(key, key, named))
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// The allowed values, for the end of a message.
fn listed(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; allowed: {}", known.join(", ")) }
}
