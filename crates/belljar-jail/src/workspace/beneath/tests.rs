//! Both ways of resolving a path open what is inside, and nothing else.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
};

use rustix::fs::{fstat, readlinkat};

use super::*;

/// Runs a test with either way of resolving paths.
fn both_ways(test: impl Fn(&RootedTree<'_>)) {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    fs::create_dir_all(root.join("d/e")).unwrap();
    fs::write(root.join("d/e/file"), "inside").unwrap();
    fs::write(outer.path().join("secret"), "outside").unwrap();
    symlink("../secret", root.join("door")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("d", root.join("side")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    let root = File::open(&root).unwrap();
    for resolution in [PathResolution::InKernel, PathResolution::ByComponent] {
        test(&RootedTree { root: root.as_fd(), resolution });
    }
}

#[test]
fn what_is_inside_can_be_opened() {
    both_ways(|tree| {
        tree.file(Path::new("d/e/file")).unwrap();
        tree.directory(Path::new("d/e")).unwrap();
        let held = names(tree.listing(Path::new("d")).unwrap(), 9).unwrap();
        assert_eq!(held.unwrap(), ["e"]);
        let held = names(tree.listing(Path::new("")).unwrap(), 9).unwrap();
        assert_eq!(held.unwrap().len(), 5);
        let link = tree.entry(Path::new("door")).unwrap();
        assert_eq!(readlinkat(link, "", Vec::new()).unwrap().to_bytes(), b"../secret");
    });
}

#[test]
fn links_are_followed_nowhere_and_paths_are_plain() {
    both_ways(|tree| {
        let paths = [
            "door",
            "up",
            "up/secret",
            "side",
            "side/e",
            "side/e/file",
            "magic",
            "magic/etc",
            "..",
            "../secret",
            "d/../../secret",
            "/etc/passwd",
            "/",
            ".",
            "d/e/..",
        ];
        for path in paths.map(Path::new) {
            assert!(tree.file(path).is_err(), "{}", path.display());
            assert!(tree.listing(path).is_err(), "{}", path.display());
            assert!(tree.directory(path).is_err(), "{}", path.display());
        }
        assert!(tree.entry(Path::new("side/e")).is_err());
        assert!(tree.file(Path::new("d/e/file\0")).is_err());
    });
}

#[test]
fn a_fifo_keeps_nobody_waiting() {
    let root = tempfile::tempdir().unwrap();
    rustix::fs::mkfifoat(CWD, root.path().join("fifo"), Mode::RWXU).unwrap();
    let handle = File::open(root.path()).unwrap();
    let fifo = RootedTree::new(handle.as_fd()).file(Path::new("fifo")).unwrap();
    assert!(!rustix::fs::FileType::from_raw_mode(fstat(fifo).unwrap().st_mode).is_file());
}

#[test]
fn bounds_are_checked_before_the_kernel_is_asked() {
    let deep = |levels: usize| vec!["d"; levels].join("/");
    assert!(check_plain(Path::new(&deep(MAX_DEPTH))).is_ok());
    assert!(check_plain(Path::new(&deep(MAX_DEPTH + 1))).is_err());
    assert!(check_plain(Path::new(&"n".repeat(MAX_PATH))).is_ok());
    assert!(check_plain(Path::new(&"n".repeat(MAX_PATH + 1))).is_err());
}

#[test]
fn more_names_than_wanted_are_none() {
    both_ways(|tree| {
        let listing = || tree.listing(Path::new("")).unwrap();
        assert!(names(listing(), 5).unwrap().is_some());
        assert!(names(listing(), 4).unwrap().is_none());
    });
}
