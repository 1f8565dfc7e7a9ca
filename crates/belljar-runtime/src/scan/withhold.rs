//! Withholds what a run has made under names that the host obeys or would execute: gives it a harmless name.
//!
//! A guest made the tree, so nothing in it may stop the walk. Not its depth: directories are opened one below
//! the other, never by a long path. Not its size. Not a closed directory: the guest owns it, and so does the
//! host. An entry that cannot be read or renamed is a fault, and the walk goes on with the rest.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::PathBuf,
    time::Instant,
};

use belljar_contract::{ErrorCode, RunError};
use belljar_paths::names;
use rustix::{
    fs::{
        Access, AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, Stat, accessat, chmod, fchmod, fstat,
        openat, renameat_with,
    },
    io::Errno,
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
};

use super::{EntryIdentity, WrittenTree, is_directory, stat_entry};
use crate::files::is_reserved;

/// The suffix of a withheld name, before a random number that the guest cannot foresee.
const WITHHELD: &str = "withheld-by-belljar";
/// New names to try, each with another number.
const MAX_TRIES: u32 = 16;
/// The longest name that most file systems allow.
const MAX_NAME: usize = 255;
/// Messages kept for one tree; further ones are counted.
const MAX_MESSAGES: usize = 256;
/// Bytes of a path that a message shows.
const MAX_SHOWN: usize = 2048;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The names withheld in the trees of a run, and those that could not be.
#[derive(Debug, Default)]
pub(crate) struct WithholdReport {
    /// One message for each entry that got another name.
    pub(crate) notes: MessageList,
    /// One message for each entry that could not be renamed or read.
    pub(crate) faults: MessageList,
}

/// Messages, and how many more were left out.
#[derive(Debug, Default)]
pub(crate) struct MessageList {
    pub(crate) list: Vec<String>,
    left_out: usize,
}

impl MessageList {
    fn add(&mut self, message: impl FnOnce() -> String) {
        if self.list.len() < MAX_MESSAGES {
            self.list.push(message());
        } else {
            self.left_out += 1;
        }
    }

    fn append(&mut self, mut other: Self) {
        self.list.append(&mut other.list);
        self.left_out += other.left_out;
    }

    fn into_lines(self) -> impl Iterator<Item = String> {
        let rest = (self.left_out > 0).then(|| format!("and {} more", self.left_out));
        self.list.into_iter().chain(rest).map(|line| format!("[write] {line}"))
    }
}

impl WithholdReport {
    /// Adds a fault that concerns no path in particular.
    pub(crate) fn fault(&mut self, message: String) {
        self.faults.add(|| message);
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.notes.append(other.notes);
        self.faults.append(other.faults);
    }

    /// The error of a run whose files could not all be withheld. It also replaces the run's own error: a
    /// guest could fail on purpose to hide this one.
    pub(crate) fn error(&self, own: Option<&RunError>) -> Option<RunError> {
        let first = self.faults.list.first()?;
        let more = self.faults.list.len() - 1 + self.faults.left_out;
        let mut message = format!("could not withhold everything the run wrote: {first}");
        if more > 0 {
            let _ = write!(message, " (and {more} more)");
        }
        let mut hint = "inspect this path before you use the directory".to_owned();
        if let Some(own) = own {
            let _ = write!(hint, "; the run itself also failed: {}", own.message);
        }
        Some(RunError::new(ErrorCode::WorkspaceFailed, message).with_hint(hint))
    }

    /// All messages, as lines for the log.
    pub(crate) fn into_lines(self) -> impl Iterator<Item = String> {
        self.faults.into_lines().chain(self.notes.into_lines())
    }
}

impl WrittenTree {
    /// Renames every entry that appeared since the scan under a name that the host obeys or would execute.
    /// The processes that write to the tree should be dead; if they are not, the walk ends at `until`.
    pub(crate) fn withhold(&self, reserved: &[OsString], until: Option<Instant>) -> WithholdReport {
        let mut report = WithholdReport::default();
        let path = &self.request.path;
        let opened = match open(None, path.as_os_str()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return report,
            Err(errno) => {
                report.fault(format!("{}: could not read it: {errno}", path.display()));
                return report;
            }
        };
        let again = openat(&opened.directory, ".", DIRECTORY, Mode::empty());
        match again.and_then(|current| Ok((fstat(&current)?, current))) {
            Ok((found, current)) => {
                let OpenDirectory { directory: root, restore } = opened;
                let top = WalkLevel::new(path.as_os_str(), &found, restore);
                let levels = vec![top];
                let mut walk = TreeWalk { tree: self, reserved, root, current, levels, report };
                walk.run(until);
                walk.report
            }
            Err(errno) => {
                report.fault(format!("{}: could not read it: {errno}", path.display()));
                report
            }
        }
    }

    /// Whether an entry is the same file in the same place as before the run, unchanged.
    fn is_known(&self, at: impl Iterator<Item = OsString>, found: &Stat) -> bool {
        let identity = EntryIdentity::of(found);
        let mut known = self.known.iter().filter(|(_, known)| *known == identity).peekable();
        if known.peek().is_none() {
            return false;
        }
        let at: PathBuf = at.collect();
        known.any(|(path, _)| *path == at)
    }
}

/// A directory on the way to the one being read.
struct WalkLevel {
    name: OsString,
    place: (u64, u64),
    /// Directories in it that are not read yet.
    inner: Vec<OsString>,
    /// Its mode before the walk changed it.
    restore: Option<Mode>,
}

impl WalkLevel {
    fn new(name: &OsStr, found: &Stat, restore: Option<Mode>) -> Self {
        let place = (found.st_dev, found.st_ino);
        Self { name: name.to_owned(), place, inner: Vec::new(), restore }
    }
}

/// A walk through a tree. It has two directories open, however deep the tree is.
struct TreeWalk<'a> {
    tree: &'a WrittenTree,
    reserved: &'a [OsString],
    root: OwnedFd,
    /// The directory of the last level.
    current: OwnedFd,
    /// From the root down.
    levels: Vec<WalkLevel>,
    report: WithholdReport,
}

impl TreeWalk<'_> {
    fn run(&mut self, until: Option<Instant>) {
        self.read_current();
        while let Some(level) = self.levels.last_mut() {
            if until.is_some_and(|until| Instant::now() > until) {
                self.fault(None, "not checked in time, because it was still being written to");
                return;
            }
            match level.inner.pop() {
                Some(name) => self.enter(&name),
                None => self.leave(),
            }
        }
    }

    fn enter(&mut self, name: &OsStr) {
        let opened = open(Some(&self.current), name);
        let found = opened.and_then(|opened| Ok((fstat(&opened.directory)?, opened)));
        match found {
            Ok((found, opened)) => {
                self.levels.push(WalkLevel::new(name, &found, opened.restore));
                self.current = opened.directory;
                self.read_current();
            }
            Err(Errno::NOENT) => {}
            // A directory of another user, which the guest cannot enter either.
            Err(Errno::ACCESS | Errno::PERM) if !can_pass(&self.current, name) => {}
            Err(errno) => self.fault(Some(name), format!("could not read it: {errno}")),
        }
    }

    /// Goes back up to the parent directory.
    fn leave(&mut self) {
        let Some(left) = self.levels.pop() else { return };
        let parent = match self.levels.last() {
            Some(parent) => {
                let up = openat(&self.current, "..", DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
                up.ok().filter(|up| is_at(up, parent.place))
            }
            None => None,
        };
        if let Some(mode) = left.restore {
            // The walk is done with everything in it.
            let _ = fchmod(&self.current, mode);
        }
        match parent {
            Some(parent) => self.current = parent,
            None if self.levels.is_empty() => {}
            None => self.find_way_back(),
        }
    }

    /// Goes down from the root again, because the directory of the walk was moved.
    fn find_way_back(&mut self) {
        let from_the_top = || openat(&self.root, ".", DIRECTORY, Mode::empty());
        let mut at = match from_the_top() {
            Ok(at) => at,
            Err(errno) => {
                self.fault(None, format!("could not read the rest: {errno}"));
                return self.levels.clear();
            }
        };
        for depth in 1..self.levels.len() {
            let Some(level) = self.levels.get(depth) else { break };
            match open(Some(&at), &level.name) {
                Ok(next) if is_at(&next.directory, level.place) => at = next.directory,
                Ok(_) | Err(_) => {
                    self.levels.truncate(depth + 1);
                    self.fault(None, "it was moved while it was being read");
                    self.levels.truncate(depth);
                }
            }
        }
        self.current = at;
    }

    /// Reads the entries of the current directory, and withholds those with a listed name.
    fn read_current(&mut self) {
        let (mut inner, mut listed) = (Vec::new(), Vec::new());
        if let Err(errno) = self.list(&mut inner, &mut listed) {
            self.fault(None, format!("could not read all of it: {errno}"));
        }
        for name in listed {
            self.withhold_entry(&name);
        }
        if let Some(level) = self.levels.last_mut() {
            level.inner = inner;
        }
    }

    /// Lists the current directory: directories to walk, and names that the host executes or obeys.
    fn list(&self, inner: &mut Vec<OsString>, listed: &mut Vec<OsString>) -> Result<(), Errno> {
        for entry in Dir::read_from(&self.current)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.is_listed(name) {
                listed.push(name.to_owned());
            // An entry of unknown type is tried.
            } else if is_directory(&self.current, name, entry.file_type()).unwrap_or(true) {
                inner.push(name.to_owned());
            }
        }
        Ok(())
    }

    fn is_listed(&self, name: &OsStr) -> bool {
        names::executed(name).is_some()
            || self.reserved.iter().any(|reserved| is_reserved(name, reserved))
    }

    fn withhold_entry(&mut self, name: &OsStr) {
        const WHAT: &str = "the run made this, and the host would execute or obey it";
        let renamed = match stat_entry(&self.current, name) {
            Ok(None) => return,
            Ok(Some(found)) if self.tree.is_known(self.within(name), &found) => return,
            Ok(Some(_)) => self.rename(name),
            Err(errno) => Err(errno),
        };
        match renamed {
            Ok(to) => {
                let at = self.shown(Some(name));
                let to = to.display();
                self.report.notes.add(|| format!("{at}: {WHAT}; renamed to {to}"));
            }
            Err(errno) => {
                self.fault(Some(name), format!("{WHAT}, and it could not be renamed: {errno}"));
            }
        }
    }

    /// Gives an entry of the current directory a withheld name.
    fn rename(&mut self, name: &OsStr) -> Result<OsString, Errno> {
        let mut last = Errno::EXIST;
        for _ in 0..MAX_TRIES {
            let to = self.withheld_name(name)?;
            let (at, flags) = (&self.current, RenameFlags::NOREPLACE);
            match renameat_with(at, name, at, &to, flags) {
                Ok(()) => return Ok(to),
                Err(Errno::EXIST) => last = Errno::EXIST,
                Err(Errno::ACCESS) => {
                    self.make_writable()?;
                    last = Errno::ACCESS;
                }
                Err(errno) => return Err(errno),
            }
        }
        Err(last)
    }

    fn withheld_name(&self, name: &OsStr) -> Result<OsString, Errno> {
        let mut number = [0; 4];
        getrandom(&mut number, GetRandomFlags::empty())?;
        let mark = format!("{WITHHELD}-{:08x}", u32::from_ne_bytes(number));
        let mut to = name.to_owned();
        to.push(format!(".{mark}"));
        // If the name gets too long, or is still one the host obeys, nothing of it is kept.
        let is_good = to.len() <= MAX_NAME && !self.is_listed(&to);
        Ok(if is_good { to } else { mark.into() })
    }

    fn make_writable(&mut self) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(fstat(&self.current)?.st_mode);
        fchmod(&self.current, mode | Mode::RWXU)?;
        if let Some(level) = self.levels.last_mut() {
            level.restore.get_or_insert(mode);
        }
        Ok(())
    }

    /// The components of an entry's path, relative to the tree.
    fn within(&self, name: &OsStr) -> impl Iterator<Item = OsString> {
        let levels = self.levels.iter().skip(1).map(|level| level.name.clone());
        levels.chain([name.to_owned()])
    }

    fn fault(&mut self, name: Option<&OsStr>, what: impl std::fmt::Display) {
        let at = self.shown(name);
        self.report.faults.add(|| format!("{at}: {what}"));
    }

    /// A path for messages; only the beginning of a very long one.
    fn shown(&self, name: Option<&OsStr>) -> String {
        let mut path = PathBuf::new();
        for part in self.levels.iter().map(|level| level.name.as_os_str()).chain(name) {
            if path.as_os_str().len() + part.len() > MAX_SHOWN {
                return format!("{}/…", path.display());
            }
            path.push(part);
        }
        path.display().to_string()
    }
}

/// A directory that can be read.
struct OpenDirectory {
    directory: OwnedFd,
    /// Its mode before it was made readable.
    restore: Option<Mode>,
}

/// Opens a directory that is not a link. A closed directory of this user is made readable first.
fn open(parent: Option<&OwnedFd>, name: &OsStr) -> Result<OpenDirectory, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let handle = match parent {
        Some(parent) => openat(parent, name, flags, Mode::empty())?,
        None => openat(CWD, name, flags, Mode::empty())?,
    };
    // This needs the right to read and the right to pass through.
    match openat(&handle, ".", DIRECTORY, Mode::empty()) {
        Ok(directory) => Ok(OpenDirectory { directory, restore: None }),
        Err(Errno::ACCESS) => {
            let found = fstat(&handle)?;
            if found.st_uid != geteuid().as_raw() {
                return Err(Errno::ACCESS);
            }
            let mode = Mode::from_raw_mode(found.st_mode);
            // By its handle: its name may belong to something else by now.
            chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode | Mode::RWXU)?;
            let directory = openat(&handle, ".", DIRECTORY, Mode::empty())?;
            Ok(OpenDirectory { directory, restore: Some(mode) })
        }
        Err(errno) => Err(errno),
    }
}

fn can_pass(parent: &OwnedFd, name: &OsStr) -> bool {
    accessat(parent, name, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

fn is_at(directory: &OwnedFd, place: (u64, u64)) -> bool {
    fstat(directory).is_ok_and(|found| (found.st_dev, found.st_ino) == place)
}
