//! `belljar.toml` and `.mcp.json`: what a run gets by default, the operator's maxima, the MCP
//! servers of a project and who may call their tools.
//!
//! Two stages: [`raw`] mirrors one file, [`Settings`] is what the files together mean. The invariant
//! kept here: a project's file, which may come with somebody else's repository, can lower the
//! operator's maxima and never raise them.

mod find;
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

use anyhow::Context as _;
use belljar::{Limits, Retention};
use belljar_paths::owner::{Purpose, read_to_string};
use thiserror::Error;

pub(crate) use find::{PROJECT_NAMES, Places, STATE_NAME};
pub(crate) use servers::ConfiguredServer;
pub(crate) use tools::{NotCounted, ToolSettings};
pub(crate) use workflows::WorkflowSettings;

use raw::{RawConfig, Stated};

use super::limit_key::LimitKey;

/// Why the files together mean nothing.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum ConfigError {
    #[error("{file}, line {line}: {section}.{key}: {reason}", file = .file.display())]
    Value { file: PathBuf, line: usize, section: &'static str, key: &'static str, reason: String },
    #[error(
        "{file}, line {line}: limits.{key} is {asked}, above the maximum of {allowed}",
        file = .file.display()
    )]
    AboveMaximum { file: PathBuf, line: usize, key: &'static str, asked: String, allowed: String },
}

/// What the files together mean.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    /// Limits some file states, by key.
    stated: BTreeMap<LimitKey, u64>,
    /// The most a run may ask for.
    pub(crate) maximum: Limits,
    /// Servers, policy and what goes with them.
    pub(crate) tools: ToolSettings,
    /// What clients may do with workflows.
    pub(crate) workflows: WorkflowSettings,
    /// What is kept for how long.
    pub(crate) retention: Retention,
    /// Names that every commit brings although the host would execute them.
    pub(crate) commit_executable: Vec<String>,
}

impl Settings {
    /// Reads the files that apply: `explicit` (or else the user's), and the project's.
    pub(crate) fn load(explicit: Option<&Path>, places: &Places) -> anyhow::Result<Self> {
        let operator_path = explicit.map(Path::to_owned).or_else(|| places.user_file());
        let project_path =
            places.project_file()?.filter(|path| Some(path) != operator_path.as_ref());
        // A file that was named is read as it is: whoever named it knows it.
        let purpose = explicit.is_none().then_some(Purpose::OwnConfiguration);
        let operator = operator_path.map(|path| read(&path, purpose)).transpose()?;
        let of_project = Some(Purpose::Configuration);
        let project = project_path.map(|path| read(&path, of_project)).transpose()?;
        let foreign = places.servers_file()?.map(|path| servers::read(&path)).transpose()?;
        let order = if explicit.is_some() {
            DefaultsFrom::OperatorFirst
        } else {
            DefaultsFrom::ProjectFirst
        };
        let files = Files { operator: operator.as_ref(), project: project.as_ref(), order };
        let mut settings = Self::resolve(files)?;
        let servers = servers::merge(files, foreign.unwrap_or_default())?;
        settings.tools = settings.tools.with_servers(files, servers);
        Ok(settings)
    }

    fn resolve(files: Files<'_>) -> Result<Self, ConfigError> {
        let Files { operator, project, .. } = files;
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
    pub(crate) fn limits(&self, flags: &[(LimitKey, u64)]) -> Limits {
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
struct Files<'a> {
    operator: Option<&'a RawConfig>,
    project: Option<&'a RawConfig>,
    order: DefaultsFrom,
}

impl<'a> Files<'a> {
    fn is_project(self, file: &RawConfig) -> bool {
        self.project.is_some_and(|project| std::ptr::eq(project, file))
    }

    fn weak_to_strong(self) -> impl Iterator<Item = &'a RawConfig> {
        let files = match self.order {
            DefaultsFrom::ProjectFirst => [self.operator, self.project],
            DefaultsFrom::OperatorFirst => [self.project, self.operator],
        };
        files.into_iter().flatten()
    }
}

/// Whose defaults win: the file named on the command line, or else the nearest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefaultsFrom {
    ProjectFirst,
    OperatorFirst,
}

impl Stated {
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

fn read(path: &Path, purpose: Option<Purpose>) -> anyhow::Result<RawConfig> {
    let text = match purpose {
        Some(purpose) => read_to_string(path, purpose).map_err(Into::into),
        None => fs::read_to_string(path).map_err(anyhow::Error::from),
    };
    let text =
        text.with_context(|| format!("could not read the configuration {}", path.display()))?;
    RawConfig::parse(path, text)
        .with_context(|| format!("the configuration {} is not valid", path.display()))
}

#[cfg(test)]
mod tests;
