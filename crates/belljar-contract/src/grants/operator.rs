//! The operator's permission for clients to ask for grants, as a file or flags state it.
//!
//! Invariant: [`GrantTable::narrowed_by`] never adds to what there is.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Component, Path, PathBuf},
};

use super::{Grant, GrantKind, contained};
use crate::operator_phrase;

/// A key under `[grants]`: a grant with an operator's key, or the workspaces, which are no grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantKey {
    /// Values of a grant.
    Of(Grant),
    /// Directories that clients may work on, copy-on-write.
    Workspace,
}

impl From<Grant> for GrantKey {
    fn from(grant: Grant) -> Self {
        Self::Of(grant)
    }
}

impl GrantKey {
    /// Every key there is; those of paths come first.
    pub fn all() -> Vec<Self> {
        let ruled = || Grant::ALL.iter().filter(|grant| grant.operator().is_some());
        let (paths, others): (Vec<Grant>, Vec<Grant>) =
            ruled().partition(|grant| grant.kind() == GrantKind::Paths);
        let paths = paths.into_iter().map(Self::Of).chain([Self::Workspace]);
        paths.chain(others.into_iter().map(Self::Of)).collect()
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Of(grant) => grant.key(),
            Self::Workspace => "workspace",
        }
    }

    /// The kind of its values.
    pub const fn kind(self) -> GrantKind {
        match self {
            Self::Of(grant) => grant.kind(),
            Self::Workspace => GrantKind::Paths,
        }
    }

    /// Whether every value is allowed if the operator states none.
    pub fn is_open(self) -> bool {
        match self {
            Self::Of(grant) => grant.operator().is_some_and(|key| key.is_open),
            Self::Workspace => false,
        }
    }

    /// Its flag of `belljar serve`.
    fn flag(self) -> &'static str {
        match self {
            Self::Of(grant) => grant.flag_name(),
            Self::Workspace => self.name(),
        }
    }
}

/// The values that clients may ask for. A key without a list is not stated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantTable(BTreeMap<GrantKey, Vec<String>>);

impl GrantTable {
    /// The values that are stated for a key.
    pub fn stated(&self, key: impl Into<GrantKey>) -> Option<&[String]> {
        self.0.get(&key.into()).map(Vec::as_slice)
    }

    /// States the values of a key.
    pub fn state(&mut self, key: impl Into<GrantKey>, values: Vec<String>) {
        self.0.insert(key.into(), values);
    }

    /// The values that either of two tables of the operator allows.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (key, more) in other.0 {
            self.0.entry(key).or_default().extend(more);
        }
        self
    }

    /// Makes every path absolute.
    pub fn resolve(&mut self, here: &Path) {
        let lists = self.0.iter_mut().filter(|(key, _)| key.kind() == GrantKind::Paths);
        for path in lists.flat_map(|(_, list)| list) {
            *path = resolved_path(here, Path::new(path.as_str())).to_string_lossy().into_owned();
        }
    }

    /// The values that both this table and that of a project's file allow, and the project's values beyond this
    /// one. Paths are absolute.
    #[must_use]
    pub fn narrowed_by(mut self, mut project: Self, file: &Path) -> (Self, Vec<IgnoredGrant>) {
        let mut ignored = Vec::new();
        for key in GrantKey::all() {
            let Some(narrower) = project.0.remove(&key) else { continue };
            let wider = self.0.remove(&key);
            if key.is_open() && wider.is_none() {
                self.state(key, narrower);
                continue;
            }
            let wider = wider.unwrap_or_default();
            let beyond = narrower.iter().filter(|value| !is_within(key, value, &wider));
            let report = |value: &String| {
                let (file, value) = (file.to_owned(), value.clone());
                IgnoredGrant { file, key, value }
            };
            ignored.extend(beyond.map(report));
            self.state(key, both(key, &wider, &narrower));
        }
        (self, ignored)
    }
}

/// A value in a project's file that the operator does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredGrant {
    file: PathBuf,
    key: GrantKey,
    value: String,
}

impl fmt::Display for IgnoredGrant {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, key, value } = self;
        let (flag, key) = (key.flag(), key.name());
        write!(
            to,
            "{}: grants.{key}: {value} does not count: a project cannot allow more than its user; allow \
             it with {}",
            file.display(),
            operator_phrase(flag, ("grants", key), value),
        )
    }
}

/// The values that both lists allow.
fn both(key: GrantKey, wider: &[String], narrower: &[String]) -> Vec<String> {
    let of_operator = wider.iter().filter(|value| is_within(key, value, narrower));
    if key.kind() != GrantKind::Paths {
        return of_operator.cloned().collect();
    }
    let of_project = narrower.iter().filter(|value| is_within(key, value, wider));
    let mut all: Vec<String> = of_operator.chain(of_project).cloned().collect();
    all.sort();
    all.dedup();
    all
}

fn is_within(key: GrantKey, value: &str, list: &[String]) -> bool {
    if key.kind() == GrantKind::Paths {
        let roots: Vec<PathBuf> = list.iter().map(PathBuf::from).collect();
        return contained(value, &roots).is_some();
    }
    let name = |value: &str| match key.kind() == GrantKind::Variables {
        true => value.split('=').next().unwrap_or_default().to_owned(),
        false => value.to_owned(),
    };
    list.iter().any(|other| name(other) == name(value))
}

/// An absolute path without `.` and `..`, resolved as text.
pub fn resolved_path(here: &Path, path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in here.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => resolved.push(part),
        }
    }
    resolved
}
