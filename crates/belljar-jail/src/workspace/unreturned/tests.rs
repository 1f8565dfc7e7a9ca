//! Files that would be lost without a word are listed, within bounds.

use std::{fs, os::fd::AsFd as _, os::unix::fs::symlink};

use super::*;

fn listed(make: impl FnOnce(&Path)) -> (Vec<(String, u64)>, bool) {
    let work = tempfile::tempdir().expect("a directory");
    make(work.path());
    let handle = fs::File::open(work.path()).expect("it opens");
    let returned = ArtifactFile {
        path: "named.txt".into(),
        bytes: 0,
        media_type: "text/plain",
        data: Vec::new(),
    };
    let (found, more) = unreturned(handle.as_fd(), &[returned]).expect("it is read");
    (found.into_iter().map(|file| (file.path, file.bytes)).collect(), more)
}

fn write(path: &Path, bytes: usize) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
    fs::write(path, vec![0; bytes]).expect("a file");
}

#[test]
fn c2_files_outside_of_out_are_listed_with_their_sizes() {
    let found = listed(|work| {
        for (path, bytes) in [
            ("chart.png", 7),
            ("a/b.csv", 3),
            ("out/kept.csv", 1),
            ("a/out/also.csv", 2),
            ("named.txt", 5),
        ] {
            write(&work.join(path), bytes);
        }
        // Libraries write these, and a link has no content of its own.
        write(&work.join(".cache/fonts"), 9);
        write(&work.join("__pycache__/m.pyc"), 9);
        symlink("/etc/passwd", work.join("link")).expect("a link");
    });
    let wanted = [("chart.png", 7), ("a/b.csv", 3), ("a/out/also.csv", 2)];
    assert_eq!(found, (wanted.map(|(path, bytes)| (path.to_owned(), bytes)).to_vec(), false));
    assert_eq!(listed(|_| {}), (Vec::new(), false));
}

#[test]
fn s10_the_list_is_bounded_in_number_and_depth() {
    let many = listed(|work| {
        for number in 0..3_000 {
            write(&work.join(format!("{number}")), 0);
        }
    });
    assert_eq!(many, (Vec::new(), true), "a directory of too many entries is left out");
    let (some, more) = listed(|work| {
        for number in 0..50 {
            write(&work.join(format!("{number}")), 0);
        }
    });
    assert_eq!((some.len(), more), (MAX_UNRETURNED, true));
    let deep = listed(|work| {
        let path: PathBuf = (0..200).map(|_| "d").collect();
        write(&work.join(path).join("f"), 0);
        write(&work.join("near"), 1);
    });
    assert_eq!(deep, (vec![("near".to_owned(), 1)], false));
}
