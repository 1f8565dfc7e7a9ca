//! What the files say about tools: servers, who may call what, and what becomes of results.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use belljar_tools::{AuditTiming, ToolPolicy};
use serde::Serialize;

use super::{
    super::visible::visible, ConfigError, Files, raw::RawConfig, servers::ConfiguredServer,
};

/// How long a person has to decide, if no file says otherwise.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(600);

/// What the files together say about tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolSettings {
    /// The MCP servers, by name. Variables in them are not filled in yet.
    pub(crate) servers: BTreeMap<String, ConfiguredServer>,
    /// Who may call what.
    pub(crate) policy: ToolPolicy,
    /// What the project would allow and may not.
    pub(crate) not_counted: Vec<NotCounted>,
    /// How long a person has to decide.
    pub(crate) approval_timeout: Duration,
    /// A value larger than this is stored, and a summary takes its place.
    pub(crate) max_output_tokens: Option<u32>,
    /// For how long an answer may be given again; never if nothing is said.
    pub(crate) cache: Option<Duration>,
    /// When audit rows are on disk.
    pub(crate) audit: AuditTiming,
}

impl ToolSettings {
    /// Everything but the servers and what the project allows of them. The rules of all files hold
    /// at once: deny comes before ask before allow, so no project undoes what its user denies or
    /// wants to be asked about.
    pub(super) fn resolve(files: Files<'_>) -> Result<Self, ConfigError> {
        let mut settings = Self {
            servers: BTreeMap::new(),
            policy: ToolPolicy::default(),
            not_counted: Vec::new(),
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

    /// Adds the servers, and what the project's file allows: tools of its own servers. It may come
    /// with somebody else's repository, and the user's servers have the user's credentials.
    pub(super) fn with_servers(
        mut self,
        files: Files<'_>,
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
                self.not_counted.push(NotCounted { file, rule, servers: concerned });
            }
            self.policy.allow.push(rule.clone().only_of(own.clone()));
        }
        self.servers = servers;
        self
    }

    /// Says which rules do not count, where a person sees it.
    pub(crate) fn tell_not_counted(&self) {
        for not_counted in &self.not_counted {
            let _ = writeln!(io::stderr(), "{}", visible(&not_counted.to_string()));
        }
    }
}

/// A rule of the project's file that does not count for some servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NotCounted {
    file: PathBuf,
    rule: String,
    servers: Vec<String>,
}

impl fmt::Display for NotCounted {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, rule, servers } = self;
        write!(
            to,
            "{}: allow {rule} does not count for {}, which this project does not define; allow it in \
             your own belljar.toml",
            file.display(),
            servers.join(", "),
        )
    }
}

/// When audit rows are on disk. Only the operator's own file may give some of them up.
fn audit(files: Files<'_>) -> Result<AuditTiming, ConfigError> {
    files.project.map_or(Ok(()), RawConfig::refuse_lose_rows)?;
    Ok(match files.operator.and_then(RawConfig::loses_audit_rows) {
        Some(true) => AuditTiming::Behind,
        Some(false) | None => AuditTiming::BeforeEffects,
    })
}
