//! The hosts that patterns name, and malformed patterns.

use super::*;

fn pattern(text: &str) -> HostPattern {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn host(text: &str) -> RemoteHost {
    RemoteHost::parse(text).expect("a host")
}

#[test]
fn patterns_name_what_they_say() {
    let cases = [
        ("example.org", "example.org", true),
        ("Example.ORG.", "example.org", true),
        ("example.org", "EXAMPLE.org.", true),
        ("example.org", "www.example.org", false),
        ("example.org", "example.org.evil.net", false),
        ("example.org", "notexample.org", false),
        ("*.example.org", "www.example.org", true),
        ("*.example.org", "a.b.c.example.org", true),
        ("*.example.org", "example.org", false),
        ("*.example.org", "notexample.org", false),
        ("*.example.org", "www.example.org.evil.net", false),
        ("bücher.example", "xn--bcher-kva.example", true),
        ("192.0.2.1", "192.0.2.1", true),
        ("192.0.2.1", "[::ffff:192.0.2.1]", false),
        ("[2001:db8::1]", "[2001:db8:0::1]", true),
    ];
    for (text, named, expected) in cases {
        assert_eq!(pattern(text).names(&host(named)), expected, "{text} and {named}");
    }
}

#[test]
fn ports_are_the_usual_ones_or_the_one_named() {
    for (text, allowed, refused) in [
        ("example.org", &[80, 443][..], &[22, 8080, 8443][..]),
        ("example.org:8443", &[8443], &[80, 443]),
        ("*.example.org:22", &[22], &[80, 443]),
        ("[::1]:8080", &[8080], &[80]),
    ] {
        let pattern = pattern(text);
        assert!(allowed.iter().all(|port| pattern.allows_port(*port)), "{text}");
        assert!(!refused.iter().any(|port| pattern.allows_port(*port)), "{text}");
        assert_eq!(pattern.to_string(), text);
    }
}

#[test]
fn malformed_patterns_are_errors() {
    for text in [
        "",
        "*",
        "*.",
        "*.*",
        "a*.org",
        "www.*.org",
        "*.*.org",
        "*example.org",
        "*.127.0.0.1",
        "*.[::1]",
        "https://example.org",
        "example.org/path",
        "user@example.org",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org:+80",
        "example.org:080",
        "example.org:http",
        ":80",
        "::1",
        "::1:80",
        "127.1",
        "0x7f.1",
        "2130706433",
        "a b",
        "a\0b",
        "example.org,evil.net",
        "10.0.0.0/8",
        "-a.org",
    ] {
        assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
    }
}

#[test]
fn errors_say_what_to_write() {
    let error = |text: &str| text.parse::<HostPattern>().expect_err("malformed").to_string();
    assert_eq!(
        error("https://example.org"),
        "`https://example.org`: name a host, not a URL, as in example.org or example.org:8443"
    );
    assert_eq!(
        error("www.*.org"),
        "`www.*.org`: a star can only stand for the first part of a name, as in *.example.org"
    );
    assert_eq!(
        error("127.1"),
        "`127.1`: write an IPv4 address as four decimal numbers, an IPv6 address in brackets"
    );
    assert_eq!(error("a.org:x"), "`a.org:x`: the port must be a number from 1 to 65535");
}

#[test]
fn e2_a_pattern_contains_only_what_it_allows() {
    let contains = |own: &str, other: &str| {
        let own: HostPattern = own.parse().expect("a pattern");
        own.contains(&other.parse().expect("a pattern"))
    };
    assert!(contains("example.org", "example.org"));
    assert!(contains("example.org", "EXAMPLE.org.:443"));
    assert!(!contains("example.org", "example.org:8443"));
    assert!(!contains("example.org:443", "example.org"));
    assert!(contains("*.example.org", "*.www.example.org"));
    assert!(contains("*.example.org", "*.example.org"));
    assert!(contains("*.example.org", "www.example.org:80"));
    assert!(!contains("*.example.org", "example.org"));
    assert!(!contains("www.example.org", "*.www.example.org"));
    assert!(!contains("*.example.org", "*.org"));
    assert!(contains("192.0.2.1", "192.0.2.1"));
    assert!(!contains("192.0.2.1", "192.0.2.2"));
}
