//! Only the user's own files are used: none of others, no link, none that is open to others.

use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};

use super::*;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn s3_only_what_is_the_users_own_and_closed_to_others_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "own").unwrap();
    mode(&file, 0o644);
    symlink(&file, &link).unwrap();
    assert_eq!(read_to_string(&file, Purpose::State).unwrap(), "own");
    assert!(matches!(open(&link, Purpose::State), Err(UntrustedPath::Link { .. })));
    assert!(matches!(open(&link, Purpose::Configuration), Err(UntrustedPath::Link { .. })));
    assert_eq!(read_to_string(&link, Purpose::OwnConfiguration).unwrap(), "own");
    for open_to_others in [0o664, 0o646, 0o666] {
        mode(&file, open_to_others);
        for (path, purpose) in [(&file, Purpose::State), (&link, Purpose::OwnConfiguration)] {
            let opened = open(path, purpose);
            assert!(matches!(opened, Err(UntrustedPath::Writable { .. })), "{open_to_others:o}");
        }
    }
    assert!(open(&directory.path().join("absent"), Purpose::State).unwrap_err().is_missing());
    assert!(matches!(
        open(directory.path(), Purpose::State),
        Err(UntrustedPath::Unexpected { .. })
    ));
}

#[test]
fn s3_a_stranger_is_told_apart_and_root_counts_for_configuration_only() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    mode(&file, 0o644);
    let found = fs::symlink_metadata(&file).unwrap();
    let other = user() + 1;
    for purpose in [Purpose::State, Purpose::Configuration, Purpose::OwnConfiguration] {
        assert!(judge(&file, &found, purpose, user()).is_ok());
        let is_root = found.uid() == 0;
        let judged = judge(&file, &found, purpose, other);
        assert_eq!(judged.is_ok(), is_root && purpose != Purpose::State, "{judged:?}");
    }
}

#[test]
fn s3_state_is_checked_down_to_its_last_file() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join(".belljar");
    assert!(!check_state(&state).unwrap());
    let mut directories = fs::DirBuilder::new();
    directories.recursive(true).mode(0o700).create(state.join("a/b")).unwrap();
    let file = state.join("a/b/c");
    fs::write(&file, "").unwrap();
    mode(&file, 0o600);
    assert!(check_state(&state).unwrap());
    mode(&file, 0o666);
    assert!(matches!(check_state(&state), Err(UntrustedPath::Writable { path }) if path == file));
    mode(&file, 0o600);
    mode(&state, 0o777);
    assert!(matches!(check_state(&state), Err(UntrustedPath::Writable { path }) if path == state));
    mode(&state, 0o700);
    assert!(is_private_directory(&state));
    symlink("c", state.join("a/b/link")).unwrap();
    assert!(matches!(check_state(&state), Err(UntrustedPath::Link { .. })));
}

#[test]
fn s3_state_is_not_used_where_others_could_exchange_it() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("place");
    let state = place.join(".belljar");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&state).unwrap();
    for closed in [0o700, 0o755, 0o1777, 0o1775] {
        mode(&place, closed);
        assert!(check_state(&state).unwrap(), "{closed:o}");
    }
    for open in [0o777, 0o757, 0o722] {
        mode(&place, open);
        let error = check_state(&state).unwrap_err();
        assert!(
            matches!(&error, UntrustedPath::PlaceWritable { path } if *path == place),
            "{open:o}"
        );
        let advice = format!("run: chmod go-w {}", place.display());
        assert!(error.to_string().ends_with(&advice), "{error}");
        assert!(check_place(&state).is_err(), "{open:o}");
    }
    mode(&place, 0o755);
    assert!(check_place(&state).is_ok());
}

#[test]
fn s3_a_group_of_ones_own_may_write_beside_state_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    mode(place, 0o775);
    let found = fs::symlink_metadata(place).unwrap();
    let (id, group) = (found.uid(), found.gid());
    let judged = |user: User| judge_place(place, &found, user);
    assert_eq!(judged(User { id, group }).is_ok(), id == group);
    let refused = judged(User { id, group: group + 1 });
    assert!(matches!(refused, Err(UntrustedPath::PlaceWritable { .. })), "{refused:?}");
    // Somebody else's directory, if it is not root's, is no place whatever its permissions are.
    let other = judged(User { id: id + 1, group: id + 1 });
    match id {
        0 => assert!(matches!(other, Err(UntrustedPath::PlaceWritable { .. })), "{other:?}"),
        _ => assert!(matches!(other, Err(UntrustedPath::PlaceOfStranger { .. })), "{other:?}"),
    }
    mode(place, 0o777);
    let found = fs::symlink_metadata(place).unwrap();
    assert!(judge_place(place, &found, User { id, group: id }).is_err());
}
