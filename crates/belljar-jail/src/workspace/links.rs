//! Whether a symbolic link leads out of the workspace, decided without following any link.
//!
//! A link is committed only if it stays inside both as it is written and as it resolves through the
//! other links of the tree. The host itself does not depend on the answer; it protects programs
//! that follow the link later.

use std::{
    cell::Cell,
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{FileType, fstat, readlinkat},
    io::Errno,
};

use super::{
    beneath::{MAX_DEPTH, RootedTree},
    change::WithheldReason,
    upper::Upper,
};

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;
/// Components looked up for all links of a workspace together.
const MAX_LOOKUPS: u32 = 200_000;

/// Checks links against the one or two trees that make up the workspace.
///
/// Entries of the lower tree that the upper one hides still count: that can only withhold a link
/// that could have been committed.
#[derive(Debug)]
pub(super) struct LinkChecker<'a> {
    upper: Option<&'a Upper<'a>>,
    lower: Option<&'a RootedTree<'a>>,
    lookups: Cell<u32>,
}

enum LinkLookup {
    Link(OsString),
    Other,
}

impl<'a> LinkChecker<'a> {
    pub(super) fn new(upper: Option<&'a Upper<'a>>, lower: Option<&'a RootedTree<'a>>) -> Self {
        Self { upper, lower, lookups: Cell::new(MAX_LOOKUPS) }
    }

    /// Whether a link at `path` with this target stays inside.
    pub(super) fn check(&self, path: &Path, target: &OsStr) -> Result<(), WithheldReason> {
        let parent = path.parent().unwrap_or(Path::new(""));
        stays_inside_as_written(parent, Path::new(target))?;
        let mut here: Vec<OsString> = parent.iter().map(OsStr::to_owned).collect();
        let mut todo = VecDeque::new();
        push_front(&mut todo, Path::new(target))?;
        let mut links = 0;
        while let Some(name) = todo.pop_front() {
            if name == ".." {
                here.pop().ok_or(WithheldReason::LinkLeadsOutside)?;
                continue;
            }
            here.push(name);
            if here.len() > MAX_DEPTH {
                return Err(WithheldReason::LinkTooTangled);
            }
            if let LinkLookup::Link(target) = self.look(&here)? {
                here.pop();
                links += 1;
                if links > MAX_LINKS {
                    // A circle leads nowhere, for the kernel gives up as well.
                    return Ok(());
                }
                push_front(&mut todo, Path::new(&target))?;
            }
        }
        Ok(())
    }

    fn look(&self, path: &[OsString]) -> Result<LinkLookup, WithheldReason> {
        let left = self.lookups.get().checked_sub(1).ok_or(WithheldReason::LinkTooTangled)?;
        self.lookups.set(left);
        let path: PathBuf = path.iter().collect();
        let upper = self.upper.and_then(|upper| upper.entry(&path).ok());
        let lower = || self.lower.and_then(|lower| lower.entry(&path).ok());
        let Some(entry) = upper.or_else(lower) else { return Ok(LinkLookup::Other) };
        let unreadable = |error: Errno| WithheldReason::Unreadable(error.to_string());
        let stat = fstat(&entry).map_err(unreadable)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Ok(LinkLookup::Other);
        }
        let target = readlinkat(&entry, "", Vec::new()).map_err(unreadable)?;
        Ok(LinkLookup::Link(OsString::from_vec(target.into_bytes())))
    }
}

fn stays_inside_as_written(parent: &Path, target: &Path) -> Result<(), WithheldReason> {
    let mut depth = parent.components().count();
    for component in target.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir => {
                depth = depth.checked_sub(1).ok_or(WithheldReason::LinkLeadsOutside)?;
            }
            Component::RootDir | Component::Prefix(_) => {
                return Err(WithheldReason::LinkLeadsOutside);
            }
        }
    }
    Ok(())
}

/// Puts the components of a link's target before those that remain to be resolved.
fn push_front(todo: &mut VecDeque<OsString>, target: &Path) -> Result<(), WithheldReason> {
    if target.as_os_str().as_bytes().starts_with(b"/") {
        return Err(WithheldReason::LinkLeadsOutside);
    }
    for component in target.components().rev() {
        match component {
            Component::Normal(_) | Component::ParentDir => {
                todo.push_front(component.as_os_str().to_owned());
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(())
}
