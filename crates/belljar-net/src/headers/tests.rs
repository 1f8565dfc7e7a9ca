//! Headers that a rule sets.

use super::*;
use crate::rules::Secret;

fn rule(name: &str, value: &str) -> HeaderRule {
    HeaderRule { name: name.to_owned(), value: Secret::new(value.to_owned()) }
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    pairs.collect()
}

#[test]
fn a_rules_header_replaces_all_that_the_guest_has_sent() {
    let mut sent = headers(&[
        ("x-api-key", "guess"),
        ("x_api_key", "guess"),
        ("x-api_key", "guess"),
        ("x-api", "kept"),
        ("range", "bytes=0-3"),
        ("if-range", "x"),
        ("accept-encoding", "gzip"),
    ]);
    sent.append("x-api-key", HeaderValue::from_static("guess again"));
    set(&mut sent, &[rule("x-api-key", "secret value")]).unwrap();
    let expected = headers(&[
        ("x-api", "kept"),
        ("accept-encoding", "identity"),
        ("x-api-key", "secret value"),
    ]);
    assert_eq!(sent, expected);
    assert!(!format!("{sent:?}").contains("secret"));
}

#[test]
fn without_a_rules_header_nothing_changes() {
    let sent = headers(&[("range", "bytes=0-3"), ("accept-encoding", "gzip")]);
    let mut changed = sent.clone();
    set(&mut changed, &[]).unwrap();
    assert_eq!(changed, sent);
}

#[test]
fn a_header_that_frames_or_is_malformed_cannot_be_set() {
    for (name, value) in [
        ("host", "example.net"),
        ("content-length", "0"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("proxy-connection", "close"),
        ("a b", "value"),
        ("", "value"),
        ("x-key", "two\r\nx-lines: 1"),
        ("x-key", "nul\0"),
    ] {
        assert!(checked(&rule(name, value)).is_err(), "{name}: {value}");
    }
    // Control.
    assert!(checked(&rule("x-key", "one line")).is_ok());
}
