//! C2: which paths of files are valid, and which error each invalid one gives.

use super::*;

#[test]
fn c2_paths_of_files_are_plain_and_beneath_the_workspace() {
    for good in ["a", "a/b.txt", "./a", "/work/a", "ä/ö", "..a", "a..b"] {
        assert!(check_path(good).is_ok(), "{good}");
    }
    let deep = "d/".repeat(40) + "f";
    let long = "x".repeat(2000);
    let bad =
        ["", ".", "..", "../a", "a/../b", "/a", "/work", "/work/", "a/", "a\0b", "/work/../a"];
    for bad in bad.into_iter().chain([deep.as_str(), long.as_str()]) {
        assert!(matches!(check_path(bad), Err(FileError::Path(_))), "{bad:?}");
    }
}

#[test]
fn c2_what_is_in_the_way_is_told_apart_from_what_is_not_there() {
    assert!(matches!(refused(Errno::NOENT.into()), FileError::Missing));
    for errno in [Errno::LOOP, Errno::XDEV, Errno::NOTDIR, Errno::ISDIR, Errno::NAMETOOLONG] {
        assert!(matches!(refused(errno.into()), FileError::Path(_)), "{errno}");
    }
    let not_regular = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    assert!(matches!(refused(not_regular), FileError::Path("not a regular file")));
    assert!(matches!(refused(Errno::NOTEMPTY.into()), FileError::NotEmpty));
    for errno in [Errno::NOSPC, Errno::ACCESS] {
        assert!(matches!(refused(errno.into()), FileError::Refused(_)), "{errno}");
    }
}
