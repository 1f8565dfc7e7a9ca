//! C2: path rules of files from outside, tried on a directory that is no session's.

use std::{fs, os::unix::fs::symlink};

use rustix::fs::CWD;

use super::*;

fn content(text: &str) -> File {
    use std::io::Write as _;
    let spool = memfd_create("upload", MemfdFlags::CLOEXEC).expect("memory");
    let mut spool = File::from(spool);
    spool.write_all(text.as_bytes()).expect("written");
    spool
}

fn open(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).expect("there")
}

#[test]
fn c2_paths_of_files_are_plain_and_beneath_the_workspace() {
    for good in ["a", "a/b.txt", "./a", "/work/a", "ä/ö", "..a", "a..b"] {
        assert!(checked(good).is_ok(), "{good}");
    }
    let deep = "d/".repeat(40) + "f";
    let long = "x".repeat(2000);
    let bad =
        ["", ".", "..", "../a", "a/../b", "/a", "/work", "/work/", "a/", "a\0b", "/work/../a"];
    for bad in bad.into_iter().chain([deep.as_str(), long.as_str()]) {
        assert!(matches!(checked(bad), Err(FileError::Path(_))), "{bad:?}");
    }
}

#[test]
fn c2_files_are_written_whole_and_links_lead_nowhere() {
    let place = tempfile::tempdir().expect("a directory");
    let (inside, outside) = (place.path().join("work"), place.path().join("secret"));
    fs::create_dir(&inside).expect("made");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("key"), "s3cret").expect("written");
    symlink("../secret", inside.join("door")).expect("a link");
    symlink("../secret/key", inside.join("key")).expect("a link");
    let work = open(&inside);
    let path = |text: &str| checked(text).expect("plain");
    // Controls: what is allowed works.
    write(&work, &path("a/b/c.txt"), content("hello")).expect("written");
    assert_eq!(fs::read_to_string(inside.join("a/b/c.txt")).expect("there"), "hello");
    write(&work, &path("a/b/c.txt"), content("again")).expect("replaced");
    assert_eq!(read(&work, &path("a/b/c.txt")).expect("there").0, 5);
    // A link is replaced by a file of that name, never written through; and never read through.
    for link in ["door/key", "door/new"] {
        assert!(matches!(read(&work, &path(link)), Err(FileError::Path(_))), "{link}");
        assert!(matches!(write(&work, &path(link), content("x")), Err(FileError::Path(_))));
        assert!(matches!(remove(&work, &path(link)), Err(FileError::Path(_))));
    }
    assert!(matches!(read(&work, &path("key")), Err(FileError::Path(_))));
    write(&work, &path("key"), content("mine")).expect("the link is replaced");
    assert_eq!(fs::read_to_string(outside.join("key")).expect("there"), "s3cret");
    assert_eq!(fs::read_to_string(inside.join("key")).expect("there"), "mine");
    assert!(matches!(read(&work, &path("none")), Err(FileError::Missing)));
    assert!(matches!(read(&work, &path("a")), Err(FileError::Path(_))));
    assert!(matches!(write(&work, &path("a/b"), content("x")), Err(FileError::Path(_))));
    let (all, cut) = list(&work, 10).expect("listed");
    let shown: Vec<_> = all.iter().map(|file| (&*file.path, file.kind)).collect();
    let (file, directory) = (SessionFileKind::File, SessionFileKind::Directory);
    let link = SessionFileKind::Link;
    let expected =
        [("a", directory), ("a/b", directory), ("a/b/c.txt", file), ("door", link), ("key", file)];
    assert_eq!((shown.as_slice(), cut), (expected.as_slice(), false));
    assert!(list(&work, 2).expect("listed").1);
    remove(&work, &path("a/b/c.txt")).expect("removed");
    remove(&work, &path("a/b")).expect("an empty directory");
    assert!(matches!(remove(&work, &path("a/b")), Err(FileError::Missing)));
}
