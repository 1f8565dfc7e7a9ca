//! Paths of a workspace that belong to the host: no commit changes them, and they are never handed
//! back. And names that the host would execute, which a commit brings only on request.

use std::{
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// How the host treats files of a name, wherever they are in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameUse {
    /// The name is reserved for the host's own files.
    Reserved,
    /// A tool of the host would execute such a file, or files beneath it. Holds the name as it is
    /// listed.
    Executed(&'static str),
}

/// Decides how the host treats files of a name.
type NameRules = Arc<dyn Fn(&OsStr) -> Option<NameUse> + Send + Sync>;

/// Decides whether a directory is of some kind, given a test whether it has an entry of some name.
type DirectoryTest = fn(&dyn Fn(&str) -> bool) -> bool;

/// A kind of directory that the host executes whatever its name is, such as a bare git repository.
#[derive(Debug, Clone, Copy)]
pub struct ExecutedDirectory {
    /// The name it is listed and released under.
    pub name: &'static str,
    /// Decides by its entries whether a directory is one.
    pub is: DirectoryTest,
}

/// Paths relative to a workspace, whether or not anything is there, and names anywhere in it.
#[derive(Clone, Default)]
pub struct ProtectedPaths {
    paths: Vec<PathBuf>,
    names: Option<NameRules>,
    directory: Option<ExecutedDirectory>,
}

impl ProtectedPaths {
    /// Protects these paths, which are of plain names only.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { paths: paths.into_iter().collect(), ..Self::default() }
    }

    /// Adds rules for names, which hold in any directory.
    #[must_use]
    pub fn with_names(
        mut self,
        rules: impl Fn(&OsStr) -> Option<NameUse> + Send + Sync + 'static,
    ) -> Self {
        self.names = Some(Arc::new(rules));
        self
    }

    /// Adds everything in directories of this kind.
    #[must_use]
    pub fn with_directory(mut self, directory: ExecutedDirectory) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Whether a path is protected, or beneath a protected one. Executed names do not count.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.paths.iter().any(|own| path.starts_with(own))
            || path.iter().any(|part| self.obeyed(part) == Some(NameUse::Reserved))
    }

    /// Whether a protected path is beneath this one.
    pub(super) fn is_led_to_by(&self, path: &Path) -> bool {
        self.paths.iter().any(|own| own != path && own.starts_with(path))
    }

    /// The listed name, if the host would execute files of this name.
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
