//! Finds the project and its configuration files.
//!
//! A file counts only if it belongs to the current user or to root: Belljar starts the programs it
//! names. Otherwise root in another user's directory, or any user in a shared one such as `/tmp`,
//! would start a stranger's programs (git: CVE-2022-24765). Files of other users are skipped with a
//! note; a file of the user's own that others can change is an error.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use belljar_paths::owner::{Purpose, UntrustedPath, check};

/// File name of the configuration, of a project or a user.
pub const FILE_NAME: &str = "belljar.toml";
/// File name of the server list that other MCP clients use too.
pub const SERVERS_NAME: &str = ".mcp.json";

/// Directory of a project's state.
pub const STATE_NAME: &str = ".belljar";
/// Names that make a directory a project.
pub const PROJECT_NAMES: [&str; 3] = [STATE_NAME, FILE_NAME, SERVERS_NAME];

/// Directories that configuration is searched in, and the variables in it.
#[derive(Debug, Default)]
pub struct ConfigLocations {
    /// The current directory; the project is searched there and above.
    pub current: Option<PathBuf>,
    /// The user's home directory, from `HOME`.
    pub home: Option<PathBuf>,
    /// The directory of `XDG_CONFIG_HOME`; `~/.config` if it is not set.
    pub config_home: Option<PathBuf>,
    /// The state directory, if it is not the project's own `.belljar`; absolute.
    pub state: Option<PathBuf>,
    /// The directory of `XDG_STATE_HOME`; `~/.local/state` if it is not set.
    pub state_home: Option<PathBuf>,
    /// Replace the `${NAME}` of server configurations; usually the environment of the process.
    pub variables: BTreeMap<String, String>,
}

impl ConfigLocations {
    /// Where the files of workflow tasks are written for their code: outside any project, so that
    /// the code sees nothing of the host.
    pub fn scratch(&self) -> PathBuf {
        match &self.home {
            Some(home) => home.join(".cache").join("belljar").join("workflows"),
            None => env::temp_dir().join("belljar-workflows"),
        }
    }

    /// Where the rules are kept that the user approved for good; `None` without a home directory.
    pub fn approved_rules(&self) -> Option<PathBuf> {
        let directory = match (&self.state_home, &self.home) {
            (Some(state_home), _) => state_home.clone(),
            (None, Some(home)) => home.join(".local").join("state"),
            (None, None) => return None,
        };
        Some(directory.join("belljar").join("approvals"))
    }

    /// The user's own configuration file, if it exists.
    pub(super) fn user_file(&self) -> Option<PathBuf> {
        let directory = match (&self.config_home, &self.home) {
            (Some(config_home), _) => config_home.clone(),
            (None, Some(home)) => home.join(".config"),
            (None, None) => return None,
        };
        let path = directory.join("belljar").join(FILE_NAME);
        path.is_file().then_some(path)
    }

    /// The nearest `belljar.toml`, here or above.
    pub(super) fn project_file(&self) -> Result<Option<PathBuf>, UntrustedPath> {
        Ok(self.nearest(&[FILE_NAME])?.map(|root| root.join(FILE_NAME)))
    }

    /// The nearest `.mcp.json`, here or above.
    pub(super) fn servers_file(&self) -> Result<Option<PathBuf>, UntrustedPath> {
        Ok(self.nearest(&[SERVERS_NAME])?.map(|root| root.join(SERVERS_NAME)))
    }

    /// All files that configure this project.
    pub fn files(&self) -> Result<Vec<PathBuf>, UntrustedPath> {
        let files = [self.user_file(), self.project_file()?, self.servers_file()?];
        Ok(files.into_iter().flatten().collect())
    }

    /// The project's root: the nearest directory with a file of Belljar's, else the current
    /// directory.
    pub fn root(&self) -> Result<Option<PathBuf>, UntrustedPath> {
        let nearest = self.nearest(&PROJECT_NAMES)?;
        Ok(nearest.or_else(|| self.current.clone()))
    }

    /// Files that would configure this project if they did not belong to another user.
    pub fn untrusted_files(&self) -> Vec<UntrustedPath> {
        let ancestors = self.current.iter().flat_map(|current| current.ancestors());
        let all = ancestors.flat_map(|at| PROJECT_NAMES.map(|name| (at.join(name), name)));
        let strange = all.filter_map(|(path, name)| match check(&path, purpose_of(name)) {
            Err(error @ UntrustedPath::Stranger { .. }) => Some(error),
            Ok(_) | Err(_) => None,
        });
        strange.collect()
    }

    /// The nearest directory that contains one of these names.
    fn nearest(&self, names: &[&str]) -> Result<Option<PathBuf>, UntrustedPath> {
        for directory in self.current.iter().flat_map(|current| current.ancestors()) {
            for name in names {
                if is_there(&directory.join(name), purpose_of(name))? {
                    return Ok(Some(directory.to_owned()));
                }
            }
        }
        Ok(None)
    }
}

fn purpose_of(name: &str) -> Purpose {
    if name == STATE_NAME { Purpose::State } else { Purpose::Configuration }
}

/// Whether a trusted file or directory of the right kind exists.
fn is_there(path: &Path, purpose: Purpose) -> Result<bool, UntrustedPath> {
    let is_state = purpose == Purpose::State;
    match check(path, purpose) {
        Ok(found) => Ok(found.is_dir() == is_state),
        Err(UntrustedPath::Stranger { .. } | UntrustedPath::Unexpected { .. }) => Ok(false),
        // Reported when the state is used: many commands need none.
        Err(UntrustedPath::Link { .. } | UntrustedPath::Writable { .. }) if is_state => Ok(true),
        Err(error @ (UntrustedPath::Link { .. } | UntrustedPath::Writable { .. })) => Err(error),
        // Missing, or not accessible.
        Err(UntrustedPath::Unreadable { .. }) => Ok(false),
        // Only checked when the state directory is created.
        Err(
            error @ (UntrustedPath::PlaceOfStranger { .. } | UntrustedPath::PlaceWritable { .. }),
        ) => Err(error),
    }
}

#[cfg(test)]
mod tests;
