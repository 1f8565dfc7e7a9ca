//! Where configuration files are looked for. Only the binary looks; libraries are told.

use std::{
    env,
    path::{Path, PathBuf},
};

const FILE_NAME: &str = "belljar.toml";

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

    /// The user's own file, if there is one.
    pub(super) fn user_file(&self) -> Option<PathBuf> {
        let directory = match (&self.config_home, &self.home) {
            (Some(config_home), _) => config_home.clone(),
            (None, Some(home)) => home.join(".config"),
            (None, None) => return None,
        };
        existing(&directory.join("belljar"))
    }

    /// The nearest file in the current directory or above it.
    pub(super) fn project_file(&self) -> Option<PathBuf> {
        self.current.as_deref()?.ancestors().find_map(existing)
    }
}

fn existing(directory: &Path) -> Option<PathBuf> {
    let path = directory.join(FILE_NAME);
    path.is_file().then_some(path)
}
