//! The hosts that a request gets, within the operator's rules.
//!
//! Invariant: a request of a client or of a workflow is given in full or refused; what the rules say about
//! methods, paths and people counts later, for each connection.

use std::{collections::BTreeMap, sync::Arc};

use belljar_config::{ConfigError, NetSettings};
use belljar_contract::{Access, ErrorCode, RunError, operator_phrase};
use belljar_net::{HostPattern, NetRules};
use belljar_runtime::PATTERNS;

/// `[net]` of all files, with the variables of its headers.
#[derive(Debug, Default)]
pub(crate) struct NetworkSettings {
    settings: NetSettings,
    variables: BTreeMap<String, String>,
}

/// The hosts that clients may reach.
#[derive(Debug, Clone, Default)]
pub struct ClientHosts {
    /// The hosts that flags allow.
    pub flags: Vec<HostPattern>,
    /// The rules that follow from flags and files.
    pub rules: Arc<NetRules>,
}

/// Why hosts are not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostsRefusal {
    /// A text is no pattern.
    Malformed(String),
    /// No rule names this pattern; the patterns that there are.
    NotAllowed(String, Vec<String>),
    /// All were asked for, and there are none.
    None,
}

impl NetworkSettings {
    pub(crate) fn new(settings: NetSettings, variables: BTreeMap<String, String>) -> Self {
        Self { settings, variables }
    }

    /// The rules for a run, if the operator allows these hosts beside the files.
    pub(crate) fn rules(
        &self,
        hosts: &[HostPattern],
        granted: &[HostPattern],
    ) -> Result<NetRules, RunError> {
        let rules = self.settings.rules(hosts.iter().cloned(), &self.variables);
        let (rules, _) = rules.map_err(|error: ConfigError| {
            RunError::new(ErrorCode::RequestInvalid, error.to_string())
        })?;
        let Some(file) = self.settings.project_file() else { return Ok(rules) };
        let is_left = |host: &&HostPattern| !rules.patterns().any(|one| one.both(host).is_some());
        match granted.iter().find(is_left) {
            None => Ok(rules),
            Some(host) => {
                let message = format!("reaching {host} is not allowed in this project");
                Err(RunError::new(ErrorCode::PermissionNetwork, message).with_hint(format!(
                    "[net] in {} narrows what code may reach; add `{host}` there",
                    file.display()
                )))
            }
        }
    }
}

impl ClientHosts {
    /// The hosts that a client asks for.
    pub(crate) fn given(&self, asked: &Access) -> Result<Vec<String>, RunError> {
        let error = |message: String, hint: String| {
            Err(RunError::new(ErrorCode::PermissionNetwork, message).with_hint(hint))
        };
        match within(&self.rules, asked) {
            Ok(hosts) => Ok(hosts),
            Err(HostsRefusal::Malformed(fault)) => {
                Err(RunError::new(ErrorCode::RequestInvalid, fault).with_hint(PATTERNS))
            }
            Err(HostsRefusal::NotAllowed(host, known)) => {
                let known = match known.is_empty() {
                    true => String::new(),
                    false => format!("; allowed: {}", known.join(", ")),
                };
                error(format!("reaching {host} is not allowed here{known}"), allow(&host))
            }
            Err(HostsRefusal::None) => {
                error("reaching any host is not allowed here".to_owned(), allow("HOST"))
            }
        }
    }
}

/// How the operator allows a host.
fn allow(host: &str) -> String {
    format!("the operator allows it with {}", operator_phrase("net", ("net", "allow"), host))
}

/// The hosts that are asked for, if the rules name all of them. `All` is every host that they name.
pub(crate) fn within(rules: &NetRules, asked: &Access) -> Result<Vec<String>, HostsRefusal> {
    let known = || {
        let mut known: Vec<String> = rules.patterns().map(ToString::to_string).collect();
        known.sort();
        known.dedup();
        known
    };
    match asked {
        Access::None => Ok(Vec::new()),
        Access::All if rules.is_empty() => Err(HostsRefusal::None),
        Access::All => Ok(known()),
        Access::Only(hosts) => {
            let given = hosts.iter().map(|text| {
                let host = pattern(text)?;
                match rules.may_reach(&host) {
                    true => Ok(host.to_string()),
                    false => Err(HostsRefusal::NotAllowed(host.to_string(), known())),
                }
            });
            given.collect()
        }
    }
}

fn pattern(text: &str) -> Result<HostPattern, HostsRefusal> {
    text.parse()
        .map_err(|error: belljar_net::PatternError| HostsRefusal::Malformed(error.to_string()))
}
