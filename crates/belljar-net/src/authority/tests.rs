//! The certificates that an authority issues.

use super::*;

#[test]
fn a_host_gets_one_certificate_and_the_cache_is_bounded() {
    let authority = RunAuthority::new(SystemTime::now()).unwrap();
    let config = |name: &str| authority.server_config(&RemoteHost::parse(name).unwrap()).unwrap();
    let first = config("example.org");
    assert!(Arc::ptr_eq(&first, &config("example.org")));
    assert!(!Arc::ptr_eq(&first, &config("www.example.org")));
    for number in 0..2 * MAX_CACHED {
        config(&format!("n{number}.example.org"));
    }
    assert!(authority.configs.lock().unwrap().len() <= MAX_CACHED);
}

#[test]
fn the_certificate_can_be_shown_and_the_key_cannot() {
    let authority = RunAuthority::new(SystemTime::now()).unwrap();
    assert!(authority.certificate_pem().starts_with("-----BEGIN CERTIFICATE-----\n"));
    assert_eq!(format!("{authority:?}"), "RunAuthority { .. }");
}
