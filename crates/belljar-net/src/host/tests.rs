//! Spellings of hosts: which mean the same, and which mean nothing.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<String, RemoteHostError> {
    RemoteHost::parse(text).map(|host| host.to_string())
}

#[test]
fn one_host_has_one_form() {
    for (text, form) in [
        ("example.org", "example.org"),
        ("EXAMPLE.Org", "example.org"),
        ("example.org.", "example.org"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("Bücher.example", "xn--bcher-kva.example"),
        ("localhost", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
        ("[::ffff:192.0.2.7]", "[::ffff:192.0.2.7]"),
    ] {
        assert_eq!(parse(text), Ok(form.to_owned()), "{text}");
    }
}

#[test]
fn look_alikes_are_other_names() {
    // Cyrillic а, and a fullwidth dot that is a dot.
    assert_eq!(parse("ex\u{430}mple.org"), Ok("xn--exmple-4nf.org".to_owned()));
    assert_eq!(parse("example\u{ff0e}org"), Ok("example.org".to_owned()));
}

#[test]
fn other_spellings_of_addresses_are_refused() {
    assert_eq!(parse("127.0.0.1"), Ok("127.0.0.1".to_owned()));
    for text in [
        "127.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "127.0.0.01",
        "127.0.0.1.",
        "1.2.3.4.5",
        "256.1.1.1",
        "example.0x7f",
        "example.7",
        "::1",
        "[127.0.0.1]",
        "[fe80::1%eth0]",
        "[::1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
    ] {
        assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
    }
}

#[test]
fn names_with_other_characters_are_refused() {
    let long_label = "a".repeat(64);
    let long_name = ["abcdefgh."; 30].concat() + "org";
    for text in [
        "",
        ".",
        "..",
        "example..org",
        ".example.org",
        "example.org..",
        "-a.org",
        "a-.org",
        "a b.org",
        "a\0.org",
        "a\r\n.org",
        "a%2eorg",
        "user@example.org",
        "example.org/",
        "example.org:80",
        "a_b.org",
        "*.org",
        "a#b",
        "a?b",
        "a\\b",
        long_label.as_str(),
        long_name.as_str(),
    ] {
        assert!(parse(text).is_err(), "{text:?}: {:?}", parse(text));
    }
}

proptest! {
    #[test]
    fn canonical_forms_read_as_themselves(text in "\\PC{0,40}") {
        if let Ok(host) = RemoteHost::parse(&text) {
            prop_assert_eq!(RemoteHost::parse(&host.to_string()), Ok(host.clone()));
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:[]".contains(&byte);
            prop_assert!(host.to_string().bytes().all(is_plain));
        }
    }

    #[test]
    fn numbers_are_never_names(text in "(0x)?[0-9a-f.]{1,20}[0-9]") {
        // Browsers and C libraries read these as addresses, so only the usual spelling is taken at all.
        if let Ok(host) = RemoteHost::parse(&text)
            && text.rsplit('.').next().is_some_and(|last| last.bytes().all(|it| it.is_ascii_digit()))
        {
            prop_assert!(matches!(host, RemoteHost::Address(_)), "{}", text);
        }
    }

    #[test]
    fn beneath_means_whole_labels(label in "[a-z]{1,8}", parent in "[a-z]{1,8}\\.[a-z]{2,4}") {
        let parent_name = DomainName::parse(&parent).expect("a name");
        let is_beneath = |text: String| DomainName::parse(&text).expect("a name").is_beneath(&parent_name);
        let beneath = [format!("{label}.{parent}"), format!("{label}.{label}.{parent}")];
        prop_assert!(beneath.into_iter().all(is_beneath));
        let others = [format!("{label}{parent}"), format!("{parent}.{label}"), parent.clone()];
        prop_assert!(!others.into_iter().any(is_beneath));
    }
}
