//! C2: files from outside, tried on a directory that is no session's.

use std::{fs, os::unix::fs::symlink};

use rustix::fs::CWD;

use super::*;

/// A directory, and the files in a directory in there.
fn place() -> (tempfile::TempDir, BranchFiles) {
    let place = tempfile::tempdir().expect("a directory");
    let inside = place.path().join("work");
    fs::create_dir(&inside).expect("made");
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let work = openat(CWD, &inside, flags, Mode::empty()).expect("there");
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let owner = Ids { uid: uid.as_raw(), gid: gid.as_raw() };
    (place, BranchFiles::new(work, owner))
}

fn put(files: &BranchFiles, path: &str, text: &str) -> Result<(), Option<Errno>> {
    told(files.put(Path::new(path), &mut text.as_bytes()))
}

fn size(files: &BranchFiles, path: &str) -> Result<u64, Option<Errno>> {
    told(files.open(Path::new(path)).map(|(bytes, _)| bytes))
}

fn remove(files: &BranchFiles, path: &str) -> Result<(), Option<Errno>> {
    told(files.remove(Path::new(path)))
}

fn told<T>(result: io::Result<T>) -> Result<T, Option<Errno>> {
    result.map_err(|error| Errno::from_io_error(&error))
}

#[test]
fn c2_files_are_written_whole_and_links_lead_nowhere() {
    let (place, files) = place();
    let (inside, outside) = (place.path().join("work"), place.path().join("secret"));
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("key"), "s3cret").expect("written");
    symlink("../secret", inside.join("door")).expect("a link");
    symlink("../secret/key", inside.join("key")).expect("a link");
    // Controls: what is allowed works.
    assert_eq!(put(&files, "a/b/c.txt", "hello"), Ok(()));
    assert_eq!(fs::read_to_string(inside.join("a/b/c.txt")).expect("there"), "hello");
    assert_eq!(put(&files, "a/b/c.txt", "again, longer"), Ok(()));
    assert_eq!(size(&files, "a/b/c.txt"), Ok(13));
    // A link is replaced by a file of that name, never written through; and never read through.
    for link in ["door/key", "door/new"] {
        assert_eq!(size(&files, link), Err(Some(Errno::LOOP)), "{link}");
        assert!(put(&files, link, "x").is_err(), "{link}");
        assert!(remove(&files, link).is_err(), "{link}");
    }
    assert_eq!(size(&files, "key"), Err(Some(Errno::LOOP)));
    assert_eq!(put(&files, "key", "mine"), Ok(()));
    assert_eq!(fs::read_to_string(outside.join("key")).expect("there"), "s3cret");
    assert_eq!(fs::read_to_string(inside.join("key")).expect("there"), "mine");
    assert_eq!(size(&files, "none"), Err(Some(Errno::NOENT)));
    assert_eq!(size(&files, "a"), Err(Some(Errno::ISDIR)));
    assert_eq!(put(&files, "a/b", "x"), Err(Some(Errno::ISDIR)));
    for bad in ["", "/", "/a", "..", "../a", "a/../b", "a\0b"] {
        assert!(size(&files, bad).is_err(), "{bad:?}");
        assert!(put(&files, bad, "x").is_err(), "{bad:?}");
        assert!(remove(&files, bad).is_err(), "{bad:?}");
    }
    let (file, directory, link) = (EntryKind::File, EntryKind::Directory, EntryKind::Link);
    let expected =
        [("a", directory), ("a/b", directory), ("a/b/c.txt", file), ("door", link), ("key", file)];
    let (all, is_cut) = files.list(10).expect("listed");
    let shown = all.iter().map(|one| (one.path.to_str().expect("text"), one.kind));
    assert_eq!((shown.collect::<Vec<_>>(), is_cut), (expected.to_vec(), false));
    let (first, is_cut) = files.list(2).expect("listed");
    assert_eq!((first.as_slice(), is_cut), (&all[..2], true));
    assert_eq!(remove(&files, "door"), Ok(()), "the link, and not what it leads to");
    assert!(outside.join("key").exists());
    assert_eq!(remove(&files, "a"), Err(Some(Errno::NOTEMPTY)));
    assert_eq!(remove(&files, "a/b/c.txt"), Ok(()));
    assert_eq!(remove(&files, "a/b"), Ok(()), "an empty directory");
    assert_eq!(remove(&files, "a/b"), Err(Some(Errno::NOENT)));
}

/// Only regular files are read and shown; the host does not wait for others.
#[test]
fn c2_pipes_and_sockets_are_nothing_to_hand_out() {
    let (place, files) = place();
    let inside = place.path().join("work");
    rustix::fs::mkfifoat(CWD, inside.join("fifo"), Mode::RWXU).expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(inside.join("socket")).expect("made");
    assert_eq!(size(&files, "fifo"), Err(None), "not a regular file");
    assert_eq!(size(&files, "socket"), Err(Some(Errno::NXIO)));
    assert_eq!(files.list(10).expect("listed"), (Vec::new(), false));
    // In their place there may be a file.
    assert_eq!(put(&files, "fifo", "x"), Ok(()));
    assert_eq!(size(&files, "fifo"), Ok(1));
}
