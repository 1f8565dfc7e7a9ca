//! Protected paths: the host's own state and configuration, which no guest may reach.
//!
//! A path can be reached under many names: through links, bind mounts, or a mount below a granted tree. So
//! all links on the way to a protected path are resolved one by one. A granted tree is then compared with
//! it by name, by device and inode, and by its path in the file system.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::{Component, Path, PathBuf},
};

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;

/// Protected paths, resolved against the file system as it is now.
#[derive(Debug, Default)]
pub(crate) struct ProtectedSet {
    names: Vec<ProtectedName>,
    mounts: MountTable,
}

/// How a tree relates to the protected paths.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// Nothing in the tree is protected.
    Apart,
    /// The tree is this protected path, or lies in it.
    Inside(PathBuf),
    /// Some protected paths lie in the tree.
    Around(ProtectedSubpaths),
}

/// The protected paths in a tree, relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProtectedSubpaths {
    /// Paths a guest must not see. None is below another.
    pub(crate) covered: Vec<PathBuf>,
    /// Paths a commit must not change: the covered ones, and the other names that lead to them.
    pub(crate) kept: Vec<PathBuf>,
}

/// One of the names of a protected path.
#[derive(Debug)]
struct ProtectedName {
    path: PathBuf,
    /// Whether the name leads there without a link. Every path has such a name.
    is_direct: bool,
    /// Device and inode of every component from the root on; `None` if it does not exist or cannot be read.
    identities: Vec<Option<(u64, u64)>>,
}

impl ProtectedSet {
    /// Resolves the paths. Reads the file system.
    pub(crate) fn resolve(paths: &[PathBuf]) -> io::Result<Self> {
        if paths.is_empty() {
            return Ok(Self::default());
        }
        let mounts = MountTable::parse(&fs::read("/proc/self/mountinfo")?);
        let mut names = Vec::new();
        for path in paths {
            names.extend(names_of(&std::path::absolute(path)?)?);
        }
        Ok(Self { names, mounts })
    }

    /// How a tree relates to the protected paths, given its path without links, and its device and inode.
    pub(crate) fn relation(&self, path: &Path, identity: (u64, u64)) -> Relation {
        let mut inner = BTreeSet::new();
        let above: Vec<_> = ancestors(path).into_iter().map(identity_of).collect();
        for name in &self.names {
            let own = name.identities.last().copied().flatten();
            let is_inside = path.starts_with(&name.path)
                || own.is_some_and(|own| own == identity || above.contains(&Some(own)));
            if is_inside {
                return Relation::Inside(name.path.clone());
            }
            inner.extend(name.path.strip_prefix(path).ok().map(|rest| (rest, name.is_direct)));
            for (at, found) in ancestors(&name.path).into_iter().zip(&name.identities) {
                if *found == Some(identity)
                    && let Ok(rest) = name.path.strip_prefix(at)
                {
                    inner.insert((rest, name.is_direct));
                }
            }
        }
        let mut inner: BTreeSet<_> =
            inner.into_iter().map(|(path, is_direct)| (path.to_owned(), is_direct)).collect();
        for part in self.mounts.parts(path) {
            for name in self.names.iter().filter(|name| name.is_direct) {
                let Some(place) = self.mounts.place(&name.path) else { continue };
                if part.place.lies_in(&place) {
                    if part.at.as_os_str().is_empty() {
                        return Relation::Inside(name.path.clone());
                    }
                    inner.insert((part.at.clone(), true));
                } else if let Some(rest) = place.rest_in(&part.place) {
                    inner.insert((part.at.join(rest), true));
                }
            }
        }
        if inner.is_empty() {
            Relation::Apart
        } else {
            Relation::Around(ProtectedSubpaths::of(inner))
        }
    }
}

impl ProtectedSubpaths {
    /// `paths` is sorted, so a directory comes before the paths in it.
    fn of(paths: BTreeSet<(PathBuf, bool)>) -> Self {
        let mut inner = Self::default();
        for (path, is_direct) in paths {
            let is_covered = inner.covered.iter().any(|covered| path.starts_with(covered));
            if is_direct && !is_covered {
                inner.covered.push(path.clone());
            }
            inner.kept.push(path);
        }
        inner.kept.dedup();
        inner
    }
}

/// All names of a path: as it is written, with its first link resolved, with the second, and so on. A change
/// to any component of any of them changes where the path leads.
fn names_of(path: &Path) -> io::Result<Vec<ProtectedName>> {
    let mut names = Vec::new();
    let mut here = PathBuf::from("/");
    let mut todo = parts(path);
    let mut links = 0;
    while let Some(part) = todo.pop_front() {
        if part == ".." {
            here.pop();
            continue;
        }
        let at = here.join(&part);
        let target = match fs::symlink_metadata(&at) {
            Ok(found) if found.is_symlink() && links < MAX_LINKS => Some(fs::read_link(&at)?),
            Ok(_) => None,
            Err(error) if is_missing(&error) => None,
            // The host cannot follow a path that it cannot read.
            Err(error) => return Err(error),
        };
        let Some(target) = target else {
            here = at;
            continue;
        };
        links += 1;
        // If the last component is the link, this is the direct name of the link itself.
        names.push(ProtectedName::new(at.join(todo.iter().collect::<PathBuf>()), todo.is_empty()));
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            todo.push_front(part);
        }
    }
    names.push(ProtectedName::new(here, true));
    Ok(names)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    named.collect()
}

impl ProtectedName {
    fn new(path: PathBuf, is_direct: bool) -> Self {
        let identities = ancestors(&path).into_iter().map(identity_of).collect();
        Self { path, is_direct, identities }
    }
}

/// The path and all directories above it, from the root on.
fn ancestors(path: &Path) -> Vec<&Path> {
    let mut ancestors: Vec<_> = path.ancestors().collect();
    ancestors.reverse();
    ancestors
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// The mounts of this process, from `/proc/self/mountinfo`.
#[derive(Debug, Default)]
struct MountTable(Vec<Mount>);

/// A mount: the path `at` shows `place`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    at: PathBuf,
    place: DevicePath,
}

/// A path in a file system, independent of where that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DevicePath {
    device: Vec<u8>,
    path: PathBuf,
}

impl MountTable {
    fn parse(table: &[u8]) -> Self {
        let mount = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ').skip(2);
            let (device, root, at) = (fields.next()?, fields.next()?, fields.next()?);
            let place = DevicePath { device: device.to_owned(), path: unescaped(root) };
            Some(Mount { at: unescaped(at), place })
        };
        Self(table.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// Where a path is in its file system. The last of several mounts on one path counts.
    fn place(&self, path: &Path) -> Option<DevicePath> {
        let around = self.0.iter().filter(|mount| path.starts_with(&mount.at));
        let mount = around.max_by_key(|mount| mount.at.components().count())?;
        let path = mount.place.path.join(path.strip_prefix(&mount.at).ok()?);
        Some(DevicePath { path, ..mount.place.clone() })
    }

    /// The mounts that make up a tree: the tree itself, at the empty path, and all mounts below it.
    fn parts(&self, path: &Path) -> Vec<Mount> {
        let whole = self.place(path).map(|place| Mount { at: PathBuf::new(), place });
        let beneath = self.0.iter().filter(|mount| mount.at != path);
        let beneath = beneath.filter_map(|mount| {
            let at = mount.at.strip_prefix(path).ok()?.to_owned();
            Some(Mount { at, place: mount.place.clone() })
        });
        whole.into_iter().chain(beneath).collect()
    }
}

impl DevicePath {
    fn lies_in(&self, other: &Self) -> bool {
        self.device == other.device && self.path.starts_with(&other.path)
    }

    fn rest_in(&self, other: &Self) -> Option<&Path> {
        self.path.strip_prefix(&other.path).ok().filter(|_| self.device == other.device)
    }
}

/// Decodes a field of mountinfo, in which the kernel writes blanks and some others in octal.
fn unescaped(field: &[u8]) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::with_capacity(field.len()), field);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'\\'
            && let Some((digits, after)) = after.split_at_checked(3)
            && let Some(value) = octal(digits)
        {
            bytes.push(value);
            rest = after;
        } else {
            bytes.push(byte);
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn octal(digits: &[u8]) -> Option<u8> {
    let digits = OsStr::from_bytes(digits).to_str()?;
    u8::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests;
