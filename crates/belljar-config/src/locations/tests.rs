//! Which directory is the project, and whose files count.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, lchown, symlink},
};

use super::ConfigLocations;

#[test]
fn the_project_is_the_nearest_directory_with_anything_in_it() {
    let top = tempfile::tempdir().unwrap();
    let deep = top.path().join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    let locations = |current: &std::path::Path| ConfigLocations {
        current: Some(current.to_owned()),
        ..ConfigLocations::default()
    };
    // Assumes that no directory above the test machine's temporary directory is a project.
    assert_eq!(locations(&deep).root().unwrap(), Some(deep.clone()));
    fs::create_dir(top.path().join(".belljar")).unwrap();
    assert_eq!(locations(&deep).root().unwrap().as_deref(), Some(top.path()));
    fs::write(top.path().join("a/.mcp.json"), "{}").unwrap();
    assert_eq!(locations(&deep).root().unwrap(), Some(top.path().join("a")));
    assert_eq!(locations(&deep).servers_file().unwrap(), Some(top.path().join("a/.mcp.json")));
    fs::write(top.path().join("a/b/belljar.toml"), "").unwrap();
    assert_eq!(locations(&deep).root().unwrap(), Some(top.path().join("a/b")));
    assert_eq!(locations(&deep).project_file().unwrap(), Some(top.path().join("a/b/belljar.toml")));
}

#[test]
fn s3_what_belongs_to_a_stranger_is_passed_over_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let locations = ConfigLocations {
        current: Some(directory.path().to_owned()),
        ..ConfigLocations::default()
    };
    let (file, state) = (directory.path().join(".mcp.json"), directory.path().join(".belljar"));
    fs::write(&file, "{}").unwrap();
    fs::create_dir(&state).unwrap();
    assert_eq!(locations.servers_file().unwrap().as_ref(), Some(&file));
    assert_eq!(locations.untrusted_files().len(), 0);
    // Only root can change a file's owner.
    let owner = belljar_paths::owner::user();
    if lchown(&file, Some(owner + 1), None).is_ok() {
        lchown(&state, Some(owner + 1), None).unwrap();
        assert_eq!(locations.servers_file().unwrap(), None);
        let told: Vec<_> = locations.untrusted_files().iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|text| text.contains(".mcp.json belongs to user")), "{told:?}");
        assert_eq!(told.len(), 2);
    }
}

#[test]
fn s3_own_files_that_others_could_have_changed_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let locations = ConfigLocations {
        current: Some(directory.path().to_owned()),
        ..ConfigLocations::default()
    };
    let (real, file) = (directory.path().join("real"), directory.path().join("belljar.toml"));
    fs::write(&file, "").unwrap();
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o664);
    let refused = locations.project_file().unwrap_err().to_string();
    assert!(refused.contains("chmod go-w"), "{refused}");
    mode(0o644);
    assert_eq!(locations.project_file().unwrap().as_ref(), Some(&file));
    fs::rename(&file, &real).unwrap();
    symlink(&real, &file).unwrap();
    let refused = locations.project_file().unwrap_err().to_string();
    assert!(refused.contains("is a link"), "{refused}");
}
