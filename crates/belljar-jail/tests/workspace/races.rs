//! The original changes under a commit's hands, thousands of times.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
};

use belljar_jail::workspace::NotCommitted;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{Workspace, listing, put, put_whiteout};

const SWAPS: u32 = 10_000;

/// Swaps a directory for a link and back, whenever it is told to go.
struct Swapper {
    directory: PathBuf,
    link: PathBuf,
    swaps: AtomicU32,
    go: AtomicBool,
    idle: AtomicBool,
    stop: AtomicBool,
}

impl Swapper {
    fn new(directory: PathBuf, link: PathBuf) -> Self {
        let swaps = AtomicU32::new(0);
        let [go, idle, stop] = [false, true, false].map(AtomicBool::new);
        Self { directory, link, swaps, go, idle, stop }
    }

    fn run(&self) {
        while !self.stop.load(Ordering::SeqCst) {
            self.idle.store(false, Ordering::SeqCst);
            while self.go.load(Ordering::SeqCst) {
                self.swap();
                self.swap();
                self.swaps.fetch_add(2, Ordering::SeqCst);
            }
            self.idle.store(true, Ordering::SeqCst);
            thread::yield_now();
        }
    }

    fn swap(&self) {
        renameat_with(CWD, &self.directory, CWD, &self.link, RenameFlags::EXCHANGE).unwrap();
    }

    /// Does something while the swaps go on. Before and after, the directory is in its place.
    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.swaps.load(Ordering::SeqCst);
        self.go.store(true, Ordering::SeqCst);
        while self.swaps.load(Ordering::SeqCst) == before {
            std::hint::spin_loop();
        }
        let done = work();
        self.go.store(false, Ordering::SeqCst);
        while !self.idle.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        done
    }
}

/// Ends the swaps when dropped.
struct Stop<'a>(&'a Swapper);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.go.store(false, Ordering::SeqCst);
        self.0.stop.store(true, Ordering::SeqCst);
    }
}

/// All there is to know about a tree.
fn state(root: &Path) -> BTreeMap<PathBuf, (String, Vec<u8>)> {
    let read = |path: &Path| fs::read(root.join(path)).unwrap_or_default();
    let entries = listing(root).into_iter();
    entries.map(|(path, kind)| (path.clone(), (kind, read(&path)))).collect()
}

/// The run's changes in `d`, and the same further down: an entry of each kind.
fn change_everything(workspace: &Workspace) {
    for directory in ["d", "d/inner"].map(|path| workspace.upper.join(path)) {
        put(&directory, "modified", "from the guest");
        put(&directory, "added", "from the guest");
        put(&directory, "sub/added", "from the guest");
        symlink("added", directory.join("link")).unwrap();
        put_whiteout(&directory.join("deleted"));
        put_whiteout(&directory.join("tree"));
    }
}

/// The content of `d` and of the victim before each commit.
fn furnish(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).unwrap();
    }
    for directory in [directory.to_owned(), directory.join("inner")] {
        put(&directory, "modified", "original");
        put(&directory, "deleted", "original");
        put(&directory, "tree/file", "original");
    }
}

struct Race {
    workspace: Workspace,
    victim: PathBuf,
    swapper: Swapper,
}

impl Race {
    fn new() -> Self {
        let workspace = Workspace::new();
        let victim = workspace.root.path().join("victim");
        for directory in [&victim, &workspace.lower.join("d")] {
            fs::create_dir(directory).unwrap();
            furnish(directory);
        }
        let link = workspace.lower.join("swapped");
        symlink(&victim, &link).unwrap();
        change_everything(&workspace);
        let swapper = Swapper::new(workspace.lower.join("d"), link);
        Self { workspace, victim, swapper }
    }

    /// Runs `commit` over and over while the swaps go on, until there were enough of them.
    fn run(
        &self,
        mut commit: impl FnMut(&dyn Fn(&mut dyn FnMut())),
        mut is_over: impl FnMut() -> bool,
    ) {
        let original = File::open(self.workspace.lower.join("d")).unwrap();
        let original = PathBuf::from(format!("/proc/self/fd/{}", original.as_raw_fd()));
        thread::scope(|scope| {
            scope.spawn(|| self.swapper.run());
            // However this ends: the scope waits for the swapper.
            let _stop = Stop(&self.swapper);
            while self.swapper.swaps.load(Ordering::SeqCst) < SWAPS && !is_over() {
                commit(&|work| self.swapper.during(work));
                furnish(&original);
            }
        });
    }
}

#[test]
fn a_directory_swapped_for_a_link_leads_nobody_astray() {
    let race = Race::new();
    let before = state(&race.victim);
    let (mut made, mut refused, mut commits) = (0, 0, 0);
    let commit = |during: &dyn Fn(&mut dyn FnMut())| {
        let changes = race.workspace.changes();
        assert_eq!(changes.list.len(), 14);
        during(&mut || {
            let report = race.workspace.commit(&changes);
            made += report.committed;
            let by_link = report.skipped.iter();
            let by_link = by_link.filter(|it| matches!(it.reason, NotCommitted::NoDirectory));
            refused += by_link.count();
            commits += 1;
        });
        assert_eq!(state(&race.victim), before, "after {commits} commits");
    };
    race.run(commit, || false);
    // Both the directory and the link were met, and nothing is left lying about.
    assert!(made > 10 && refused > 10, "{made} made, {refused} refused in {commits} commits");
    let left: Vec<_> = listing(&race.workspace.lower).into_keys().collect();
    let strays = left.iter().filter(|path| path.to_string_lossy().contains(".belljar-"));
    assert_eq!(strays.count(), 0, "{left:?}");
}

#[test]
fn control_a_commit_by_path_is_led_astray() {
    let race = Race::new();
    let before = state(&race.victim);
    let hit = AtomicBool::new(false);
    let commit = |during: &dyn Fn(&mut dyn FnMut())| {
        during(&mut || {
            let lower = &race.workspace.lower;
            let _ = fs::write(lower.join("d/modified"), "from the guest");
            let _ = fs::write(lower.join("d/added"), "from the guest");
            let _ = fs::remove_file(lower.join("d/deleted"));
        });
        hit.fetch_or(state(&race.victim) != before, Ordering::SeqCst);
    };
    race.run(commit, || hit.load(Ordering::SeqCst));
    assert!(hit.load(Ordering::SeqCst), "the race is too slow to prove anything");
}

/// Someone saves a file at any moment of a commit: whatever the order, theirs is what stays.
#[test]
fn what_others_save_meanwhile_is_never_lost() {
    let (mut committed, mut refused) = (0, 0);
    for round in 0..600_u32 {
        let workspace = Workspace::in_memory();
        put(&workspace.lower, "file", "original");
        put(&workspace.lower, "gone", "original");
        put(&workspace.upper, "file", "from the guest");
        put_whiteout(&workspace.upper.join("gone"));
        let changes = workspace.changes();
        let saved = |name: &str| {
            let draft = workspace.root.path().join(name);
            fs::write(&draft, "from someone else").unwrap();
            fs::rename(draft, workspace.lower.join(name)).unwrap();
        };
        let go = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !go.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                for _ in 0..(round % 60) * 40 {
                    std::hint::spin_loop();
                }
                saved("file");
                saved("gone");
            });
            go.store(true, Ordering::SeqCst);
            let report = workspace.commit(&changes);
            committed += report.committed;
            refused += report.skipped.len();
        });
        for name in ["file", "gone"] {
            let content = fs::read_to_string(workspace.lower.join(name)).unwrap();
            assert_eq!(content, "from someone else", "round {round}: {name}");
        }
        assert_eq!(listing(&workspace.lower).len(), 2, "round {round}");
    }
    assert!(committed > 0 && refused > 0, "{committed} committed, {refused} refused");
}
