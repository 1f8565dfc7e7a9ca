//! Paths of a workspace that belong to the host's own side: no commit changes them, and they are
//! never handed back.

use std::path::{Path, PathBuf};

/// Some paths relative to a workspace, whether or not anything is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept(Vec<PathBuf>);

impl Kept {
    /// These paths, which are of plain names only.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(paths.into_iter().collect())
    }

    /// Whether a path is one of them, or beneath one.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.0.iter().any(|kept| path.starts_with(kept))
    }

    /// Whether one of them is beneath a path.
    pub(super) fn is_led_to_by(&self, path: &Path) -> bool {
        self.0.iter().any(|kept| kept != path && kept.starts_with(path))
    }
}
