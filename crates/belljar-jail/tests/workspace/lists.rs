//! Change lists of workspaces without an original, and what they say for people.

use std::{
    fs::{self, File},
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::symlink,
    },
    path::PathBuf,
};

use belljar_jail::workspace::{
    ChangeCaps, ChangeKind, ChangeList, CommitOptions, EntryKind, WithheldReason, changes, commit,
};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::{
    harness::{
        Workspace, find, is_root, listing, path, put, put_attribute, put_whiteout, set_mode,
    },
    skip::skip,
};

fn without_original(workspace: &Workspace) -> ChangeList {
    let upper = File::open(&workspace.upper).unwrap();
    changes(upper.as_fd(), None, &ChangeCaps::default()).unwrap()
}

#[test]
fn without_an_original_everything_is_added() {
    let workspace = Workspace::new();
    put(&workspace.upper, "d/file", "12");
    symlink("d/file", workspace.upper.join("link")).unwrap();
    put_whiteout(&workspace.upper.join("device"));
    put_attribute(&workspace.upper.join("d"), "user.overlay.opaque", b"y");
    put_attribute(&workspace.upper.join("d/file"), "user.overlay.metacopy", b"");
    let changes = without_original(&workspace);
    assert!(changes.list.iter().all(|change| change.kind == ChangeKind::Added));
    let entries: Vec<_> = changes.list.iter().map(|it| (it.shown_path(), it.entry)).collect();
    let expected = [
        ("d", EntryKind::Directory),
        ("d/file", EntryKind::File),
        ("device", EntryKind::Other),
        ("link", EntryKind::Link),
    ];
    assert_eq!(entries, expected.map(|(path, entry)| (path.to_owned(), entry)));
    // Without an overlay a whiteout is a device and the attributes are anyone's.
    assert_eq!(find(&changes, "device").withheld, Some(WithheldReason::Special));
    assert_eq!(find(&changes, "d/file").withheld, None);
    assert_eq!(find(&changes, "d/file").bytes, 2);
}

#[test]
fn a_workspace_of_its_own_can_be_committed_to_a_directory() {
    let workspace = Workspace::new();
    put(&workspace.lower, "there", "already");
    put(&workspace.upper, "there", "new");
    put(&workspace.upper, "d/file", "12");
    let report = workspace.commit(&without_original(&workspace));
    assert_eq!(report.committed, 2);
    assert_eq!(report.skipped.len(), 1);
    assert_eq!(fs::read_to_string(workspace.lower.join("there")).unwrap(), "already");
    assert_eq!(fs::read_to_string(workspace.lower.join("d/file")).unwrap(), "12");
}

#[test]
fn notes_say_what_a_reader_should_know() {
    let workspace = Workspace::new();
    put(&workspace.upper, "plain", "");
    put(&workspace.upper, "setuid", "");
    set_mode(&workspace.upper.join("setuid"), 0o4755);
    put(&workspace.upper, path(b"na\xffme"), "");
    symlink("/etc/passwd", workspace.upper.join("out")).unwrap();
    let changes = workspace.changes();
    assert_eq!(find(&changes, "plain").note(), None);
    let note = "set-ID and sticky bits will be dropped";
    assert_eq!(find(&changes, "setuid").note().unwrap(), note);
    let odd = find(&changes, path(b"na\xffme"));
    assert_eq!(odd.shown_path(), "na\u{fffd}me");
    assert_eq!(odd.note().unwrap(), "the name is not UTF-8 and shown inexactly");
    let note = "will not be committed: the link leads out of the workspace";
    assert_eq!(find(&changes, "out").note().unwrap(), note);
}

#[test]
fn looking_leaves_the_upper_directory_as_it_was() {
    let workspace = Workspace::new();
    put(&workspace.upper, "locked/inner/file", "x");
    for (path, mode) in [("locked/inner/file", 0), ("locked/inner", 0), ("locked", 0o100)] {
        set_mode(&workspace.upper.join(path), mode);
    }
    let changes = workspace.changes();
    assert_eq!(changes.list.len(), 3);
    assert!(changes.list.iter().all(|change| change.withheld.is_none()), "{changes:?}");
    let report = workspace.commit(&changes);
    assert_eq!(report.committed, 3, "{report:?}");
    for root in [&workspace.upper, &workspace.lower] {
        assert_eq!(crate::harness::mode(&root.join("locked")), 0o100);
        set_mode(&root.join("locked"), 0o700);
        assert_eq!(crate::harness::mode(&root.join("locked/inner")), 0);
        set_mode(&root.join("locked/inner"), 0o700);
        let held = listing(root);
        assert_eq!(held[&path(b"locked/inner/file")], "f 0");
    }
}

/// The host's handle on a cell's upper directory: a tmpfs that is mounted nowhere.
#[test]
fn a_tmpfs_that_is_mounted_nowhere_will_do() {
    if !is_root() {
        skip("mounting a tmpfs: this needs root");
        return;
    }
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
    fsconfig_create(&context).unwrap();
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW | MountAttrFlags::MOUNT_ATTR_NODEV;
    let upper = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", upper.as_raw_fd()));
    let workspace = Workspace::new();
    put(&workspace.lower, "d/gone", "");
    put(&path, "d/file", "new");
    symlink("file", path.join("d/link")).unwrap();
    put_attribute(&path.join("d"), "user.overlay.opaque", b"y");
    let lower = File::open(&workspace.lower).unwrap();
    let changes = changes(upper.as_fd(), Some(lower.as_fd()), &ChangeCaps::default()).unwrap();
    let listed: Vec<_> = changes.list.iter().map(|it| (it.shown_path(), it.kind)).collect();
    let expected = [
        ("d/file", ChangeKind::Added),
        ("d/gone", ChangeKind::Deleted),
        ("d/link", ChangeKind::Added),
    ];
    assert_eq!(listed, expected.map(|(path, kind)| (path.to_owned(), kind)));
    let report = commit(&changes, upper.as_fd(), lower.as_fd(), &CommitOptions::default());
    assert_eq!(report.committed, 3, "{report:?}");
    let held: Vec<_> = listing(&workspace.lower).into_keys().collect();
    assert_eq!(held, ["d", "d/file", "d/link"].map(PathBuf::from));
}
