//! Protected paths: the host's own state and configuration, out of every guest's reach.
//!
//! A path can be reached under many names: through links, through bind mounts, through a mount
//! beneath what is granted. So all links on the way to a protected path are resolved one by one, and
//! what is granted is compared by name, by identity, and by where it is in its file system.

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

/// Protected paths as the file system has them now.
#[derive(Debug, Default)]
pub(crate) struct Protected {
    names: Vec<Name>,
    mounts: Mounts,
}

/// How a tree that is to be granted relates to them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// Not at all.
    Apart,
    /// It is one of them, or lies in it.
    Inside(PathBuf),
    /// Some of them lie in it.
    Around(Inner),
}

/// What of a tree is protected, relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Inner {
    /// What a guest must not see, none of it beneath another.
    pub(crate) covered: Vec<PathBuf>,
    /// What a commit must not change: those, and by what other names they are reached.
    pub(crate) kept: Vec<PathBuf>,
}

/// One of the names of a protected path.
#[derive(Debug)]
struct Name {
    path: PathBuf,
    /// Whether no link leads there. There is such a name of every path.
    is_direct: bool,
    /// Of every directory that leads there and of what is there, from the root on; `None` for what is
    /// not there or cannot be looked at.
    identities: Vec<Option<(u64, u64)>>,
}

impl Protected {
    /// Looks at the file system.
    pub(crate) fn look(paths: &[PathBuf]) -> io::Result<Self> {
        if paths.is_empty() {
            return Ok(Self::default());
        }
        let mounts = Mounts::parse(&fs::read("/proc/self/mountinfo")?);
        let mut names = Vec::new();
        for path in paths {
            names.extend(names_of(&std::path::absolute(path)?)?);
        }
        Ok(Self { names, mounts })
    }

    /// How a tree relates to them, given its path, which no link is in, and its device and inode.
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
        if inner.is_empty() { Relation::Apart } else { Relation::Around(Inner::of(inner)) }
    }
}

impl Inner {
    /// `paths` is sorted, so that whatever has others beneath it comes before them.
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

/// A path by all the names it has on the way through links: as it is spelt, with the first link
/// resolved, and so on. Whoever changes what any of them leads through, changes where it leads.
fn names_of(path: &Path) -> io::Result<Vec<Name>> {
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
            // What the host cannot see, it cannot say where it leads.
            Err(error) => return Err(error),
        };
        let Some(target) = target else {
            here = at;
            continue;
        };
        links += 1;
        // The last part may be a link and its name still be a direct one: that of the link.
        names.push(Name::new(at.join(todo.iter().collect::<PathBuf>()), todo.is_empty()));
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            todo.push_front(part);
        }
    }
    names.push(Name::new(here, true));
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

impl Name {
    fn new(path: PathBuf, is_direct: bool) -> Self {
        let identities = ancestors(&path).into_iter().map(identity_of).collect();
        Self { path, is_direct, identities }
    }
}

/// A path and all that leads there, from the root on.
fn ancestors(path: &Path) -> Vec<&Path> {
    let mut ancestors: Vec<_> = path.ancestors().collect();
    ancestors.reverse();
    ancestors
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// What is mounted where, as the kernel tells.
#[derive(Debug, Default)]
struct Mounts(Vec<Mount>);

/// One of them: what is seen at `at` is `place`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    at: PathBuf,
    place: Place,
}

/// A path in a file system, wherever that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    device: Vec<u8>,
    path: PathBuf,
}

impl Mounts {
    fn parse(table: &[u8]) -> Self {
        let mount = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ').skip(2);
            let (device, root, at) = (fields.next()?, fields.next()?, fields.next()?);
            let place = Place { device: device.to_owned(), path: unescaped(root) };
            Some(Mount { at: unescaped(at), place })
        };
        Self(table.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// Where a path is. Of mounts on the same place the last one is seen.
    fn place(&self, path: &Path) -> Option<Place> {
        let around = self.0.iter().filter(|mount| path.starts_with(&mount.at));
        let mount = around.max_by_key(|mount| mount.at.components().count())?;
        let path = mount.place.path.join(path.strip_prefix(&mount.at).ok()?);
        Some(Place { path, ..mount.place.clone() })
    }

    /// What a tree consists of: the tree itself, at the empty path, and all mounts beneath it.
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

impl Place {
    fn lies_in(&self, other: &Self) -> bool {
        self.device == other.device && self.path.starts_with(&other.path)
    }

    fn rest_in(&self, other: &Self) -> Option<&Path> {
        self.path.strip_prefix(&other.path).ok().filter(|_| self.device == other.device)
    }
}

/// A field of the kernel's, in which blanks and some others are octal.
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
