//! Paths of a workspace that belong to the host's own side: no commit changes them, and they are
//! never handed back.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Some paths relative to a workspace, whether or not anything is there, and some names wherever
/// they are in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    paths: Vec<PathBuf>,
    names: Vec<OsString>,
}

impl Kept {
    /// These paths, which are of plain names only.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { paths: paths.into_iter().collect(), names: Vec::new() }
    }

    /// And whatever has one of these names, in any directory.
    #[must_use]
    pub fn with_names(mut self, names: impl IntoIterator<Item = OsString>) -> Self {
        self.names.extend(names);
        self
    }

    /// Whether a path is one of them, or beneath one.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.paths.iter().any(|kept| path.starts_with(kept))
            || path.iter().any(|part| self.names.iter().any(|name| name == part))
    }

    /// Whether one of the paths is beneath a path.
    pub(super) fn is_led_to_by(&self, path: &Path) -> bool {
        self.paths.iter().any(|kept| kept != path && kept.starts_with(path))
    }
}
