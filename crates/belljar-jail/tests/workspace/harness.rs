//! Workspaces to test with: a lower directory, an upper one, and a real overlay of the two.
#![expect(clippy::disallowed_methods, reason = "the oracles are programs: diff, find, cp")]

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::{self, File},
    io::{BufRead, BufReader, Write as _},
    os::{
        fd::AsFd,
        unix::{ffi::OsStrExt, fs::PermissionsExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use belljar_jail::workspace::{
    ChangeCaps, ChangeKind, ChangeList, CommitOptions, CommitReport, PathChange, changes, commit,
};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, mknodat};

const CHILD: &str = "BELLJAR_WORKSPACE_CHILD";

/// A lower directory, and an upper one that is empty at first.
pub(crate) struct Workspace {
    pub(crate) root: Root,
    pub(crate) lower: PathBuf,
    pub(crate) upper: PathBuf,
}

pub(crate) enum Root {
    Own(tempfile::TempDir),
    Existing(PathBuf),
}

impl Root {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Own(root) => root.path(),
            Self::Existing(root) => root,
        }
    }
}

impl Workspace {
    pub(crate) fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// One in memory, for tests with more files than a disk is fast enough for.
    pub(crate) fn in_memory() -> Self {
        Self::at(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn at(root: tempfile::TempDir) -> Self {
        let (lower, upper) = (root.path().join("lower"), root.path().join("upper"));
        fs::create_dir(&lower).unwrap();
        fs::create_dir(&upper).unwrap();
        Self { root: Root::Own(root), lower, upper }
    }

    /// One that another process has made and will remove.
    pub(crate) fn existing(root: &Path) -> Self {
        let (lower, upper) = (root.join("lower"), root.join("upper"));
        Self { root: Root::Existing(root.to_owned()), lower, upper }
    }

    pub(crate) fn changes(&self) -> ChangeList {
        self.changes_within(&ChangeCaps::default())
    }

    pub(crate) fn changes_within(&self, caps: &ChangeCaps) -> ChangeList {
        let (upper, lower) = (File::open(&self.upper).unwrap(), File::open(&self.lower).unwrap());
        changes(upper.as_fd(), Some(lower.as_fd()), caps).unwrap()
    }

    pub(crate) fn commit(&self, changes: &ChangeList) -> CommitReport {
        self.commit_with(changes, &CommitOptions::default())
    }

    pub(crate) fn commit_with(
        &self,
        changes: &ChangeList,
        options: &CommitOptions,
    ) -> CommitReport {
        let (upper, lower) = (File::open(&self.upper).unwrap(), File::open(&self.lower).unwrap());
        commit(changes, upper.as_fd(), lower.as_fd(), options)
    }

    /// Lays an overlay over the lower directory, and remembers what that was before.
    pub(crate) fn mount(&self) -> Overlay {
        let before = self.root.path().join("before");
        copy(&self.lower, &before);
        let script = r#"cd "$1" && mkdir -p work merged &&
            mount -t overlay overlay merged \
                -o userxattr,lowerdir=lower,upperdir=upper,workdir=work &&
            echo mounted && read end"#;
        let mut child = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
            .arg(self.root.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n", "no overlay in a user namespace");
        let inside = format!("/proc/{}/root{}", child.id(), self.root.path().display());
        let merged = Path::new(&inside).join("merged");
        Overlay { child, merged, before, after: self.root.path().join("after") }
    }
}

impl Drop for Workspace {
    /// Lets the owner in everywhere, so that all of it can be removed.
    fn drop(&mut self) {
        if let Root::Own(root) = &self.root {
            let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(root.path()).status();
        }
    }
}

/// A mounted overlay, reached through the process that holds it.
pub(crate) struct Overlay {
    child: Child,
    pub(crate) merged: PathBuf,
    before: PathBuf,
    after: PathBuf,
}

impl Overlay {
    /// Ends the overlay, and keeps copies of what it showed before and in the end.
    pub(crate) fn end(mut self) -> Snapshots {
        copy(&self.merged, &self.after);
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        self.child.wait().unwrap();
        Snapshots { before: self.before.clone(), after: self.after.clone() }
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The files of a workspace before and after a run.
pub(crate) struct Snapshots {
    pub(crate) before: PathBuf,
    pub(crate) after: PathBuf,
}

impl Snapshots {
    /// The expected change list, by `diff` for content and `find` for existence and modes.
    pub(crate) fn expected(&self) -> BTreeSet<(PathBuf, ChangeKind)> {
        let mut expected: BTreeSet<_> = self.by_diff().into_iter().collect();
        let (before, after) = (listing(&self.before), listing(&self.after));
        for (path, mode) in after {
            match before.get(&path) {
                None => expected.insert((path, ChangeKind::Added)),
                Some(other) if *other != mode => expected.insert((path, ChangeKind::Modified)),
                Some(_) => false,
            };
        }
        expected
    }

    fn by_diff(&self) -> Vec<(PathBuf, ChangeKind)> {
        let diff = Command::new("diff")
            .args(["-rq", "--no-dereference"])
            .args([&self.before, &self.after])
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        let text = String::from_utf8(diff.stdout).unwrap();
        text.lines().map(|line| self.parse(line)).collect()
    }

    fn parse(&self, line: &str) -> (PathBuf, ChangeKind) {
        if let Some(rest) = line.strip_prefix("Only in ") {
            let (directory, name) = rest.split_once(": ").unwrap();
            let path = Path::new(directory).join(name);
            return match path.strip_prefix(&self.before) {
                Ok(path) => (path.to_owned(), ChangeKind::Deleted),
                Err(_) => (path.strip_prefix(&self.after).unwrap().to_owned(), ChangeKind::Added),
            };
        }
        let words =
            line.split(' ').find_map(|word| Path::new(word).strip_prefix(&self.before).ok());
        (words.expect(line).to_owned(), ChangeKind::Modified)
    }
}

/// A change list in the same form.
pub(crate) fn said(changes: &ChangeList) -> BTreeSet<(PathBuf, ChangeKind)> {
    let said: BTreeSet<_> = changes.list.iter().map(|it| (it.path.clone(), it.kind)).collect();
    assert_eq!(said.len(), changes.list.len(), "a path is listed twice");
    assert!(changes.list.is_sorted_by(|one, other| one.path < other.path), "not sorted");
    said
}

/// The entry for a path.
pub(crate) fn find(changes: &ChangeList, path: impl AsRef<Path>) -> &PathChange {
    let path = path.as_ref();
    let found = changes.list.iter().find(|change| change.path == path);
    found.unwrap_or_else(|| panic!("{} is not in {changes:?}", path.display()))
}

/// Fails unless two trees are the same, by `diff` and by the modes of what they hold.
pub(crate) fn assert_same(one: &Path, other: &Path) {
    let mut diff = Command::new("diff");
    let diff = diff_output(diff.args(["-r", "--no-dereference"]).args([one, other]));
    assert_eq!(diff, "", "{} and {} differ", one.display(), other.display());
    assert_eq!(listing(one), listing(other));
}

fn diff_output(command: &mut Command) -> String {
    let output = command.env("LC_ALL", "C").output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The entries of a tree: kind, and mode where it means something.
pub(crate) fn listing(root: &Path) -> BTreeMap<PathBuf, String> {
    let format = ["-mindepth", "1", "-printf", r"%P\0%y %m\0"];
    let output = Command::new("find").arg(root).args(format).output().unwrap();
    assert!(output.status.success(), "find: {}", String::from_utf8_lossy(&output.stderr));
    let fields: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    let pairs = fields.chunks_exact(2);
    pairs.map(|pair| (path(pair[0]), String::from_utf8_lossy(pair[1]).into_owned())).collect()
}

pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// A copy of a tree with all that an owner can copy.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success(), "cp of {}", from.display());
}

/// Removes a tree too deep for the standard library, which takes a descriptor a level.
pub(crate) fn remove_tree(root: &Path) {
    assert!(Command::new("rm").arg("-rf").arg(root).status().unwrap().success());
}

/// Writes a file and whatever directories lead there.
pub(crate) fn put(root: &Path, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The form of a whiteout: a character device 0:0, which any user may make.
pub(crate) fn put_whiteout(path: &Path) {
    mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}

pub(crate) fn put_attribute(path: &Path, name: &str, value: &[u8]) {
    lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The entries that were not committed, as text.
pub(crate) fn skipped(report: &CommitReport) -> Vec<String> {
    report.skipped.iter().map(ToString::to_string).collect()
}

/// Runs one test of this program again in a process of its own, with a word before it and the
/// variable `BELLJAR_WORKSPACE_CHILD` set.
pub(crate) fn run_again(prefix: &[&str], test: &str) {
    let status = Command::new(prefix[0])
        .args(&prefix[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed under {prefix:?}");
}

pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}
