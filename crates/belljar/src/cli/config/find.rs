//! Where a project and its configuration are looked for. Only the binary looks; libraries are told.
//!
//! Files count only if they belong to whoever runs this, or to root: what they name is started, and
//! root in somebody's directory, or anybody in a shared one such as `/tmp`, would start it for them
//! (as git found out with CVE-2022-24765).

use std::{
    env, fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The configuration of a project, or of a user.
pub(crate) const FILE_NAME: &str = "belljar.toml";
/// Where a project names its servers for all kinds of clients.
pub(crate) const SERVERS_NAME: &str = ".mcp.json";

/// The directory of a project that Belljar keeps its state in.
pub(crate) const STATE_NAME: &str = ".belljar";

/// The places a file may be in, as this process was started.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) current: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) config_home: Option<PathBuf>,
}

impl Places {
    /// The places of this process.
    pub(crate) fn of_this_process() -> Self {
        // The base-directory specification says that a relative path here is to be ignored.
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        Self {
            current: env::current_dir().ok(),
            home: absolute("HOME"),
            config_home: absolute("XDG_CONFIG_HOME"),
        }
    }

    /// Where files of workflows are laid out for their code: apart from any project, so that code
    /// which sees them sees nothing of the host's.
    pub(crate) fn scratch(&self) -> PathBuf {
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
    pub(super) fn project_file(&self) -> Option<PathBuf> {
        self.nearest(&[FILE_NAME]).map(|root| root.join(FILE_NAME))
    }

    /// The nearest list of servers as other clients write it.
    pub(super) fn servers_file(&self) -> Option<PathBuf> {
        self.nearest(&[SERVERS_NAME]).map(|root| root.join(SERVERS_NAME))
    }

    /// All files that configure what runs here.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        [self.user_file(), self.project_file(), self.servers_file()].into_iter().flatten().collect()
    }

    /// The project: the nearest directory with anything of Belljar's in it, else the current one.
    pub(crate) fn root(&self) -> Option<PathBuf> {
        self.nearest(&[FILE_NAME, SERVERS_NAME, STATE_NAME]).or_else(|| self.current.clone())
    }

    /// The nearest directory that has one of these in it.
    fn nearest(&self, names: &[&str]) -> Option<PathBuf> {
        let current = self.current.as_deref()?;
        let owners = [rustix::process::geteuid().as_raw(), 0];
        let has_one =
            |directory: &Path| names.iter().any(|name| is_there(directory, name, &owners));
        current.ancestors().find(|directory| has_one(directory)).map(Path::to_owned)
    }
}

fn is_there(directory: &Path, name: &str, owners: &[u32]) -> bool {
    let path = directory.join(name);
    let (Ok(found), Ok(link)) = (fs::metadata(&path), fs::symlink_metadata(&path)) else {
        return false;
    };
    let is_kind = if name == STATE_NAME { found.is_dir() } else { found.is_file() };
    // Who makes a link chooses the file, and need not own it.
    let is_ours = owners.contains(&found.uid()) && owners.contains(&link.uid());
    if is_kind && !is_ours {
        tracing::warn!(path = %path.display(), "passed over: it belongs to somebody else");
    }
    is_kind && is_ours
}

#[cfg(test)]
mod tests;
