//! The token is made once, kept from others, and never shown by accident.

use super::*;

#[test]
fn e1_a_token_is_made_once_for_its_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".belljar/token");
    let token = BearerToken::at(&path).unwrap();
    assert_eq!(token.reveal().len(), 64);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(BearerToken::at(&path).unwrap(), token);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    assert_eq!(format!("{token:?}"), "BearerToken(…)");
    assert!(token.matches(fs::read_to_string(&path).unwrap().trim()));
    assert!(!token.matches("") && !token.matches(&"0".repeat(64)));
}

#[test]
fn a_token_others_can_read_or_guess_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    fs::write(&path, "short").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(BearerToken::at(&path), Err(TokenError::Shared { .. })));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(matches!(BearerToken::at(&path), Err(TokenError::Weak { .. })));
}

/// One that somebody else knows, or could put in its place, lets them in.
#[test]
fn s3_a_token_of_another_user_or_behind_a_link_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    let token = BearerToken::at(&path).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(
        BearerToken::at(&link),
        Err(TokenError::Untrusted(UntrustedPath::Link { .. }))
    ));
    let mode = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode));
    mode(0o777).unwrap();
    assert!(matches!(
        BearerToken::at(&path),
        Err(TokenError::Untrusted(UntrustedPath::Writable { .. }))
    ));
    mode(0o700).unwrap();
    assert_eq!(BearerToken::at(&path).unwrap(), token);
    // Only root gives things away.
    if std::os::unix::fs::chown(&path, Some(owner::user() + 1), None).is_ok() {
        let refused = BearerToken::at(&path);
        assert!(matches!(refused, Err(TokenError::Untrusted(UntrustedPath::Stranger { .. }))));
    }
}
