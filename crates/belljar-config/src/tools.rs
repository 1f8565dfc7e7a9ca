//! Settings for tools: servers, policy, approvals, result size and cache.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    time::Duration,
};

use belljar_tools::{AuditTiming, ToolPolicy};
use serde::Serialize;

use super::{ConfigError, ConfigFiles, raw::RawConfig, servers::ConfiguredServer};

/// Default time for a person to decide.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(600);

/// The tool settings of all files.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSettings {
    /// The MCP servers, by name. Their `${NAME}` variables are not replaced yet.
    pub servers: BTreeMap<String, ConfiguredServer>,
    /// Which tools code may call, and which calls ask a person.
    pub policy: ToolPolicy,
    /// Rules of the project that do not apply, because they concern the user's servers.
    pub ignored_rules: Vec<IgnoredRule>,
    /// How long a person has to decide about a call.
    pub approval_timeout: Duration,
    /// A larger value, in tokens, is stored and replaced by a summary.
    pub max_output_tokens: Option<u32>,
    /// How long a cached answer may be reused; `None` never.
    pub cache: Option<Duration>,
    /// When audit rows are written to disk.
    pub audit: AuditTiming,
}

impl ToolSettings {
    /// Everything except the servers and the project's allow rules. The rules of all files apply:
    /// deny comes before ask, ask before allow, so no project can undo what its user denies or
    /// wants to be asked about.
    pub(super) fn resolve(files: ConfigFiles<'_>) -> Result<Self, ConfigError> {
        let mut settings = Self {
            servers: BTreeMap::new(),
            policy: ToolPolicy::default(),
            ignored_rules: Vec::new(),
            approval_timeout: APPROVAL_TIMEOUT,
            max_output_tokens: None,
            cache: None,
            audit: AuditTiming::default(),
        };
        for file in files.weak_to_strong() {
            let ToolPolicy { allow, ask, deny } = file.policy();
            if !files.is_project(file) {
                settings.policy.allow.extend(allow);
            }
            settings.policy.ask.extend(ask);
            settings.policy.deny.extend(deny);
            if let Some(time) = file.approval_timeout()? {
                settings.approval_timeout = time;
            }
            settings.max_output_tokens = file.max_output_tokens()?.or(settings.max_output_tokens);
            settings.cache = file.cache_ttl()?.or(settings.cache);
        }
        settings.audit = audit(files)?;
        Ok(settings)
    }

    /// Adds the servers, and the project's allow rules for its own servers. A project may come with
    /// a stranger's repository, and the user's servers have the user's credentials.
    pub(super) fn with_servers(
        mut self,
        files: ConfigFiles<'_>,
        servers: BTreeMap<String, ConfiguredServer>,
    ) -> Self {
        let names = |is_own: bool| {
            let fit = servers.iter().filter(move |(_, server)| {
                server.is_of_project() == is_own && !server.raw.disabled
            });
            fit.map(|(name, _)| name.clone())
        };
        let own: BTreeSet<String> = names(true).collect();
        let rules = files.project.map(|file| (file.path(), file.policy().allow));
        for (file, rule) in
            rules.iter().flat_map(|(file, allow)| allow.iter().map(|one| (*file, one)))
        {
            let concerned: Vec<String> =
                names(false).filter(|name| rule.may_concern_server(name)).collect();
            if !concerned.is_empty() {
                let (file, rule) = (file.to_owned(), rule.to_string());
                self.ignored_rules.push(IgnoredRule { file, rule, servers: concerned });
            }
            self.policy.allow.push(rule.clone().only_of(own.clone()));
        }
        self.servers = servers;
        self
    }
}

/// A rule of the project's file that does not apply to some servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IgnoredRule {
    file: PathBuf,
    rule: String,
    servers: Vec<String>,
}

impl fmt::Display for IgnoredRule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, rule, servers } = self;
        write!(
            to,
            "{}: allow {rule} does not apply to {}, which this project does not define; allow it \
             in the user's belljar.toml",
            file.display(),
            servers.join(", "),
        )
    }
}

/// When audit rows are written. Only the operator's file may allow losing some of them.
fn audit(files: ConfigFiles<'_>) -> Result<AuditTiming, ConfigError> {
    files.project.map_or(Ok(()), RawConfig::refuse_lose_rows)?;
    Ok(match files.operator.and_then(RawConfig::loses_audit_rows) {
        Some(true) => AuditTiming::Behind,
        Some(false) | None => AuditTiming::BeforeEffects,
    })
}
