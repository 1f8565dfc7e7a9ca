//! What the files say about tools: servers, who may call what, and what becomes of results.

use std::{collections::BTreeMap, time::Duration};

use belljar_tools::Policy;

use super::{ConfigError, Files, servers::ConfiguredServer};

/// How long a person has to decide, if no file says otherwise.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(600);

/// What the files together say about tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolSettings {
    /// The MCP servers, by name. Variables in them are not filled in yet.
    pub(crate) servers: BTreeMap<String, ConfiguredServer>,
    /// Who may call what.
    pub(crate) policy: Policy,
    /// How long a person has to decide.
    pub(crate) approval_timeout: Duration,
    /// A value larger than this is stored, and a summary takes its place.
    pub(crate) max_output_tokens: Option<u32>,
    /// For how long an answer may be given again; never if nothing is said.
    pub(crate) cache: Option<Duration>,
}

impl ToolSettings {
    /// Everything but the servers. The rules of all files hold at once: deny comes before ask
    /// before allow, so no project undoes what its user denies or wants to be asked about.
    pub(super) fn resolve(files: Files<'_>) -> Result<Self, ConfigError> {
        let mut settings = Self {
            servers: BTreeMap::new(),
            policy: Policy::default(),
            approval_timeout: APPROVAL_TIMEOUT,
            max_output_tokens: None,
            cache: None,
        };
        for file in files.weak_to_strong() {
            let Policy { allow, ask, deny } = file.policy();
            settings.policy.allow.extend(allow);
            settings.policy.ask.extend(ask);
            settings.policy.deny.extend(deny);
            if let Some(time) = file.approval_timeout()? {
                settings.approval_timeout = time;
            }
            settings.max_output_tokens = file.max_output_tokens()?.or(settings.max_output_tokens);
            settings.cache = file.cache_ttl()?.or(settings.cache);
        }
        Ok(settings)
    }
}
