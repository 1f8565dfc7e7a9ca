//! Where a project and its configuration are looked for. Only the binary looks; libraries are told.
//!
//! Files count only if they belong to whoever runs this, or to root: what they name is started, and
//! root in somebody's directory, or anybody in a shared one such as `/tmp`, would start it for them
//! (as git found out with CVE-2022-24765). Those of others are passed over, which is told; one of the
//! user's own that others could have changed is an error.

use std::{
    env,
    path::{Path, PathBuf},
};

use belljar_paths::owner::{Purpose, UntrustedPath, check};

/// The configuration of a project, or of a user.
pub const FILE_NAME: &str = "belljar.toml";
/// Where a project names its servers for all kinds of clients.
pub const SERVERS_NAME: &str = ".mcp.json";

/// The directory of a project that Belljar keeps its state in.
pub const STATE_NAME: &str = ".belljar";
/// What makes a directory a project.
pub const PROJECT_NAMES: [&str; 3] = [STATE_NAME, FILE_NAME, SERVERS_NAME];

/// The places a file may be in, as this process was started.
#[derive(Debug, Default)]
pub struct ConfigLocations {
    /// The current directory; a project is looked for there and above.
    pub current: Option<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`; `.config` in the home if there is none.
    pub config_home: Option<PathBuf>,
}

impl ConfigLocations {
    /// Where files of workflows are laid out for their code: apart from any project, so that code
    /// which sees them sees nothing of the host's.
    pub fn scratch(&self) -> PathBuf {
        match &self.home {
            Some(home) => home.join(".cache").join("belljar").join("workflows"),
            None => env::temp_dir().join("belljar-workflows"),
        }
    }

    /// The user's own file, if there is one.
    pub(super) fn user_file(&self) -> Option<PathBuf> {
        let directory = match (&self.config_home, &self.home) {
            (Some(config_home), _) => config_home.clone(),
            (None, Some(home)) => home.join(".config"),
            (None, None) => return None,
        };
        let path = directory.join("belljar").join(FILE_NAME);
        path.is_file().then_some(path)
    }

    /// The nearest file in the current directory or above it.
    pub(super) fn project_file(&self) -> Result<Option<PathBuf>, UntrustedPath> {
        Ok(self.nearest(&[FILE_NAME])?.map(|root| root.join(FILE_NAME)))
    }

    /// The nearest list of servers as other clients write it.
    pub(super) fn servers_file(&self) -> Result<Option<PathBuf>, UntrustedPath> {
        Ok(self.nearest(&[SERVERS_NAME])?.map(|root| root.join(SERVERS_NAME)))
    }

    /// All files that configure what runs here.
    pub fn files(&self) -> Result<Vec<PathBuf>, UntrustedPath> {
        let files = [self.user_file(), self.project_file()?, self.servers_file()?];
        Ok(files.into_iter().flatten().collect())
    }

    /// The project: the nearest directory with anything of Belljar's in it, else the current one.
    pub fn root(&self) -> Result<Option<PathBuf>, UntrustedPath> {
        let nearest = self.nearest(&PROJECT_NAMES)?;
        Ok(nearest.or_else(|| self.current.clone()))
    }

    /// What would make this a project if it were not somebody else's.
    pub fn untrusted_files(&self) -> Vec<UntrustedPath> {
        let ancestors = self.current.iter().flat_map(|current| current.ancestors());
        let all = ancestors.flat_map(|at| PROJECT_NAMES.map(|name| (at.join(name), name)));
        let strange = all.filter_map(|(path, name)| match check(&path, purpose_of(name)) {
            Err(error @ UntrustedPath::Stranger { .. }) => Some(error),
            Ok(_) | Err(_) => None,
        });
        strange.collect()
    }

    /// The nearest directory that has one of these in it.
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

/// Whether there is something of the user's own, of the right kind.
fn is_there(path: &Path, purpose: Purpose) -> Result<bool, UntrustedPath> {
    let is_state = purpose == Purpose::State;
    match check(path, purpose) {
        Ok(found) => Ok(found.is_dir() == is_state),
        Err(UntrustedPath::Stranger { .. } | UntrustedPath::Unexpected { .. }) => Ok(false),
        // Told when it is used: much runs without state.
        Err(UntrustedPath::Link { .. } | UntrustedPath::Writable { .. }) if is_state => Ok(true),
        Err(error @ (UntrustedPath::Link { .. } | UntrustedPath::Writable { .. })) => Err(error),
        // Not there, or behind something that is closed or no directory.
        Err(UntrustedPath::Unreadable { .. }) => Ok(false),
        // Of the place of state, which is not looked at here.
        Err(
            error @ (UntrustedPath::PlaceOfStranger { .. } | UntrustedPath::PlaceWritable { .. }),
        ) => Err(error),
    }
}

#[cfg(test)]
mod tests;
