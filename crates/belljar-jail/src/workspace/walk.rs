//! The change list: an upper directory compared with the original it was laid over.
//!
//! It lists what `diff -r` would list of the original and of what the cell saw at its end, with
//! every entry of added directories, and compares permissions too. One directory of each tree is
//! open at a time.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, Stat, fstat, readlinkat};

use super::{
    attributes::{Mark, mark},
    beneath::{RootedTree, check_plain, look, names},
    change::{
        ChangeCaps, ChangeKind, ChangeList, EntryKind, InodeSnapshot, OriginalEntry, PathChange,
        WithheldReason, size_of,
    },
    compare::same_content,
    links::LinkChecker,
    remove::remember,
    upper::Upper,
};

/// The most bytes of all paths together: 50,000 entries must not become gigabytes of text.
const MAX_PATH_BYTES: usize = 32 << 20;
/// The permissions that are ever committed.
const PERMISSIONS: u32 = 0o777;

/// Lists the changes of a run to its workspace.
///
/// `upper` is the directory its writes went to, `lower` the original; without one (a workspace of
/// its own, in memory) everything is added. The cell must be dead. An error means that the upper
/// directory itself cannot be read; what is wrong with single entries is said there.
///
/// A file that was copied up but is the same byte for byte, with the same permissions, is no
/// change. Owners, times, other attributes and the workspace's own permissions are not compared.
/// A removed directory is listed once; so is one that a file or link has replaced.
pub fn changes(
    upper: BorrowedFd<'_>,
    lower: Option<BorrowedFd<'_>>,
    caps: &ChangeCaps,
) -> io::Result<ChangeList> {
    let upper = Upper::new(upper);
    let lower = lower.map(RootedTree::new);
    let mut walk = ChangeWalk {
        upper: &upper,
        lower: lower.as_ref(),
        view: LinkChecker::new(Some(&upper), lower.as_ref()),
        left: caps.clone(),
        path_bytes: MAX_PATH_BYTES,
        pending: Vec::new(),
        changes: ChangeList::default(),
    };
    walk.run()?;
    let mut changes = walk.changes;
    // A path that was listed and then found unreadable is there twice; the reason to withhold it wins.
    let key = |change: &PathChange| (change.path.clone(), change.withheld.is_none());
    changes.list.sort_by_cached_key(key);
    changes.list.dedup_by(|later, earlier| later.path == earlier.path);
    Ok(changes)
}

struct ChangeWalk<'a> {
    upper: &'a Upper<'a>,
    lower: Option<&'a RootedTree<'a>>,
    view: LinkChecker<'a>,
    left: ChangeCaps,
    path_bytes: usize,
    pending: Vec<PendingDirectory>,
    changes: ChangeList,
}

/// A directory of the upper tree that is still to be walked.
struct PendingDirectory {
    path: PathBuf,
    mode: u32,
    before: Option<Stat>,
    shows: LowerLayer,
    executed: ExecutedName,
}

/// The listed name of an entry that the host would execute.
type ExecutedName = Option<&'static str>;

/// Whether the original's entries show through a directory of the upper tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LowerLayer {
    Visible,
    Hidden,
}

/// The directory whose entries are being compared.
struct CurrentDirectory {
    path: PathBuf,
    upper: OwnedFd,
    lower: Option<OwnedFd>,
    shows: LowerLayer,
    /// Holds for all that is in it.
    executed: ExecutedName,
}

/// An entry of it, and the original's entry at the same path.
struct UpperEntry<'a> {
    here: &'a CurrentDirectory,
    name: &'a OsStr,
    path: PathBuf,
    stat: Stat,
    mode: u32,
    before: Option<Stat>,
    executed: ExecutedName,
}

impl ChangeWalk<'_> {
    fn run(&mut self) -> io::Result<()> {
        let root = self.upper.listing(Path::new(""))?;
        let lower = self.lower.map(|lower| lower.directory(Path::new(""))).transpose()?;
        let (shows, executed) = (LowerLayer::Visible, None);
        self.look_into(CurrentDirectory {
            path: PathBuf::new(),
            upper: root,
            lower,
            shows,
            executed,
        })?;
        while let Some(pending) = self.pending.pop() {
            let path = pending.path.clone();
            let done = match self.enter(pending) {
                Ok(Some(here)) => self.look_into(here),
                other => other.map(drop),
            };
            if let Err(error) = done {
                self.list_unreadable(path, &error);
            }
        }
        Ok(())
    }

    /// Opens a directory and lists it itself, if it differs. `None` if nothing beneath it counts.
    fn enter(&mut self, pending: PendingDirectory) -> io::Result<Option<CurrentDirectory>> {
        let PendingDirectory { path, mode, before, mut shows, executed } = pending;
        let upper = self.upper.listing(&path)?;
        let was_directory = before.is_some_and(|it| EntryKind::of(&it) == EntryKind::Directory);
        let mut change = PathChange::new(path.clone(), EntryKind::Directory, 0, mode);
        match self.mark(&upper) {
            Ok(Mark::None) => {}
            Ok(Mark::Opaque) => shows = LowerLayer::Hidden,
            Err(withheld) => {
                change.kind = if before.is_some() { ChangeKind::Modified } else { change.kind };
                change.withheld = Some(withheld);
                self.list(change, executed);
                return Ok(None);
            }
        }
        let lower = self.lower.filter(|_| was_directory);
        let lower = lower.map(|lower| lower.directory(&path)).transpose()?;
        match before {
            Some(before) if was_directory => {
                let mut differs = mode ^ (before.st_mode & 0o7777);
                if self.left.protected.is_led_to_by(&path) {
                    // The layer that hides protected paths has no other bits to show.
                    differs &= PERMISSIONS;
                }
                change.kind = ChangeKind::Modified;
                change.withheld =
                    (differs & PERMISSIONS == 0).then_some(WithheldReason::SpecialBits);
                change.before =
                    Some(OriginalEntry { seen: InodeSnapshot::of(&before), contents: Vec::new() });
                if differs != 0 {
                    self.list(change, executed);
                }
            }
            before => {
                self.remember(&mut change, before.as_ref());
                let withheld = change.withheld.is_some();
                self.list(change, executed);
                if withheld {
                    return Ok(None);
                }
            }
        }
        Ok(Some(CurrentDirectory { path, upper, lower, shows, executed }))
    }

    fn look_into(&mut self, mut here: CurrentDirectory) -> io::Result<()> {
        let Some(names) = names(&here.upper, self.left.entries)? else {
            self.cut();
            return Ok(());
        };
        self.left.entries -= names.len();
        here.executed = here.executed.or_else(|| self.executed_by_contents(&here, &names));
        let here = &here;
        if let (LowerLayer::Hidden, Some(_)) = (here.shows, &here.lower) {
            self.list_hidden(here, &names);
        }
        for name in &names {
            let path = here.path.join(name);
            let Some(left) = self.path_bytes.checked_sub(path.as_os_str().len()) else {
                self.cut();
                return Ok(());
            };
            self.path_bytes = left;
            if let Err(error) = self.look_at(here, name, &path) {
                self.list_unreadable(path, &error);
            }
        }
        Ok(())
    }

    fn look_at(&mut self, here: &CurrentDirectory, name: &OsStr, path: &Path) -> io::Result<()> {
        let Some(stat) = look(&here.upper, name)? else { return Ok(()) };
        let before = match &here.lower {
            Some(lower) => look(lower, name)?,
            None => None,
        };
        let mode = self.upper.mode(path, &stat);
        let path = path.to_owned();
        if check_plain(&path).is_err() {
            let mut change = PathChange::new(path, EntryKind::of(&stat), 0, mode);
            change.withheld = Some(WithheldReason::TooDeep);
            self.changes.list.push(change);
            return Ok(());
        }
        let executed = here.executed.or_else(|| self.left.protected.executed(name));
        if self.lower.is_some() && is_whiteout(&stat) {
            self.list_deleted(path, before.as_ref(), executed);
            return Ok(());
        }
        if self.is_protected(&path, &stat, before.as_ref()) {
            let bytes = if EntryKind::of(&stat) == EntryKind::File { size_of(&stat) } else { 0 };
            let mut change = PathChange::new(path, EntryKind::of(&stat), bytes, mode);
            change.kind = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
            change.withheld = Some(WithheldReason::Protected);
            self.changes.list.push(change);
            return Ok(());
        }
        let entry = UpperEntry { here, name, path, stat, mode, before, executed };
        match EntryKind::of(&stat) {
            EntryKind::File => self.look_at_file(entry)?,
            EntryKind::Link => self.look_at_link(entry)?,
            EntryKind::Other => self.look_at_other(entry),
            EntryKind::Directory => {
                let UpperEntry { path, mode, before, executed, .. } = entry;
                self.pending.push(PendingDirectory {
                    path,
                    mode,
                    before,
                    shows: here.shows,
                    executed,
                });
            }
        }
        Ok(())
    }

    /// Whether a commit must leave this alone, whatever the original holds: the answer must not
    /// reveal whether a guest guessed a protected content. A directory above a protected path must
    /// stay one, or else the path would lead to a file of the guest.
    fn is_protected(&self, path: &Path, now: &Stat, before: Option<&Stat>) -> bool {
        let is_directory = |stat: &Stat| EntryKind::of(stat) == EntryKind::Directory;
        let leads_on = is_directory(now) && before.is_none_or(is_directory);
        self.left.protected.holds(path) || (self.left.protected.is_led_to_by(path) && !leads_on)
    }

    fn look_at_file(&mut self, entry: UpperEntry<'_>) -> io::Result<()> {
        let UpperEntry { path, stat, mode, before, executed, .. } = entry;
        let handle = self.upper.file(&path)?;
        let marked = match self.mark(&handle) {
            Ok(Mark::None) => None,
            Ok(Mark::Opaque) => Some(WithheldReason::OverlayAttribute("opaque".to_owned())),
            Err(withheld) => Some(withheld),
        };
        let mut change = PathChange::new(path, EntryKind::File, size_of(&stat), mode);
        if let Some(before) = before
            && marked.is_none()
            && self.same_file(&change.path, handle, &stat, &before)
        {
            let differs = mode ^ (before.st_mode & 0o7777);
            if differs == 0 {
                return Ok(());
            }
            change.withheld = (differs & PERMISSIONS == 0).then_some(WithheldReason::SpecialBits);
        }
        change.withheld = marked.or(change.withheld);
        self.remember(&mut change, before.as_ref());
        self.list(change, executed);
        Ok(())
    }

    /// Whether a file has the content of its original. When in doubt it has not.
    fn same_file(&mut self, path: &Path, handle: OwnedFd, stat: &Stat, before: &Stat) -> bool {
        if EntryKind::of(before) != EntryKind::File || before.st_size != stat.st_size {
            return false;
        }
        let Some(original) = self.lower.and_then(|lower| lower.file(path).ok()) else {
            return false;
        };
        if !fstat(&original).is_ok_and(|now| InodeSnapshot::of(before).matches(&now)) {
            return false;
        }
        let budget = &mut self.left.compared_bytes;
        matches!(same_content(handle, original, size_of(stat), budget), Ok(Some(true)))
    }

    fn look_at_link(&mut self, entry: UpperEntry<'_>) -> io::Result<()> {
        let UpperEntry { here, name, path, stat, mode, before, executed } = entry;
        let target = readlinkat(&here.upper, name, Vec::new())?;
        if let (Some(before), Some(lower)) = (&before, &here.lower)
            && EntryKind::of(before) == EntryKind::Link
            && readlinkat(lower, name, Vec::new()).is_ok_and(|original| original == target)
        {
            return Ok(());
        }
        let mut change = PathChange::new(path, EntryKind::Link, size_of(&stat), mode);
        let target: OsString = std::os::unix::ffi::OsStringExt::from_vec(target.into_bytes());
        change.withheld = self.view.check(&change.path, &target).err();
        self.remember(&mut change, before.as_ref());
        self.list(change, executed);
        Ok(())
    }

    fn look_at_other(&mut self, entry: UpperEntry<'_>) {
        let UpperEntry { path, stat, mode, before, .. } = entry;
        let same = |before: Stat| before.st_mode == stat.st_mode && before.st_rdev == stat.st_rdev;
        if before.is_some_and(same) {
            return;
        }
        let mut change = PathChange::new(path, EntryKind::Other, 0, mode);
        change.kind = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        change.withheld = Some(WithheldReason::Special);
        self.changes.list.push(change);
    }

    /// Lists the entries of the original that an opaque directory hides and does not replace.
    fn list_hidden(&mut self, here: &CurrentDirectory, kept: &[OsString]) {
        let (Some(lower), Some(directory)) = (self.lower, &here.lower) else { return };
        let originals = lower.listing(&here.path).and_then(|it| names(it, self.left.removed));
        let originals = match originals {
            Ok(Some(originals)) => originals,
            Ok(None) => return self.cut(),
            Err(error) => return self.list_unreadable(here.path.clone(), &error),
        };
        let kept: HashSet<&OsString> = kept.iter().collect();
        for name in originals.iter().filter(|name| !kept.contains(name)) {
            let path = here.path.join(name);
            if self.left.protected.holds(&path) {
                // The cell never saw it.
                continue;
            }
            let executed = here.executed.or_else(|| self.left.protected.executed(name));
            match look(directory, name) {
                Ok(before) => self.list_deleted(path, before.as_ref(), executed),
                Err(error) => self.list_unreadable(path, &error),
            }
        }
    }

    fn list_deleted(&mut self, path: PathBuf, before: Option<&Stat>, executed: ExecutedName) {
        let Some(stat) = before else { return };
        let mut change = PathChange::new(path, EntryKind::of(stat), 0, 0);
        if self.left.protected.holds(&change.path) || self.left.protected.is_led_to_by(&change.path)
        {
            change.withheld = Some(WithheldReason::Protected);
        } else {
            self.remember(&mut change, before);
        }
        change.kind = ChangeKind::Deleted;
        self.list(change, executed);
    }

    fn list(&mut self, mut change: PathChange, executed: ExecutedName) {
        change.withheld = change.withheld.or(executed.map(WithheldReason::Executed));
        self.changes.list.push(change);
    }

    /// The listed name of a directory that the host would execute for its entries, as they are
    /// after the changes.
    fn executed_by_contents(&self, here: &CurrentDirectory, names: &[OsString]) -> ExecutedName {
        let kind = self.left.protected.executed_directory()?;
        let lower = here.lower.as_ref().filter(|_| here.shows == LowerLayer::Visible);
        let is_there = |entry: &str| {
            names.iter().any(|name| name.eq_ignore_ascii_case(entry))
                || lower.is_some_and(|lower| matches!(look(lower, OsStr::new(entry)), Ok(Some(_))))
        };
        (kind.is)(&is_there).then_some(kind.name)
    }

    fn list_unreadable(&mut self, path: PathBuf, error: &io::Error) {
        let mut change = PathChange::new(path, EntryKind::Other, 0, 0);
        change.kind = ChangeKind::Modified;
        change.withheld = Some(WithheldReason::Unreadable(error.to_string()));
        self.changes.list.push(change);
    }

    /// Records the original's entry at this path, which a commit would have to replace.
    fn remember(&mut self, change: &mut PathChange, before: Option<&Stat>) {
        let (Some(stat), Some(lower)) = (before, self.lower) else { return };
        change.kind = ChangeKind::Modified;
        let (began, budget) = (self.left.began, &mut self.left.removed);
        match remember(lower, &change.path, stat, began, budget) {
            Ok(before) => {
                // Removing the directory would remove names that are only changed on request.
                let mut gone = before.contents.iter().filter_map(|(path, _)| path.file_name());
                let executed = gone.find_map(|name| self.left.protected.executed(name));
                change.withheld = change.withheld.take().or(executed.map(WithheldReason::Executed));
                change.before = Some(before);
            }
            Err(withheld) => change.withheld = change.withheld.take().or(Some(withheld)),
        }
    }

    /// Without an overlay, attributes that look like one's mean nothing.
    fn mark(&self, handle: impl AsFd) -> Result<Mark, WithheldReason> {
        if self.lower.is_some() { mark(handle) } else { Ok(Mark::None) }
    }

    fn cut(&mut self) {
        self.changes.cut = true;
        self.pending.clear();
    }
}

impl PathChange {
    fn new(path: PathBuf, entry: EntryKind, bytes: u64, mode: u32) -> Self {
        let kind = ChangeKind::Added;
        Self { path, kind, entry, bytes, withheld: None, mode, before: None }
    }
}

/// How an overlay says that an entry of the original is gone: a character device 0:0.
fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}
