//! `belljar.toml` and `.mcp.json`: what a run gets by default, the operator's maxima, the MCP
//! servers of a project and who may call their tools.
//!
//! Two stages: [`raw`] mirrors one file, [`ProjectSettings`] is what the files together mean. The invariant
//! kept here: a project's file, which may come with somebody else's repository, can lower the
//! operator's maxima and never raise them.

mod limit_key;
mod locations;
pub mod quantity;
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

use belljar_paths::owner::{Purpose, UntrustedPath, read_to_string};
use belljar_tools::ServerConfigError;
use thiserror::Error;

pub use limit_key::LimitKey;
pub use locations::{ConfigLocations, FILE_NAME, PROJECT_NAMES, SERVERS_NAME, STATE_NAME};
pub use servers::{ConfiguredServer, ServerOrigin, ServerOverrideError};
pub use tools::{IgnoredRule, ToolSettings};
pub use workflows::WorkflowSettings;

use crate::{Limits, Retention};
use raw::{LimitEntry, RawConfig};

/// Why there are no settings.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A file belongs to somebody else, or others could have changed it.
    #[error(transparent)]
    Untrusted(#[from] UntrustedPath),
    /// A `belljar.toml` could not be read.
    #[error("could not read the configuration {path}", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said, or why the file is not trusted.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A `belljar.toml` is not TOML, or has a key that nobody knows.
    #[error("the configuration {path} is not valid", path = .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What the parser said, with the line.
        source: Box<toml::de::Error>,
    },
    /// A value means nothing, or is above the maximum.
    #[error(transparent)]
    Value(#[from] ConfigError),
    /// A `.mcp.json` could not be read.
    #[error("could not read {path}", path = .path.display())]
    ServersUnreadable {
        /// The file.
        path: PathBuf,
        /// Why it could not.
        source: UntrustedPath,
    },
    /// A `.mcp.json` is not what such a file has to be.
    #[error("{path}: {fault}", path = .path.display())]
    ServersInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: ServerConfigError,
    },
    /// A project asks more of a server of the user's than it may.
    #[error(transparent)]
    ServerOverrideError(#[from] ServerOverrideError),
}

/// Why the files together mean nothing.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A value that cannot be read, or has no place in this file.
    #[error("{file}, line {line}: {section}.{key}: {reason}", file = .file.display())]
    Value {
        /// The file that states it.
        file: PathBuf,
        /// The line that states it.
        line: usize,
        /// The table of the file.
        section: &'static str,
        /// The key in that table.
        key: &'static str,
        /// What is wrong with the value.
        reason: String,
    },
    /// A default above the maximum.
    #[error(
        "{file}, line {line}: limits.{key} is {asked}, above the maximum of {allowed}",
        file = .file.display()
    )]
    AboveMaximum {
        /// The file that states it.
        file: PathBuf,
        /// The line that states it.
        line: usize,
        /// The key in `[limits]`.
        key: &'static str,
        /// The value, for people.
        asked: String,
        /// The maximum, for people.
        allowed: String,
    },
}

/// What the files together mean.
#[derive(Debug, PartialEq)]
pub struct ProjectSettings {
    /// Limits some file states, by key.
    stated: BTreeMap<LimitKey, u64>,
    /// The most a run may ask for.
    pub maximum: Limits,
    /// Servers, policy and what goes with them.
    pub tools: ToolSettings,
    /// What clients may do with workflows.
    pub workflows: WorkflowSettings,
    /// What is kept for how long.
    pub retention: Retention,
    /// Names that every commit brings although the host would execute them.
    pub commit_executable: Vec<String>,
}

impl ProjectSettings {
    /// Reads the files that apply: `explicit` (or else the user's), and the project's.
    pub fn load(
        explicit: Option<&Path>,
        locations: &ConfigLocations,
    ) -> Result<Self, SettingsError> {
        let operator_path = explicit.map(Path::to_owned).or_else(|| locations.user_file());
        let project_path =
            locations.project_file()?.filter(|path| Some(path) != operator_path.as_ref());
        // A file that was named is read as it is: whoever named it knows it.
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
        let mut maximum = Limits::maximum_here();
        for stated in operator.map(RawConfig::maxima).transpose()?.unwrap_or_default() {
            stated.key.set(&mut maximum, stated.value);
        }
        for stated in project.map(RawConfig::maxima).transpose()?.unwrap_or_default() {
            let lower = stated.value.min(stated.key.get(&maximum));
            stated.key.set(&mut maximum, lower);
        }
        let mut stated = BTreeMap::new();
        for file in files.weak_to_strong() {
            for limit in file.defaults()? {
                limit.check(&maximum, file.path())?;
                stated.insert(limit.key, limit.value);
            }
        }
        let (tools, workflows) = (ToolSettings::resolve(files)?, WorkflowSettings::resolve(files)?);
        let retention = retention::resolve(files)?;
        files.project.map_or(Ok(()), RawConfig::refuse_commit_executable)?;
        let commit_executable = files.operator.map(RawConfig::commit_executable).transpose()?;
        let commit_executable = commit_executable.unwrap_or_default();
        Ok(Self { stated, maximum, tools, workflows, retention, commit_executable })
    }

    /// The limits of a run: flags before files before defaults.
    ///
    /// What was built in gives way to the maximum; what a person asked for is left as asked, so
    /// that the host refuses it by name.
    pub fn limits(&self, flags: &[(LimitKey, u64)]) -> Limits {
        let mut limits = Limits::DEFAULT;
        for key in LimitKey::ALL {
            key.set(&mut limits, key.get(&Limits::DEFAULT).min(key.get(&self.maximum)));
        }
        let mut stated = self.stated.clone();
        stated.extend(flags.iter().copied());
        for (key, value) in &stated {
            key.set(&mut limits, *value);
        }
        if !stated.contains_key(&LimitKey::Cpu) {
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

/// Whose defaults win: the file named on the command line, or else the nearest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefaultsOrder {
    ProjectFirst,
    OperatorFirst,
}

impl LimitEntry {
    fn check(&self, maximum: &Limits, file: &Path) -> Result<(), ConfigError> {
        let allowed = self.key.get(maximum);
        if self.value <= allowed {
            return Ok(());
        }
        Err(ConfigError::AboveMaximum {
            file: file.to_owned(),
            line: self.line,
            key: self.key.name(),
            asked: self.key.show(self.value),
            allowed: self.key.show(allowed),
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
