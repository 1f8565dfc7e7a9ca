//! Which directory is the project, and whose files count.

use std::{
    fs,
    os::unix::fs::{lchown, symlink},
};

use super::{Places, is_there};

#[test]
fn the_project_is_the_nearest_directory_with_anything_in_it() {
    let top = tempfile::tempdir().unwrap();
    let deep = top.path().join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    let places = |current: &std::path::Path| Places {
        current: Some(current.to_owned()),
        ..Places::default()
    };
    // Nothing up to the root of a test machine, one hopes.
    assert_eq!(places(&deep).root(), Some(deep.clone()));
    fs::create_dir(top.path().join(".belljar")).unwrap();
    assert_eq!(places(&deep).root().as_deref(), Some(top.path()));
    fs::write(top.path().join("a/.mcp.json"), "{}").unwrap();
    assert_eq!(places(&deep).root(), Some(top.path().join("a")));
    assert_eq!(places(&deep).servers_file(), Some(top.path().join("a/.mcp.json")));
    fs::write(top.path().join("a/b/belljar.toml"), "").unwrap();
    assert_eq!(places(&deep).root(), Some(top.path().join("a/b")));
    assert_eq!(places(&deep).project_file(), Some(top.path().join("a/b/belljar.toml")));
}

#[test]
fn what_belongs_to_a_stranger_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(".mcp.json"), "{}").unwrap();
    let owner = rustix::process::geteuid().as_raw();
    assert!(is_there(directory.path(), ".mcp.json", &[owner]));
    assert!(!is_there(directory.path(), ".mcp.json", &[owner + 1]));
}

#[test]
fn a_link_belongs_to_who_made_it() {
    let owner = rustix::process::geteuid().as_raw();
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join(".mcp.json"));
    fs::write(&file, "{}").unwrap();
    symlink(&file, &link).unwrap();
    assert!(is_there(directory.path(), ".mcp.json", &[owner]));
    // Only root gives things away.
    if lchown(&link, Some(owner + 1), None).is_ok() {
        assert!(!is_there(directory.path(), ".mcp.json", &[owner]));
    }
}
