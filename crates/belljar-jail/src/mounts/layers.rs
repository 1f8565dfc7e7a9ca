//! Layers of a session's files, on the cell's scratch file system, where no guest sees them.
//!
//! A layer is written to as the upper directory of one branch's overlay. Once frozen it is only
//! read, as a lower directory of whatever branched off there, until no branch is left that needs
//! it.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, chmodat, mkdirat, openat, renameat_with,
        statat, unlinkat,
    },
    io::Errno,
};

const LAYERS: &str = "/tmp/layers";
const PRIVATE: Mode = Mode::from_raw_mode(0o700);
/// Names that are read at once when a directory is emptied.
const AT_ONCE: usize = 1024;
const LIST: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One layer, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Layer(u64);

impl Layer {
    /// The directory with its files.
    pub(super) fn files(self) -> String {
        format!("{LAYERS}/{}/files", self.0)
    }

    /// The directory in which the overlay prepares changes to it.
    pub(super) fn staging(self) -> String {
        format!("{LAYERS}/{}/staging", self.0)
    }

    /// Whether it has no files. A layer that cannot be read counts as one with files.
    pub(super) fn is_empty(self) -> bool {
        let entries = openat(CWD, self.files(), LIST, Mode::empty()).and_then(Dir::new);
        entries.is_ok_and(|mut entries| !entries.any(|entry| !entry.is_ok_and(is_itself_or_parent)))
    }

    fn directory(self) -> String {
        format!("{LAYERS}/{}", self.0)
    }
}

fn is_itself_or_parent(entry: rustix::fs::DirEntry) -> bool {
    [&b"."[..], b".."].contains(&entry.file_name().to_bytes())
}

/// All layers of a session.
#[derive(Debug)]
pub(super) struct Layers {
    next: u64,
    all: BTreeSet<Layer>,
    /// Directories that were moved before they were removed, so far; it gives them new names.
    moved: u64,
}

impl Layers {
    pub(super) fn new() -> io::Result<Self> {
        mkdirat(CWD, LAYERS, PRIVATE)?;
        Ok(Self { next: 0, all: BTreeSet::new(), moved: 0 })
    }

    /// Adds a layer. Its directory shows in place of those below it, so it gets the mode of the
    /// topmost of them.
    pub(super) fn add(&mut self, over: Option<Layer>) -> io::Result<Layer> {
        let mode = match over {
            Some(layer) => {
                let found = statat(CWD, layer.files(), AtFlags::SYMLINK_NOFOLLOW)?;
                Mode::from_raw_mode(found.st_mode & 0o1777)
            }
            None => PRIVATE,
        };
        let layer = Layer(self.next);
        self.next += 1;
        mkdirat(CWD, layer.directory(), PRIVATE)?;
        self.all.insert(layer);
        mkdirat(CWD, layer.staging(), PRIVATE)?;
        mkdirat(CWD, layer.files(), PRIVATE)?;
        chmodat(CWD, layer.files(), mode, AtFlags::empty())?;
        Ok(layer)
    }

    /// Removes all layers but these, up to `room` entries; returns whether more are left. What
    /// cannot be removed now is tried again next time.
    pub(super) fn keep_only(&mut self, needed: &BTreeSet<Layer>, mut room: usize) -> bool {
        let mut is_left = false;
        let moved = &mut self.moved;
        self.all.retain(|layer| {
            if needed.contains(layer) {
                return true;
            }
            let removed = remove_some(&layer.directory(), &mut room, moved);
            is_left |= matches!(removed, Ok(false));
            !matches!(removed, Ok(true))
        });
        is_left
    }
}

/// Removes a directory and everything in it, however deep, or as much of it as there is room for;
/// whether it is gone. What is below its directories is moved up before they go, so that no path
/// gets longer and no more than two directories are open.
fn remove_some(path: &str, room: &mut usize, moved: &mut u64) -> io::Result<bool> {
    let top = match openat(CWD, path, LIST, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(true),
        other => other?,
    };
    loop {
        let names = names(&top, AT_ONCE)?;
        if names.is_empty() {
            unlinkat(CWD, path, AtFlags::REMOVEDIR)?;
            return Ok(true);
        }
        for name in names {
            if !take_one(room) {
                return Ok(false);
            }
            if unlinkat(&top, &name, AtFlags::empty()).is_ok() {
                continue;
            }
            let directory = openat(&top, &name, LIST, Mode::empty())?;
            if !empty(&directory, &top, room, moved)? {
                return Ok(false);
            }
            unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
        }
    }
}

/// Removes the files of a directory, and moves its directories to another; whether nothing is left.
fn empty(
    directory: &OwnedFd,
    top: &OwnedFd,
    room: &mut usize,
    moved: &mut u64,
) -> io::Result<bool> {
    loop {
        let names = names(directory, AT_ONCE)?;
        if names.is_empty() {
            return Ok(true);
        }
        for name in names {
            if !take_one(room) {
                return Ok(false);
            }
            if unlinkat(directory, &name, AtFlags::empty()).is_err() {
                move_up(directory, &name, top, moved)?;
            }
        }
    }
}

fn take_one(room: &mut usize) -> bool {
    let is_there = *room > 0;
    *room = room.saturating_sub(1);
    is_there
}

fn move_up(
    from: impl std::os::fd::AsFd,
    name: &OsString,
    to: impl std::os::fd::AsFd,
    moved: &mut u64,
) -> io::Result<()> {
    loop {
        *moved += 1;
        let fresh = format!("{moved}");
        match renameat_with(&from, name, &to, fresh, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            other => return Ok(other?),
        }
    }
}

/// The names in a directory, at most so many.
fn names(directory: impl std::os::fd::AsFd, most: usize) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::new(openat(directory, ".", LIST, Mode::empty())?)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
        if names.len() >= most {
            break;
        }
    }
    Ok(names)
}
