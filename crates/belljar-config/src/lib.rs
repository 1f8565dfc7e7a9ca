//! `belljar.toml` and `.mcp.json`: default limits, the operator's maxima, engines, MCP servers and
//! the policy for their tools.
//!
//! Two stages: `raw` mirrors one file, [`ProjectSettings`] is the result of all files. Invariant:
//! a project's file, which may come with a stranger's repository, can lower the operator's maxima
//! and never raise them. Its `allow` rules for tools apply only to servers that it defines, and its
//! `[net]` and `[grants]` only narrow.

mod engines;
mod grants;
mod locations;
mod net;
mod raw;
mod retention;
mod servers;
mod tools;
mod workflows;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use belljar_contract::{Limit, Limits};
use belljar_paths::owner::{Purpose, UntrustedPath, read_to_string};
use belljar_runtime::maximum_limits_here;
use belljar_tools::ServerConfigError;
use raw::{LimitEntry, RawConfig};
use thiserror::Error;

pub use belljar_contract::quantity;
pub use engines::EngineSettings;
pub use grants::GrantSettings;
pub use locations::{ConfigLocations, FILE_NAME, PROJECT_NAMES, SERVERS_NAME, STATE_NAME};
pub use net::{IgnoredHost, NetSettings};
pub use retention::Retention;
pub use servers::{ConfiguredServer, ServerOrigin, ServerOverrideError};
pub use tools::{IgnoredRule, ToolSettings};
pub use workflows::{MAX_QUEUED, MAX_RUNNING, WorkflowSettings};

/// Why the settings cannot be loaded.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A file belongs to another user, or others can change it.
    #[error(transparent)]
    Untrusted(#[from] UntrustedPath),
    /// A `belljar.toml` cannot be read.
    #[error("cannot read the configuration {path}", path = .path.display())]
    Unreadable {
        /// Path of the configuration file.
        path: PathBuf,
        /// The error of the operating system, or the reason why the file is not trusted.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A `belljar.toml` is not valid TOML, or has an unknown key.
    #[error("invalid configuration {path}", path = .path.display())]
    Invalid {
        /// Path of the configuration file.
        path: PathBuf,
        /// The parser's error, with the line.
        source: Box<toml::de::Error>,
    },
    /// A value is invalid or above the maximum.
    #[error(transparent)]
    Value(#[from] ConfigError),
    /// A `.mcp.json` cannot be read.
    #[error("cannot read {path}", path = .path.display())]
    ServersUnreadable {
        /// Path of the server file.
        path: PathBuf,
        /// The reason why it is missing, unreadable or not trusted.
        source: UntrustedPath,
    },
    /// A `.mcp.json` has an invalid format.
    #[error("{path}: {fault}", path = .path.display())]
    ServersInvalid {
        /// Path of the server file.
        path: PathBuf,
        /// The first fault in the file.
        fault: ServerConfigError,
    },
    /// A project changes more of the user's server than it may.
    #[error(transparent)]
    ServerOverrideError(#[from] ServerOverrideError),
}

/// Why the values of the files cannot be used.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A value that is invalid, or not allowed in this file.
    #[error("{file}, line {line}: {section}.{key}: {reason}", file = .file.display())]
    Value {
        /// The file with the value.
        file: PathBuf,
        /// The line with the value.
        line: usize,
        /// The table, such as `limits`.
        section: &'static str,
        /// The key in that table.
        key: &'static str,
        /// The fault of the value.
        reason: String,
    },
    /// A default above the maximum.
    #[error(
        "{file}, line {line}: limits.{key} is {asked}, above the maximum of {allowed}",
        file = .file.display()
    )]
    AboveMaximum {
        /// The file with the value.
        file: PathBuf,
        /// The line with the value.
        line: usize,
        /// The key in `[limits]`.
        key: &'static str,
        /// The value, formatted for people.
        asked: String,
        /// The maximum, formatted for people.
        allowed: String,
    },
}

/// The settings of a project, from all files that apply.
#[derive(Debug, PartialEq)]
pub struct ProjectSettings {
    /// Limits that a file sets.
    stated: BTreeMap<Limit, u64>,
    /// The most that a run may request.
    pub maximum: Limits,
    /// Servers, policy, result size and cache.
    pub tools: ToolSettings,
    /// The engines that files choose for languages.
    pub engines: EngineSettings,
    /// The permissions of clients for workflows.
    pub workflows: WorkflowSettings,
    /// How long records are kept.
    pub retention: Retention,
    /// Names that every commit writes although the host would execute them.
    pub commit_executable: Vec<String>,
    /// The grants that clients may ask for.
    pub grants: GrantSettings,
    /// Which hosts code may reach.
    pub net: NetSettings,
}

impl ProjectSettings {
    /// Loads the files that apply: `explicit` or else the user's file, then the project's.
    pub fn load(
        explicit: Option<&Path>,
        locations: &ConfigLocations,
    ) -> Result<Self, SettingsError> {
        let operator_path = explicit.map(Path::to_owned).or_else(|| locations.user_file());
        let project_path =
            locations.project_file()?.filter(|path| Some(path) != operator_path.as_ref());
        // A file named on the command line is read without an ownership check: the user chose it.
        let purpose = explicit.is_none().then_some(Purpose::OwnConfiguration);
        let operator = operator_path.map(|path| read(&path, purpose)).transpose()?;
        let of_project = Some(Purpose::Configuration);
        let project = project_path.map(|path| read(&path, of_project)).transpose()?;
        let foreign = locations.servers_file()?.map(|path| servers::read(&path)).transpose()?;
        let order = if explicit.is_some() {
            DefaultsOrder::OperatorFirst
        } else {
            DefaultsOrder::ProjectFirst
        };
        let files = ConfigFiles { operator: operator.as_ref(), project: project.as_ref(), order };
        let mut settings = Self::resolve(files)?;
        let servers = servers::merge(files, foreign.unwrap_or_default())?;
        settings.tools = settings.tools.with_servers(files, servers);
        Ok(settings)
    }

    fn resolve(files: ConfigFiles<'_>) -> Result<Self, ConfigError> {
        let ConfigFiles { operator, project, .. } = files;
        let mut maximum = maximum_limits_here();
        for stated in operator.map(RawConfig::maxima).transpose()?.unwrap_or_default() {
            stated.limit.set(&mut maximum, stated.value);
        }
        for stated in project.map(RawConfig::maxima).transpose()?.unwrap_or_default() {
            let lower = stated.value.min(stated.limit.get(&maximum));
            stated.limit.set(&mut maximum, lower);
        }
        let mut stated = BTreeMap::new();
        for file in files.weak_to_strong() {
            for limit in file.defaults()? {
                limit.check(&maximum, file.path())?;
                stated.insert(limit.limit, limit.value);
            }
        }
        let (tools, workflows) = (ToolSettings::resolve(files)?, WorkflowSettings::resolve(files)?);
        let (retention, engines) = (retention::resolve(files)?, EngineSettings::resolve(files)?);
        files.project.map_or(Ok(()), RawConfig::refuse_commit_executable)?;
        let commit_executable = files.operator.map(RawConfig::commit_executable).transpose()?;
        let commit_executable = commit_executable.unwrap_or_default();
        let (grants, net) = (GrantSettings::resolve(files)?, NetSettings::resolve(files)?);
        Ok(Self {
            stated,
            maximum,
            tools,
            engines,
            workflows,
            retention,
            commit_executable,
            grants,
            net,
        })
    }

    /// The limits of a run. Flags override files, and files override the built-in defaults.
    ///
    /// Built-in defaults are lowered to the maximum. A value that a person chose stays, so that the
    /// host can refuse it by name.
    pub fn limits(&self, flags: &[(Limit, u64)]) -> Limits {
        let mut limits = Limits::DEFAULT.within(&self.maximum);
        let mut stated = self.stated.clone();
        stated.extend(flags.iter().copied());
        for (key, value) in &stated {
            key.set(&mut limits, *value);
        }
        if !stated.contains_key(&Limit::Cpu) {
            limits.cpu = limits.timeout.min(self.maximum.cpu);
        }
        limits
    }
}

/// The files that apply.
#[derive(Debug, Clone, Copy)]
struct ConfigFiles<'a> {
    operator: Option<&'a RawConfig>,
    project: Option<&'a RawConfig>,
    order: DefaultsOrder,
}

impl<'a> ConfigFiles<'a> {
    fn is_project(self, file: &RawConfig) -> bool {
        self.project.is_some_and(|project| std::ptr::eq(project, file))
    }

    fn weak_to_strong(self) -> impl Iterator<Item = &'a RawConfig> {
        let files = match self.order {
            DefaultsOrder::ProjectFirst => [self.operator, self.project],
            DefaultsOrder::OperatorFirst => [self.project, self.operator],
        };
        files.into_iter().flatten()
    }
}

/// Which defaults win: the file named on the command line, or else the nearest file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefaultsOrder {
    ProjectFirst,
    OperatorFirst,
}

impl LimitEntry {
    fn check(&self, maximum: &Limits, file: &Path) -> Result<(), ConfigError> {
        let allowed = self.limit.get(maximum);
        if self.value <= allowed {
            return Ok(());
        }
        Err(ConfigError::AboveMaximum {
            file: file.to_owned(),
            line: self.line,
            key: self.limit.key(),
            asked: quantity::show(self.limit, self.value),
            allowed: quantity::show(self.limit, allowed),
        })
    }
}

fn read(path: &Path, purpose: Option<Purpose>) -> Result<RawConfig, SettingsError> {
    let text = match purpose {
        Some(purpose) => read_to_string(path, purpose).map_err(Into::into),
        None => fs::read_to_string(path).map_err(Into::into),
    };
    let path = path.to_owned();
    let text = match text {
        Ok(text) => text,
        Err(source) => return Err(SettingsError::Unreadable { path, source }),
    };
    RawConfig::parse(&path, text)
        .map_err(|error| SettingsError::Invalid { path, source: Box::new(error) })
}

#[cfg(test)]
mod tests;
