//! The owners of files after a commit, and the files that an ordinary user may not touch.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown, lchown, symlink},
    path::Path,
};

use belljar_jail::workspace::NotCommitted;

use crate::{
    harness::{Workspace, is_child, is_root, put, put_whiteout, run_again, set_mode, skipped},
    skip::skip,
};

/// Stands for the private user of a cell.
const CELL: u32 = 1_234_567;
const ORDINARY: u32 = 1000;

fn owner(path: &Path) -> (u32, u32) {
    let metadata = fs::symlink_metadata(path).unwrap();
    (metadata.uid(), metadata.gid())
}

#[test]
fn root_keeps_owners_and_never_brings_in_the_cells() {
    if !is_root() {
        skip("giving files away: this needs root");
        return;
    }
    let workspace = Workspace::new();
    let (lower, upper) = (&workspace.lower, &workspace.upper);
    for (path, user, group) in [("file", 2001, 3001), ("of-root", 0, 0), ("d/inner", 2002, 3002)] {
        put(lower, path, "original");
        chown(lower.join(path), Some(user), Some(group)).unwrap();
    }
    chown(lower, Some(2003), Some(3003)).unwrap();
    chown(lower.join("d"), Some(2004), Some(3004)).unwrap();
    for path in ["file", "of-root", "d/inner", "d/new", "d/made/new", "new"] {
        put(upper, path, "from the guest");
        chown(upper.join(path), Some(CELL), Some(CELL)).unwrap();
    }
    for path in ["d", "d/made"] {
        chown(upper.join(path), Some(CELL), Some(CELL)).unwrap();
    }
    symlink("new", upper.join("d/link")).unwrap();
    lchown(upper.join("d/link"), Some(CELL), Some(CELL)).unwrap();
    let report = workspace.commit(&workspace.changes());
    assert_eq!((report.committed, skipped(&report).len()), (8, 0));
    let expected = [
        ("file", 2001, 3001),
        ("of-root", 0, 0),
        ("d/inner", 2002, 3002),
        ("new", 2003, 3003),
        ("d", 2004, 3004),
        ("d/new", 2004, 3004),
        ("d/made", 2004, 3004),
        ("d/made/new", 2004, 3004),
        ("d/link", 2004, 3004),
    ];
    for (path, user, group) in expected {
        assert_eq!(owner(&lower.join(path)), (user, group), "{path}");
    }
}

#[test]
fn a_directory_that_hands_down_its_group_goes_on_doing_so() {
    if !is_root() {
        skip("giving files away: this needs root");
        return;
    }
    let workspace = Workspace::new();
    chown(&workspace.lower, Some(2001), Some(3001)).unwrap();
    set_mode(&workspace.lower, 0o2775);
    put(&workspace.upper, "d/file", "");
    workspace.commit(&workspace.changes());
    assert_eq!(crate::harness::mode(&workspace.lower.join("d")), 0o2755);
    assert_eq!(owner(&workspace.lower.join("d/file")), (2001, 3001));
}

/// As root, the directories are made; as the ordinary user it then runs as, they are committed to.
#[test]
fn an_ordinary_user_is_told_which_files_are_not_theirs() {
    const TEST: &str = "owners::an_ordinary_user_is_told_which_files_are_not_theirs";
    const PLACE: &str = "BELLJAR_WORKSPACE_PLACE";
    if is_child() {
        return as_ordinary_user(Path::new(&std::env::var_os(PLACE).unwrap()));
    }
    if !is_root() {
        skip("files of another user's: this needs root");
        return;
    }
    let workspace = Workspace::new();
    let (lower, upper) = (&workspace.lower, &workspace.upper);
    for path in ["theirs", "shared", "mine", "closed/file", "closed/gone"] {
        put(lower, path, "original");
        put(upper, path, "from the guest");
        chown(upper.join(path), Some(ORDINARY), Some(ORDINARY)).unwrap();
    }
    fs::remove_file(upper.join("closed/gone")).unwrap();
    put_whiteout(&upper.join("closed/gone"));
    put(upper, "closed/new", "from the guest");
    set_mode(&lower.join("shared"), 0o666);
    for path in [lower, upper, &lower.join("mine"), &upper.join("closed")] {
        chown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
    }
    set_mode(workspace.root.path(), 0o755);
    let place = format!("{PLACE}={}", workspace.root.path().display());
    let user = ORDINARY.to_string();
    let prefix = ["env", &place, "setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
    run_again(&prefix, TEST);
}

fn as_ordinary_user(place: &Path) {
    let workspace = Workspace::existing(place);
    let changes = workspace.changes();
    assert_eq!(changes.list.len(), 6);
    let report = workspace.commit(&changes);
    let denied = "Permission denied (os error 13)";
    let expected = ["closed/file", "closed/new", "theirs", "closed/gone"];
    assert_eq!(skipped(&report), expected.map(|path| format!("{path}: {denied}")));
    assert!(report.skipped.iter().all(|it| matches!(it.reason, NotCommitted::Refused(_))));
    for (path, content) in [
        ("theirs", "original"),
        ("closed/file", "original"),
        ("closed/gone", "original"),
        ("shared", "from the guest"),
        ("mine", "from the guest"),
    ] {
        assert_eq!(fs::read_to_string(workspace.lower.join(path)).unwrap(), content, "{path}");
    }
}
