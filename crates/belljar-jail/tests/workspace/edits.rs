//! Edits in real overlays: the list is what `diff` says, and a commit makes the real directory
//! what the cell saw.

use std::{
    fs,
    os::unix::fs::{FileExt, symlink},
    path::Path,
};

use belljar_jail::workspace::{ChangeKind, EntryKind};

use crate::harness::{Workspace, assert_same, find, put, said, set_mode};

/// A small tree with a bit of everything.
pub(crate) fn furnish(lower: &Path) {
    put(lower, "readme.txt", "hello\n");
    put(lower, "same.txt", "as ever\n");
    put(lower, "run.sh", "#!/bin/sh\n");
    put(lower, "src/main.rs", "fn main() {}\n");
    put(lower, "src/deep/er/file", "content");
    put(lower, "data/one.csv", "a,b\n");
    put(lower, "data/two.csv", "c,d\n");
    put(lower, "data/more/three.csv", "e,f\n");
    fs::create_dir(lower.join("empty")).unwrap();
    symlink("readme.txt", lower.join("link")).unwrap();
    symlink("/etc/hostname", lower.join("outward")).unwrap();
}

/// Makes edits in an overlay and checks list and commit against the oracles.
pub(crate) fn check(edit: impl FnOnce(&Path)) -> (Workspace, belljar_jail::workspace::ChangeList) {
    let workspace = Workspace::new();
    furnish(&workspace.lower);
    let overlay = workspace.mount();
    edit(&overlay.merged);
    let snapshots = overlay.end();
    let changes = workspace.changes();
    assert!(!changes.cut);
    assert_eq!(said(&changes), snapshots.expected());
    let report = workspace.commit(&changes);
    assert_eq!(crate::harness::skipped(&report), [""; 0]);
    assert_eq!(report.committed, changes.list.len());
    assert_same(&workspace.lower, &snapshots.after);
    (workspace, changes)
}

#[test]
fn nothing_done_is_nothing_changed() {
    let (_, changes) = check(|_| {});
    assert!(changes.list.is_empty());
}

#[test]
fn what_is_touched_or_rewritten_alike_is_no_change() {
    let (_, changes) = check(|merged| {
        let file = fs::OpenOptions::new().append(true).open(merged.join("same.txt")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        fs::write(merged.join("readme.txt"), "hello\n").unwrap();
        set_mode(&merged.join("run.sh"), 0o600);
        set_mode(&merged.join("run.sh"), 0o644);
        put(merged, "src/fleeting", "");
        fs::remove_file(merged.join("src/fleeting")).unwrap();
    });
    assert!(changes.list.is_empty(), "{changes:?}");
}

#[test]
fn files_are_added_modified_and_deleted() {
    let (workspace, changes) = check(|merged| {
        put(merged, "new.txt", "12345");
        put(merged, "src/deep/er/file", "other content");
        put(merged, "same.txt", "As ever\n");
        fs::remove_file(merged.join("data/one.csv")).unwrap();
        set_mode(&merged.join("run.sh"), 0o755);
    });
    assert_eq!(find(&changes, "new.txt").bytes, 5);
    assert_eq!(find(&changes, "new.txt").entry, EntryKind::File);
    assert_eq!(find(&changes, "src/deep/er/file").kind, ChangeKind::Modified);
    assert_eq!(find(&changes, "run.sh").kind, ChangeKind::Modified);
    assert_eq!(find(&changes, "data/one.csv").kind, ChangeKind::Deleted);
    assert_eq!(changes.list.len(), 5);
    // A committed file keeps its time of writing.
    let times = [&workspace.upper, &workspace.lower]
        .map(|root| fs::metadata(root.join("new.txt")).unwrap().modified().unwrap());
    assert_eq!(times[0], times[1]);
    // And once committed there is nothing left to commit.
    let merged = said(&workspace.changes());
    assert!(merged.is_empty(), "{merged:?}");
}

#[test]
fn a_removed_directory_is_listed_once() {
    let (_, changes) = check(|merged| fs::remove_dir_all(merged.join("data")).unwrap());
    assert_eq!(changes.list.len(), 1);
    assert_eq!(changes.list[0].entry, EntryKind::Directory);
    assert_eq!(changes.list[0].bytes, 0);
}

#[test]
fn an_added_directory_is_listed_with_all_it_holds() {
    let (_, changes) = check(|merged| {
        put(merged, "build/obj/a.o", "a");
        fs::create_dir(merged.join("build/none")).unwrap();
        set_mode(&merged.join("build/obj"), 0o555);
        set_mode(&merged.join("build"), 0o750);
    });
    assert_eq!(changes.list.len(), 4);
}

#[test]
fn a_directory_made_anew_hides_the_old_one() {
    let (_, changes) = check(|merged| {
        fs::remove_dir_all(merged.join("data")).unwrap();
        put(merged, "data/two.csv", "c,d\n");
        put(merged, "data/four.csv", "g,h\n");
    });
    let listed: Vec<_> = changes.list.iter().map(|it| (it.shown_path(), it.kind)).collect();
    let expected = [
        ("data/four.csv", ChangeKind::Added),
        ("data/more", ChangeKind::Deleted),
        ("data/one.csv", ChangeKind::Deleted),
    ];
    assert_eq!(listed, expected.map(|(path, kind)| (path.to_owned(), kind)));
}

#[test]
fn files_directories_and_links_replace_each_other() {
    let (_, changes) = check(|merged| {
        fs::remove_file(merged.join("readme.txt")).unwrap();
        put(merged, "readme.txt/chapter", "one");
        fs::remove_dir_all(merged.join("data")).unwrap();
        put(merged, "data", "flat");
        fs::remove_file(merged.join("link")).unwrap();
        put(merged, "link/file", "x");
        fs::remove_dir_all(merged.join("src")).unwrap();
        symlink("empty", merged.join("src")).unwrap();
        fs::remove_file(merged.join("same.txt")).unwrap();
        symlink("run.sh", merged.join("same.txt")).unwrap();
        fs::remove_file(merged.join("outward")).unwrap();
        put(merged, "outward", "a file now");
    });
    let entries: Vec<_> = changes.list.iter().map(|it| (it.shown_path(), it.entry)).collect();
    let expected = [
        ("data", EntryKind::File),
        ("link", EntryKind::Directory),
        ("link/file", EntryKind::File),
        ("outward", EntryKind::File),
        ("readme.txt", EntryKind::Directory),
        ("readme.txt/chapter", EntryKind::File),
        ("same.txt", EntryKind::Link),
        ("src", EntryKind::Link),
    ];
    assert_eq!(entries, expected.map(|(path, entry)| (path.to_owned(), entry)));
}

#[test]
fn renames_are_additions_and_deletions() {
    let (_, changes) = check(|merged| {
        fs::rename(merged.join("readme.txt"), merged.join("src/readme.txt")).unwrap();
        fs::rename(merged.join("data/one.csv"), merged.join("data/two.csv")).unwrap();
        fs::rename(merged.join("link"), merged.join("empty/link")).unwrap();
    });
    assert_eq!(changes.list.len(), 6);
}

#[test]
fn a_directory_changes_its_mode_and_what_it_holds() {
    check(|merged| {
        put(merged, "data/new", "n");
        fs::remove_file(merged.join("data/two.csv")).unwrap();
        set_mode(&merged.join("data"), 0o500);
        set_mode(&merged.join("empty"), 0o700);
        // Removed for good, though it would not let anyone in first.
        set_mode(&merged.join("src/deep/er"), 0o700);
    });
}

#[test]
fn a_directory_that_lets_nobody_in_can_be_removed() {
    let workspace = Workspace::new();
    furnish(&workspace.lower);
    set_mode(&workspace.lower.join("src/deep/er"), 0o555);
    let overlay = workspace.mount();
    set_mode(&overlay.merged.join("src/deep/er"), 0o755);
    fs::remove_dir_all(overlay.merged.join("src")).unwrap();
    let snapshots = overlay.end();
    let report = workspace.commit(&workspace.changes());
    assert_eq!(report.committed, 1, "{report:?}");
    assert_same(&workspace.lower, &snapshots.after);
}

#[test]
fn links_inside_are_committed() {
    let (workspace, _) = check(|merged| {
        symlink("../data/one.csv", merged.join("src/up")).unwrap();
        symlink("nowhere/yet", merged.join("dangling")).unwrap();
        fs::remove_file(merged.join("link")).unwrap();
        symlink("same.txt", merged.join("link")).unwrap();
        symlink("ring-b", merged.join("ring-a")).unwrap();
        symlink("ring-a", merged.join("ring-b")).unwrap();
    });
    let target = fs::read_link(workspace.lower.join("src/up")).unwrap();
    assert_eq!(target, Path::new("../data/one.csv"));
}

#[test]
fn large_and_sparse_files_arrive_whole() {
    check(|merged| {
        let file = fs::File::create(merged.join("sparse")).unwrap();
        file.write_all_at(b"start", 0).unwrap();
        file.write_all_at(b"middle", 5 << 20).unwrap();
        file.set_len(9 << 20).unwrap();
        let large: Vec<u8> = (0..3_000_001_u32).map(|at| (at % 251) as u8).collect();
        put(merged, "large", large);
    });
}
