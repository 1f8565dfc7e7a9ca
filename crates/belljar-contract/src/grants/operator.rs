//! The operator's permission for clients to ask for grants, as a file or flags state it.
//!
//! Invariant: [`GrantTable::narrowed_by`] never adds to what there is.

use std::{
    fmt, mem,
    path::{Component, Path, PathBuf},
};

use super::contained;
use crate::operator_phrase;

macro_rules! grant_lists {
    ($($(#[doc = $doc:literal])* $field:ident,)*) => {
        /// The values that clients may ask for; `None` if none are stated.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct GrantTable {
            $($(#[doc = $doc])* pub $field: Option<Vec<String>>,)*
        }

        impl GrantTable {
            /// The keys of the table, each with its list.
            pub fn columns(&mut self) -> Vec<(&'static str, &mut Option<Vec<String>>)> {
                vec![$((stringify!($field), &mut self.$field),)*]
            }
        }
    };
}

grant_lists! {
    /// Paths that clients may ask to read.
    read,
    /// Paths that clients may ask to change.
    write,
    /// Directories that clients may work on, copy-on-write.
    workspace,
    /// Variables of the operator, `NAME` or `NAME=VALUE`.
    env,
    /// Python modules; if not stated, clients may ask for any.
    modules,
    /// Commands beyond the default set.
    commands,
}

/// The key whose values are variables.
const VARIABLES: &str = "env";
/// The key that allows everything if it is not stated.
const MODULES: &str = "modules";

impl GrantTable {
    /// The keys whose values are paths.
    pub const PATHS: [&str; 3] = ["read", "write", "workspace"];

    /// The values that either of two tables of the operator allows.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        for ((_, stated), (_, more)) in self.columns().into_iter().zip(other.columns()) {
            if let Some(more) = more.take() {
                stated.get_or_insert_default().extend(more);
            }
        }
        self
    }

    /// Makes every path absolute.
    pub fn resolve(&mut self, here: &Path) {
        let lists = self.columns().into_iter().filter(|(key, _)| Self::PATHS.contains(key));
        for path in lists.flat_map(|(_, list)| list.iter_mut().flatten()) {
            *path = resolved_path(here, Path::new(path.as_str())).to_string_lossy().into_owned();
        }
    }

    /// The values that both this table and that of a project's file allow, and the project's values beyond this
    /// one. Paths are absolute.
    #[must_use]
    pub fn narrowed_by(mut self, mut project: Self, file: &Path) -> (Self, Vec<IgnoredGrant>) {
        let mut ignored = Vec::new();
        for ((key, stated), (_, narrower)) in self.columns().into_iter().zip(project.columns()) {
            let Some(narrower) = narrower.take() else { continue };
            let wider = mem::take(stated);
            if key == MODULES && wider.is_none() {
                *stated = Some(narrower);
                continue;
            }
            let wider = wider.unwrap_or_default();
            let beyond = narrower.iter().filter(|value| !is_within(key, value, &wider));
            let report = |value: &String| {
                let (file, value) = (file.to_owned(), value.clone());
                IgnoredGrant { file, key, value }
            };
            ignored.extend(beyond.map(report));
            *stated = Some(both(key, &wider, &narrower));
        }
        (self, ignored)
    }
}

/// A value in a project's file that the operator does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredGrant {
    file: PathBuf,
    key: &'static str,
    value: String,
}

impl fmt::Display for IgnoredGrant {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, key, value } = self;
        let flag = match *key {
            "modules" => "module",
            "commands" => "command",
            other => other,
        };
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
fn both(key: &str, wider: &[String], narrower: &[String]) -> Vec<String> {
    let of_operator = wider.iter().filter(|value| is_within(key, value, narrower));
    if !GrantTable::PATHS.contains(&key) {
        return of_operator.cloned().collect();
    }
    let of_project = narrower.iter().filter(|value| is_within(key, value, wider));
    let mut all: Vec<String> = of_operator.chain(of_project).cloned().collect();
    all.sort();
    all.dedup();
    all
}

fn is_within(key: &str, value: &str, list: &[String]) -> bool {
    if GrantTable::PATHS.contains(&key) {
        let roots: Vec<PathBuf> = list.iter().map(PathBuf::from).collect();
        return contained(value, &roots).is_some();
    }
    let name = |value: &str| match key == VARIABLES {
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
