//! Changes of others to the original are never lost: the commit leaves the file alone, and the
//! report names the file.

use std::{fs, path::Path, time::SystemTime};

use belljar_jail::workspace::{
    ChangeCaps, CommitDurability, CommitOptions, EntryKind, NotCommitted, WithheldReason,
};

use crate::{
    edits::furnish,
    harness::{Workspace, assert_same, find, listing, put, put_whiteout, skipped},
};

const CONFLICT: &str = "conflict: the original has changed since the change list was made";

/// A workspace whose run changed `readme.txt`, added `new.txt` and removed `data`.
fn changed() -> Workspace {
    let workspace = Workspace::new();
    furnish(&workspace.lower);
    put(&workspace.upper, "readme.txt", "from the guest\n");
    put(&workspace.upper, "new.txt", "new\n");
    put_whiteout(&workspace.upper.join("data"));
    workspace
}

#[test]
fn nothing_in_the_way_is_committed() {
    let workspace = changed();
    let options =
        CommitOptions { durability: CommitDurability::Synced, ..CommitOptions::default() };
    let report = workspace.commit_with(&workspace.changes(), &options);
    assert_eq!((report.committed, skipped(&report).len()), (3, 0));
    assert_eq!(report.bytes, 19);
    assert!(!workspace.lower.join("data").exists());
}

#[test]
fn an_original_modified_since_is_kept() {
    let workspace = changed();
    let changes = workspace.changes();
    put(&workspace.lower, "readme.txt", "from someone else\n");
    let report = workspace.commit(&changes);
    assert_eq!(skipped(&report), [format!("readme.txt: {CONFLICT}")]);
    assert_eq!(report.committed, 2);
    let kept = fs::read_to_string(workspace.lower.join("readme.txt")).unwrap();
    assert_eq!(kept, "from someone else\n");
}

#[test]
fn an_original_that_came_or_went_since_is_respected() {
    let workspace = changed();
    let changes = workspace.changes();
    put(&workspace.lower, "new.txt", "mine\n");
    fs::remove_file(workspace.lower.join("readme.txt")).unwrap();
    let report = workspace.commit(&changes);
    let expected = ["new.txt", "readme.txt"].map(|name| format!("{name}: {CONFLICT}"));
    assert_eq!(skipped(&report), expected);
    assert_eq!(fs::read_to_string(workspace.lower.join("new.txt")).unwrap(), "mine\n");
    assert!(!workspace.lower.join("readme.txt").exists());
}

#[test]
fn a_directory_that_changed_inside_is_not_removed() {
    let disturbances: [fn(&Path); 4] = [
        |lower| put(lower, "data/more/unexpected", "u"),
        |lower| put(lower, "data/one.csv", "changed"),
        |lower| fs::remove_file(lower.join("data/more/three.csv")).unwrap(),
        |lower| fs::create_dir(lower.join("data/more/directory")).unwrap(),
    ];
    for disturb in disturbances {
        let workspace = changed();
        let changes = workspace.changes();
        disturb(&workspace.lower);
        let before = listing(&workspace.lower.join("data"));
        let report = workspace.commit(&changes);
        assert_eq!(skipped(&report), [format!("data: {CONFLICT}")]);
        assert_eq!(listing(&workspace.lower.join("data")), before);
    }
}

#[test]
fn a_directory_in_place_of_another_stays() {
    let workspace = changed();
    put(&workspace.upper, "src/new.rs", "new");
    let changes = workspace.changes();
    fs::rename(workspace.lower.join("src"), workspace.lower.join("old")).unwrap();
    put(&workspace.lower, "src", "a file now");
    let report = workspace.commit(&changes);
    let expected = ["src/new.rs: its directory is missing or not a plain directory"];
    assert_eq!(skipped(&report), expected);
    assert_eq!(fs::read_to_string(workspace.lower.join("src")).unwrap(), "a file now");
}

#[test]
fn originals_that_changed_during_the_run_are_withheld() {
    let workspace = changed();
    put(&workspace.lower, "data/more/three.csv", "changed during the run");
    put(&workspace.upper, "same.txt", "changed by the guest");
    let later = SystemTime::now() + std::time::Duration::from_secs(60);
    // Control: of a run that begins later, all of it may be committed.
    let caps = ChangeCaps { began: Some(later), ..ChangeCaps::default() };
    let changes = workspace.changes_within(&caps);
    assert!(changes.list.iter().all(|change| change.withheld.is_none()));
    let caps = ChangeCaps { began: Some(SystemTime::UNIX_EPOCH), ..ChangeCaps::default() };
    let changes = workspace.changes_within(&caps);
    for path in ["readme.txt", "same.txt", "data"] {
        assert_eq!(find(&changes, path).withheld, Some(WithheldReason::ChangedMeanwhile), "{path}");
    }
    assert_eq!(find(&changes, "new.txt").withheld, None);
    let before = listing(&workspace.lower.join("data"));
    let report = workspace.commit(&changes);
    assert_eq!(report.committed, 1);
    let reasons = report.skipped.iter().map(|it| &it.reason);
    assert!(reasons.clone().all(|it| matches!(it, NotCommitted::Withheld(_))));
    assert_eq!(listing(&workspace.lower.join("data")), before);
}

#[test]
fn a_list_that_was_cut_commits_nothing() {
    let workspace = changed();
    let before = listing(&workspace.lower);
    let caps = ChangeCaps { entries: 2, ..ChangeCaps::default() };
    let changes = workspace.changes_within(&caps);
    assert!(changes.cut);
    let report = workspace.commit(&changes);
    assert_eq!(report.committed, 0);
    assert!(
        matches!(report.skipped[..], [ref only] if matches!(only.reason, NotCommitted::ListCut))
    );
    assert_eq!(listing(&workspace.lower), before);
    // Control: with room for one more it is whole.
    let caps = ChangeCaps { entries: 3, ..ChangeCaps::default() };
    assert!(!workspace.changes_within(&caps).cut);
}

#[test]
fn a_directory_too_large_to_remember_is_not_removed() {
    let workspace = changed();
    let changes = workspace.changes_within(&ChangeCaps { removed: 3, ..ChangeCaps::default() });
    let data = find(&changes, "data");
    assert_eq!(data.withheld, Some(WithheldReason::TooManyRemoved));
    assert_eq!(data.entry, EntryKind::Directory);
    workspace.commit(&changes);
    assert!(workspace.lower.join("data/more/three.csv").exists());
}

#[test]
fn what_cannot_be_compared_counts_as_modified() {
    let workspace = changed();
    put(&workspace.upper, "same.txt", "as ever\n");
    let caps = |bytes| ChangeCaps { compared_bytes: bytes, ..ChangeCaps::default() };
    // Control: within the budget it is found to be the same.
    assert_eq!(workspace.changes_within(&caps(8)).list.len(), 3);
    let changes = workspace.changes_within(&caps(7));
    assert_eq!(changes.list.len(), 4);
    let copy = Workspace::new();
    furnish(&copy.lower);
    put(&copy.lower, "readme.txt", "from the guest\n");
    put(&copy.lower, "new.txt", "new\n");
    fs::remove_dir_all(copy.lower.join("data")).unwrap();
    assert_eq!(workspace.commit(&changes).committed, 4);
    assert_same(&workspace.lower, &copy.lower);
}
