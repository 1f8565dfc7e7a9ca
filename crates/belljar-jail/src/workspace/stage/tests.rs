//! A staged file replaces only the expected one, and leaves no name behind.

use std::{
    fs::{self, File},
    os::{fd::AsFd, unix::fs::symlink},
    path::Path,
};

use super::*;

fn seen(path: &Path) -> InodeSnapshot {
    let stat = rustix::fs::lstat(path).unwrap();
    InodeSnapshot::of(&stat)
}

fn names(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Both ways to stage a file: without a name, and where that cannot be had.
type Stage = for<'fd> fn(BorrowedFd<'fd>) -> io::Result<StagedFile<'fd>>;

const STAGES: [Stage; 2] = [|it| StagedFile::new(it), |it| StagedFile::named(it)];

#[test]
fn a_file_is_put_where_nothing_is_or_what_was_expected() {
    for stage in STAGES {
        let root = tempfile::tempdir().unwrap();
        let directory = File::open(root.path()).unwrap();
        stage(directory.as_fd()).unwrap().place(OsStr::new("new"), None).unwrap();
        fs::write(root.path().join("old"), "old").unwrap();
        let expected = seen(&root.path().join("old"));
        let staged = stage(directory.as_fd()).unwrap();
        staged.place(OsStr::new("old"), Some(&expected)).unwrap();
        assert_eq!(fs::read(root.path().join("old")).unwrap(), b"");
        assert_eq!(names(root.path()), ["new", "old"]);
    }
}

#[test]
fn whatever_else_is_there_stays_and_no_name_is_left_behind() {
    for stage in STAGES {
        let root = tempfile::tempdir().unwrap();
        let directory = File::open(root.path()).unwrap();
        fs::write(root.path().join("file"), "first").unwrap();
        let expected = seen(&root.path().join("file"));
        fs::write(root.path().join("other"), "second").unwrap();
        fs::rename(root.path().join("other"), root.path().join("file")).unwrap();
        symlink("file", root.path().join("link")).unwrap();
        fs::create_dir(root.path().join("directory")).unwrap();
        for name in ["file", "link", "directory"] {
            for expected in [None, Some(&expected)] {
                let staged = stage(directory.as_fd()).unwrap();
                let outcome = staged.place(OsStr::new(name), expected);
                assert!(matches!(outcome, Err(NotCommitted::Conflict)), "{name}: {outcome:?}");
            }
        }
        let missing = stage(directory.as_fd()).unwrap().place(OsStr::new("gone"), Some(&expected));
        assert!(matches!(missing, Err(NotCommitted::Conflict)), "{missing:?}");
        drop(stage(directory.as_fd()).unwrap());
        assert_eq!(names(root.path()), ["directory", "file", "link"]);
        assert_eq!(fs::read_to_string(root.path().join("file")).unwrap(), "second");
    }
}

#[test]
fn without_exchanging_places_the_same_holds() {
    let root = tempfile::tempdir().unwrap();
    let directory = File::open(root.path()).unwrap();
    fs::write(root.path().join("file"), "first").unwrap();
    let expected = seen(&root.path().join("file"));
    let link =
        |target: &str| TemporaryEntry::symlink(directory.as_fd(), OsStr::new(target)).unwrap();
    link("a").place_over(OsStr::new("file"), &expected).unwrap();
    let refused = link("b").place_over(OsStr::new("file"), &expected);
    assert!(matches!(refused, Err(NotCommitted::Conflict)), "{refused:?}");
    assert_eq!(fs::read_link(root.path().join("file")).unwrap(), Path::new("a"));
    assert_eq!(names(root.path()), ["file"]);
}
