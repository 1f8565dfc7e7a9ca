//! Links that lead out of the workspace, however they go about it, are listed and not committed.

use std::{fs, os::unix::fs::symlink, path::Path};

use belljar_jail::workspace::{ChangeKind, EntryKind, WithheldReason};

use crate::harness::{Workspace, find, put, skipped};

fn withheld(prepare: impl FnOnce(&Path, &Path), path: &str) -> Option<WithheldReason> {
    let workspace = Workspace::new();
    prepare(&workspace.lower, &workspace.upper);
    let changes = workspace.changes();
    let report = workspace.commit(&changes);
    let change = find(&changes, path);
    assert_eq!(change.entry, EntryKind::Link);
    let there = fs::symlink_metadata(workspace.lower.join(path)).is_ok();
    assert_eq!(there, change.withheld.is_none(), "{report:?}");
    change.withheld.clone()
}

#[test]
fn links_that_stay_inside_are_committed() {
    let targets = ["file", "./file", "d/../file", "d/e/../../file", "missing", "a//b", "d/"];
    for target in targets {
        let prepare = |lower: &Path, upper: &Path| {
            put(lower, "file", "");
            put(lower, "d/e/f", "");
            symlink(target, upper.join("link")).unwrap();
        };
        assert_eq!(withheld(prepare, "link"), None, "{target}");
    }
}

#[test]
fn links_that_are_written_to_lead_outside_are_withheld() {
    let targets = ["/etc/passwd", "/", "..", "../x", "d/../..", "d/../../lower/d", "./../x", "//x"];
    for target in targets {
        let prepare = |lower: &Path, upper: &Path| {
            put(lower, "d/f", "");
            symlink(target, upper.join("link")).unwrap();
        };
        assert_eq!(withheld(prepare, "link"), Some(WithheldReason::LinkLeadsOutside), "{target}");
    }
}

#[test]
fn links_that_lead_outside_through_others_are_withheld() {
    let outside = Some(WithheldReason::LinkLeadsOutside);
    let through_original = |lower: &Path, upper: &Path| {
        symlink("/etc", lower.join("door")).unwrap();
        symlink("door/passwd", upper.join("link")).unwrap();
    };
    assert_eq!(withheld(through_original, "link"), outside);
    let through_own = |_: &Path, upper: &Path| {
        symlink("/etc", upper.join("door")).unwrap();
        symlink("door/passwd", upper.join("link")).unwrap();
    };
    assert_eq!(withheld(through_own, "link"), outside);
    // As written this stays inside; but `top` is the workspace itself, and its parent is not.
    let through_depth = |_: &Path, upper: &Path| {
        put(upper, "d/e/f", "");
        symlink("../..", upper.join("d/e/top")).unwrap();
        symlink("d/e/top/../x", upper.join("link")).unwrap();
    };
    assert_eq!(withheld(through_depth, "link"), outside);
    let through_locked = |_: &Path, upper: &Path| {
        put(upper, "d/f", "");
        symlink("/etc", upper.join("d/door")).unwrap();
        symlink("d/door/passwd", upper.join("link")).unwrap();
        crate::harness::set_mode(&upper.join("d"), 0);
    };
    assert_eq!(withheld(through_locked, "link"), outside);
}

#[test]
fn links_in_circles_lead_nowhere() {
    let circle = |_: &Path, upper: &Path| {
        symlink("b", upper.join("a")).unwrap();
        symlink("a/x/y", upper.join("b")).unwrap();
        symlink("self/../self", upper.join("self")).unwrap();
    };
    for path in ["a", "b", "self"] {
        assert_eq!(withheld(circle, path), None, "{path}");
    }
}

#[test]
fn a_link_is_checked_again_against_what_is_there_now() {
    let workspace = Workspace::new();
    put(&workspace.lower, "d/file", "");
    symlink("d/file", workspace.upper.join("link")).unwrap();
    let changes = workspace.changes();
    fs::rename(workspace.lower.join("d"), workspace.lower.join("moved")).unwrap();
    symlink("/etc", workspace.lower.join("d")).unwrap();
    let report = workspace.commit(&changes);
    assert_eq!(skipped(&report), ["link: the link leads out of the workspace"]);
    assert!(fs::symlink_metadata(workspace.lower.join("link")).is_err());
}

#[test]
fn a_link_of_the_original_is_replaced_and_not_followed() {
    let workspace = Workspace::new();
    let victim = workspace.root.path().join("victim");
    put(&victim, "file", "precious");
    symlink(&victim, workspace.lower.join("d")).unwrap();
    symlink(victim.join("file"), workspace.lower.join("f")).unwrap();
    symlink(&victim, workspace.lower.join("gone")).unwrap();
    put(&workspace.upper, "d/file", "from the guest");
    put(&workspace.upper, "f", "from the guest");
    crate::harness::put_whiteout(&workspace.upper.join("gone"));
    let changes = workspace.changes();
    assert_eq!(find(&changes, "d").kind, ChangeKind::Modified);
    let report = workspace.commit(&changes);
    assert_eq!((report.committed, report.skipped.len()), (4, 0), "{report:?}");
    assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "precious");
    assert!(fs::symlink_metadata(workspace.lower.join("d")).unwrap().is_dir());
    assert!(fs::symlink_metadata(workspace.lower.join("f")).unwrap().is_file());
    assert!(fs::symlink_metadata(workspace.lower.join("gone")).is_err());
}

#[test]
fn tangles_of_links_take_bounded_time() {
    let workspace = Workspace::new();
    let long = vec!["d"; 2000].join("/");
    for number in 0..2000 {
        symlink(&long, workspace.upper.join(format!("link{number}"))).unwrap();
    }
    symlink(".", workspace.upper.join("d")).unwrap();
    let changes = workspace.changes();
    assert_eq!(changes.list.len(), 2001);
}
