//! Takes back what a run has made under names that the host obeys or would execute.
//!
//! The tree is a guest's work. So nothing of it ends the look: not its depth (directories are opened
//! one below the other, never by a path), not its size, not a directory that is closed (the guest acts
//! as its owner here, and so does the host). What cannot be looked at or moved is a fault, and the rest
//! is looked at all the same.

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

use super::{Identity, WrittenTree, is_directory, look};
use crate::files::is_reserved;

/// What is put behind a name that a run may not make, with a number nobody can know before.
const WITHHELD: &str = "withheld-by-belljar";
/// Names tried, each with another number.
const MAX_TRIES: u32 = 16;
/// What most file systems allow for a name.
const MAX_NAME: usize = 255;
/// What is told of one tree; the rest is counted.
const MAX_TOLD: usize = 256;
/// Bytes of a path that are told.
const MAX_SHOWN: usize = 2048;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What became of what a run has made.
#[derive(Debug, Default)]
pub(crate) struct TakenBack {
    /// What was moved aside.
    pub(crate) notes: Told,
    /// What could not be moved, or not looked at.
    pub(crate) faults: Told,
}

/// Messages, and how many more there were.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) list: Vec<String>,
    left_out: usize,
}

impl Told {
    fn add(&mut self, message: impl FnOnce() -> String) {
        if self.list.len() < MAX_TOLD {
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

impl TakenBack {
    /// Something that concerns no path in particular.
    pub(crate) fn fault(&mut self, message: String) {
        self.faults.add(|| message);
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.notes.append(other.notes);
        self.faults.append(other.faults);
    }

    /// The error of a run whose work could not be taken back. It is told also of one that failed by
    /// itself: a guest could fail to have it overlooked.
    pub(crate) fn error(&self, own: Option<&RunError>) -> Option<RunError> {
        let first = self.faults.list.first()?;
        let more = self.faults.list.len() - 1 + self.faults.left_out;
        let mut message = format!("what the run wrote could not all be taken back: {first}");
        if more > 0 {
            let _ = write!(message, " (and {more} more)");
        }
        let mut hint = "look at this path before you use the directory".to_owned();
        if let Some(own) = own {
            let _ = write!(hint, "; the run itself failed too: {}", own.message);
        }
        Some(RunError::new(ErrorCode::WorkspaceFailed, message).with_hint(hint))
    }

    /// All of it, for the logs.
    pub(crate) fn into_lines(self) -> impl Iterator<Item = String> {
        self.faults.into_lines().chain(self.notes.into_lines())
    }
}

impl WrittenTree {
    /// Moves aside what has appeared since under names that the host obeys or would execute; tells of
    /// each. Whatever could make more of it should be dead; where it is not, the look ends at `until`.
    pub(crate) fn take_back(&self, reserved: &[OsString], until: Option<Instant>) -> TakenBack {
        let mut taken = TakenBack::default();
        let path = &self.asked.path;
        let opened = match open(None, path.as_os_str()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return taken,
            Err(errno) => {
                taken.fault(format!("{}: could not look into it: {errno}", path.display()));
                return taken;
            }
        };
        let again = openat(&opened.directory, ".", DIRECTORY, Mode::empty());
        match again.and_then(|current| Ok((fstat(&current)?, current))) {
            Ok((found, current)) => {
                let Opened { directory: root, restore } = opened;
                let top = Level::new(path.as_os_str(), &found, restore);
                let levels = vec![top];
                let mut walk = Walk { tree: self, reserved, root, current, levels, taken };
                walk.all(until);
                walk.taken
            }
            Err(errno) => {
                taken.fault(format!("{}: could not look into it: {errno}", path.display()));
                taken
            }
        }
    }

    /// Whether this is what was there before, where it was, and as it was.
    fn is_known(&self, at: impl Iterator<Item = OsString>, found: &Stat) -> bool {
        let identity = Identity::of(found);
        let mut known = self.known.iter().filter(|(_, known)| *known == identity).peekable();
        if known.peek().is_none() {
            return false;
        }
        let at: PathBuf = at.collect();
        known.any(|(path, _)| *path == at)
    }
}

/// A directory on the way to the one that is looked at.
struct Level {
    name: OsString,
    place: (u64, u64),
    /// Its directories that were not looked into yet.
    inner: Vec<OsString>,
    /// What its mode was, if it had to be changed.
    restore: Option<Mode>,
}

impl Level {
    fn new(name: &OsStr, found: &Stat, restore: Option<Mode>) -> Self {
        let place = (found.st_dev, found.st_ino);
        Self { name: name.to_owned(), place, inner: Vec::new(), restore }
    }
}

/// A look through a tree. Two directories are open, however deep it is.
struct Walk<'a> {
    tree: &'a WrittenTree,
    reserved: &'a [OsString],
    root: OwnedFd,
    /// The directory of the last level.
    current: OwnedFd,
    /// From the root down.
    levels: Vec<Level>,
    taken: TakenBack,
}

impl Walk<'_> {
    fn all(&mut self, until: Option<Instant>) {
        self.look_around();
        while let Some(level) = self.levels.last_mut() {
            if until.is_some_and(|until| Instant::now() > until) {
                self.fault(None, "this was not looked through in time, for it was still changed");
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
                self.levels.push(Level::new(name, &found, opened.restore));
                self.current = opened.directory;
                self.look_around();
            }
            Err(Errno::NOENT) => {}
            // Another user's, which no guest gets into either.
            Err(Errno::ACCESS | Errno::PERM) if !can_pass(&self.current, name) => {}
            Err(errno) => self.fault(Some(name), format!("could not look into it: {errno}")),
        }
    }

    /// Goes back to the directory around this one.
    fn leave(&mut self) {
        let Some(left) = self.levels.pop() else { return };
        let around = match self.levels.last() {
            Some(around) => {
                let up = openat(&self.current, "..", DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
                up.ok().filter(|up| is_at(up, around.place))
            }
            None => None,
        };
        if let Some(mode) = left.restore {
            // It has nothing in it any more for which it would have to stay as it is.
            let _ = fchmod(&self.current, mode);
        }
        match around {
            Some(around) => self.current = around,
            None if self.levels.is_empty() => {}
            None => self.find_way_back(),
        }
    }

    /// Goes down again to where it was: somebody has moved the directory it was in.
    fn find_way_back(&mut self) {
        let from_the_top = || openat(&self.root, ".", DIRECTORY, Mode::empty());
        let mut at = match from_the_top() {
            Ok(at) => at,
            Err(errno) => {
                self.fault(None, format!("could not go on: {errno}"));
                return self.levels.clear();
            }
        };
        for depth in 1..self.levels.len() {
            let Some(level) = self.levels.get(depth) else { break };
            match open(Some(&at), &level.name) {
                Ok(next) if is_at(&next.directory, level.place) => at = next.directory,
                Ok(_) | Err(_) => {
                    self.levels.truncate(depth + 1);
                    self.fault(None, "it was moved while it was looked through");
                    self.levels.truncate(depth);
                }
            }
        }
        self.current = at;
    }

    /// Looks at the entries of the current directory, and moves aside what is to be.
    fn look_around(&mut self) {
        let (mut inner, mut listed) = (Vec::new(), Vec::new());
        if let Err(errno) = self.list(&mut inner, &mut listed) {
            self.fault(None, format!("could not look into all of it: {errno}"));
        }
        for name in listed {
            self.judge(&name);
        }
        if let Some(level) = self.levels.last_mut() {
            level.inner = inner;
        }
    }

    /// Names in the current directory: of directories, and of what the host executes or obeys.
    fn list(&self, inner: &mut Vec<OsString>, listed: &mut Vec<OsString>) -> Result<(), Errno> {
        for entry in Dir::read_from(&self.current)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.is_listed(name) {
                listed.push(name.to_owned());
            // What cannot be told is tried.
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

    fn judge(&mut self, name: &OsStr) {
        const WHAT: &str = "the host would execute or obey this, which came during the run";
        let moved = match look(&self.current, name) {
            Ok(None) => return,
            Ok(Some(found)) if self.tree.is_known(self.within(name), &found) => return,
            Ok(Some(_)) => self.move_aside(name),
            Err(errno) => Err(errno),
        };
        match moved {
            Ok(to) => {
                let at = self.shown(Some(name));
                let to = to.display();
                self.taken.notes.add(|| format!("{at}: {WHAT}; it is now called {to}"));
            }
            Err(errno) => {
                self.fault(Some(name), format!("{WHAT}, and it could not be moved aside: {errno}"));
            }
        }
    }

    /// Gives an entry of the current directory another name.
    fn move_aside(&mut self, name: &OsStr) -> Result<OsString, Errno> {
        let mut last = Errno::EXIST;
        for _ in 0..MAX_TRIES {
            let to = self.withheld(name)?;
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

    fn withheld(&self, name: &OsStr) -> Result<OsString, Errno> {
        let mut number = [0; 4];
        getrandom(&mut number, GetRandomFlags::empty())?;
        let mark = format!("{WITHHELD}-{:08x}", u32::from_ne_bytes(number));
        let mut to = name.to_owned();
        to.push(format!(".{mark}"));
        // One that is too long, or that counts as another however it ends, is given up as a whole.
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

    /// The parts of a path that is relative to the tree.
    fn within(&self, name: &OsStr) -> impl Iterator<Item = OsString> {
        let levels = self.levels.iter().skip(1).map(|level| level.name.clone());
        levels.chain([name.to_owned()])
    }

    fn fault(&mut self, name: Option<&OsStr>, what: impl std::fmt::Display) {
        let at = self.shown(name);
        self.taken.faults.add(|| format!("{at}: {what}"));
    }

    /// A path for people: of a very long one its beginning.
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

/// A directory that can be read, and what its mode was if it had to be changed.
struct Opened {
    directory: OwnedFd,
    restore: Option<Mode>,
}

/// Opens a directory, through no link at its end. One of this user that is closed is opened first.
fn open(around: Option<&OwnedFd>, name: &OsStr) -> Result<Opened, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let handle = match around {
        Some(around) => openat(around, name, flags, Mode::empty())?,
        None => openat(CWD, name, flags, Mode::empty())?,
    };
    // This takes the right to read it and the right to pass.
    match openat(&handle, ".", DIRECTORY, Mode::empty()) {
        Ok(directory) => Ok(Opened { directory, restore: None }),
        Err(Errno::ACCESS) => {
            let found = fstat(&handle)?;
            if found.st_uid != geteuid().as_raw() {
                return Err(Errno::ACCESS);
            }
            let mode = Mode::from_raw_mode(found.st_mode);
            // The handle itself, whatever has its name by now.
            chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode | Mode::RWXU)?;
            let directory = openat(&handle, ".", DIRECTORY, Mode::empty())?;
            Ok(Opened { directory, restore: Some(mode) })
        }
        Err(errno) => Err(errno),
    }
}

fn can_pass(around: &OwnedFd, name: &OsStr) -> bool {
    accessat(around, name, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

fn is_at(directory: &OwnedFd, place: (u64, u64)) -> bool {
    fstat(directory).is_ok_and(|found| (found.st_dev, found.st_ino) == place)
}
