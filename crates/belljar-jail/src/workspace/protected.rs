//! Paths of a workspace that belong to the host's own side: no commit changes them, and they are
//! never handed back. And names that a commit brings only if it is told to.

use std::{
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What the host makes of a name, wherever it is in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameUse {
    /// It is the host's own.
    Reserved,
    /// Some tool of the host would execute what is there, or beneath. The name as it is listed.
    Executed(&'static str),
}

/// Tells what the host makes of a name.
type NameRules = Arc<dyn Fn(&OsStr) -> Option<NameUse> + Send + Sync>;

/// Answers whether a directory is of some kind, given a way to ask whether it has an entry of a name.
type DirectoryTest = fn(&dyn Fn(&str) -> bool) -> bool;

/// A directory without a telling name that is executed all the same.
#[derive(Debug, Clone, Copy)]
pub struct ExecutedDirectory {
    /// What it is listed as.
    pub name: &'static str,
    /// Whether a directory is one, told whether it has an entry of some name.
    pub is: DirectoryTest,
}

/// Some paths relative to a workspace, whether or not anything is there, and some names wherever
/// they are in it.
#[derive(Clone, Default)]
pub struct ProtectedPaths {
    paths: Vec<PathBuf>,
    names: Option<NameRules>,
    directory: Option<ExecutedDirectory>,
}

impl ProtectedPaths {
    /// These paths, which are of plain names only.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { paths: paths.into_iter().collect(), ..Self::default() }
    }

    /// And whatever has one of the names that these rules know, in any directory.
    #[must_use]
    pub fn with_names(
        mut self,
        rules: impl Fn(&OsStr) -> Option<NameUse> + Send + Sync + 'static,
    ) -> Self {
        self.names = Some(Arc::new(rules));
        self
    }

    /// And whatever is in a directory of this kind.
    #[must_use]
    pub fn with_directory(mut self, directory: ExecutedDirectory) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Whether a path is one of them, or beneath one. What would be executed is not.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.paths.iter().any(|own| path.starts_with(own))
            || path.iter().any(|part| self.obeyed(part) == Some(NameUse::Reserved))
    }

    /// Whether one of the paths is beneath a path.
    pub(super) fn is_led_to_by(&self, path: &Path) -> bool {
        self.paths.iter().any(|own| own != path && own.starts_with(path))
    }

    /// What a name is listed as, if the host would execute it.
    pub(super) fn executed(&self, name: &OsStr) -> Option<&'static str> {
        match self.obeyed(name) {
            Some(NameUse::Executed(listed)) => Some(listed),
            Some(NameUse::Reserved) | None => None,
        }
    }

    /// The kind of directory that is executed whatever its name is.
    pub(super) fn executed_directory(&self) -> Option<ExecutedDirectory> {
        self.directory
    }

    fn obeyed(&self, name: &OsStr) -> Option<NameUse> {
        self.names.as_ref().and_then(|rules| rules(name))
    }
}

impl fmt::Debug for ProtectedPaths {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProtectedPaths").field("paths", &self.paths).finish_non_exhaustive()
    }
}
