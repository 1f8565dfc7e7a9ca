//! A protected path is recognised under every name that leads to it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use super::{
    DevicePath, Mount, MountTable, ProtectedSet, ProtectedSubpaths, Relation, identity_of,
};

fn relation(protected: &[PathBuf], path: &Path) -> Relation {
    let identity = identity_of(path).unwrap();
    ProtectedSet::resolve(protected).unwrap().relation(path, identity)
}

fn around(covered: &[&str], kept: &[&str]) -> Relation {
    let owned = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
    Relation::Around(ProtectedSubpaths { covered: owned(covered), kept: owned(kept) })
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    for inner in ["project/.belljar/deep", "project/src", "other"] {
        fs::create_dir_all(path.join(inner)).unwrap();
    }
    (directory, path)
}

#[test]
fn a_tree_is_apart_from_inside_or_around_what_is_protected() {
    let (_directory, root) = directory();
    let state = root.join("project/.belljar");
    let protected = [state.clone(), root.join("project/.mcp.json")];
    let both = [".belljar", ".mcp.json"];
    assert_eq!(relation(&protected, &root.join("project")), around(&both, &both));
    let both = ["project/.belljar", "project/.mcp.json"];
    assert_eq!(relation(&protected, &root), around(&both, &both));
    assert_eq!(relation(&protected, &root.join("other")), Relation::Apart);
    assert_eq!(relation(&protected, &root.join("project/src")), Relation::Apart);
    for inside in ["project/.belljar", "project/.belljar/deep"] {
        assert_eq!(relation(&protected, &root.join(inside)), Relation::Inside(state.clone()));
    }
    assert_eq!(relation(&[], &root), Relation::Apart);
}

#[test]
fn what_lies_in_another_needs_no_cover_of_its_own() {
    let (_directory, root) = directory();
    let protected = [root.join("project/.belljar/deep"), root.join("project/.belljar")];
    let expected = around(&[".belljar"], &[".belljar", ".belljar/deep"]);
    assert_eq!(relation(&protected, &root.join("project")), expected);
}

#[test]
fn every_link_on_the_way_is_kept_and_what_they_lead_to_is_covered() {
    let (_directory, root) = directory();
    fs::create_dir(root.join("project/state")).unwrap();
    symlink("second", root.join("project/first")).unwrap();
    symlink("state", root.join("project/second")).unwrap();
    let protected = [root.join("project/first")];
    let all = ["first", "second", "state"];
    assert_eq!(relation(&protected, &root.join("project")), around(&all, &all));
    let protected = [root.join("project/first/db")];
    let kept = ["first/db", "second/db", "state/db"];
    assert_eq!(relation(&protected, &root.join("project")), around(&["state/db"], &kept));
}

#[test]
fn links_out_of_the_project_take_the_protection_with_them() {
    let (_directory, root) = directory();
    symlink("../../other/state", root.join("project/.belljar/link")).unwrap();
    let protected = [root.join("project/.belljar/link")];
    assert_eq!(relation(&protected, &root.join("other")), around(&["state"], &["state"]));
    // It did not exist when the paths were resolved first.
    fs::create_dir(root.join("other/state")).unwrap();
    let inside = Relation::Inside(root.join("other/state"));
    let found = relation(&protected, &root.join("other/state"));
    assert!(matches!(found, Relation::Inside(_)), "{found:?} is not {inside:?}");
}

#[test]
fn another_spelling_and_another_name_of_the_same_file_are_the_same() {
    let (_directory, root) = directory();
    symlink(root.join("project"), root.join("alias")).unwrap();
    let protected = [root.join("alias/./src/../.mcp.json")];
    fs::write(root.join("project/.mcp.json"), "{}").unwrap();
    let found = relation(&protected, &root.join("project"));
    let Relation::Around(inner) = found else { panic!("{found:?}") };
    assert_eq!(inner.covered, [PathBuf::from(".mcp.json")]);
    fs::hard_link(root.join("project/.mcp.json"), root.join("other/copy")).unwrap();
    let found = relation(&protected, &root.join("other/copy"));
    assert!(matches!(found, Relation::Inside(_)), "{found:?}");
}

#[test]
fn a_circle_of_links_ends() {
    let (_directory, root) = directory();
    symlink("b", root.join("a")).unwrap();
    symlink("a", root.join("b")).unwrap();
    let found = relation(&[root.join("a")], &root);
    assert!(matches!(&found, Relation::Around(inner) if inner.covered.len() == 2), "{found:?}");
}

const TABLE: &[u8] = b"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
    30 21 8:2 / /home rw shared:1 - ext4 /dev/sda2 rw\n\
    31 21 8:2 /u/my\\040project /mnt/alias rw - ext4 /dev/sda2 rw\n\
    32 21 8:2 /u/my\\040project/.belljar/deep /mnt/deep rw - ext4 /dev/sda2 rw\n\
    33 21 0:40 / /mnt/other rw - tmpfs tmpfs rw\n";

#[test]
fn the_table_of_mounts_says_where_a_path_is() {
    let mounts = MountTable::parse(TABLE);
    let place =
        |device: &str, path: &str| Some(DevicePath { device: device.into(), path: path.into() });
    assert_eq!(mounts.place(Path::new("/etc/x")), place("8:1", "/etc/x"));
    assert_eq!(mounts.place(Path::new("/home/u")), place("8:2", "/u"));
    assert_eq!(mounts.place(Path::new("/mnt/alias/x")), place("8:2", "/u/my project/x"));
    let at: Vec<_> =
        mounts.parts(Path::new("/mnt")).into_iter().map(|Mount { at, .. }| at).collect();
    assert_eq!(at, ["", "alias", "deep", "other"].map(PathBuf::from));
}

#[test]
fn mounts_of_the_same_files_elsewhere_are_found() {
    let path = Path::new("/home/u/my project/.belljar");
    let mut protected = ProtectedSet::resolve(&[path.to_owned()]).unwrap();
    protected.mounts = MountTable::parse(TABLE);
    let nobody = (u64::MAX, u64::MAX);
    let relation = |path: &str| protected.relation(Path::new(path), nobody);
    assert_eq!(relation("/mnt/alias"), around(&[".belljar"], &[".belljar"]));
    let all = ["alias/.belljar", "deep"];
    assert_eq!(relation("/mnt"), around(&all, &all));
    assert_eq!(relation("/mnt/deep"), Relation::Inside(path.to_owned()));
    assert_eq!(relation("/mnt/deep/er"), Relation::Inside(path.to_owned()));
    assert_eq!(relation("/mnt/other"), Relation::Apart);
}
