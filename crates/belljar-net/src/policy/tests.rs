//! Which rule decides, and what the name in a TLS connection has to be.

use super::*;

fn policy(patterns: &[&str]) -> NetPolicy {
    NetPolicy::of_patterns(patterns.iter().map(|text| text.parse().expect("a pattern")))
}

fn decision(policy: &NetPolicy, host: &str, port: u16) -> Result<String, NetRefusal> {
    let host = RemoteHost::parse(host).expect("a host");
    policy.rule_for(&host, port).map(|rule| rule.pattern.to_string())
}

#[test]
fn no_rule_is_no_network() {
    assert_eq!(decision(&policy(&[]), "example.org", 443), Err(NetRefusal::Host));
    assert_eq!(
        decision(&policy(&["example.org"]), "example.org", 443),
        Ok("example.org".to_owned())
    );
}

#[test]
fn a_rule_that_names_the_port_decides() {
    let policy = policy(&["*.example.org", "www.example.org:443", "db.example.org:5432"]);
    assert_eq!(decision(&policy, "www.example.org", 443), Ok("www.example.org:443".to_owned()));
    assert_eq!(decision(&policy, "www.example.org", 80), Ok("*.example.org".to_owned()));
    assert_eq!(decision(&policy, "db.example.org", 5433), Err(NetRefusal::Port));
    assert_eq!(decision(&policy, "example.org", 443), Err(NetRefusal::Host));
}

#[test]
fn only_a_rule_for_an_address_or_a_private_one_leads_to_addresses_that_are_not_public() {
    let rule = |text: &str, private| NetRule { pattern: text.parse().expect("a pattern"), private };
    let local: IpAddr = "10.0.0.1".parse().expect("an address");
    let public: IpAddr = "1.1.1.1".parse().expect("an address");
    assert_eq!(rule("example.org", false).check_address(public), Ok(()));
    assert_eq!(
        rule("example.org", false).check_address(local),
        Err(NetRefusal::Address { address: local, class: AddressClass::Private })
    );
    assert_eq!(rule("example.org", true).check_address(local), Ok(()));
    assert_eq!(rule("10.0.0.1", false).check_address(local), Ok(()));
}

#[test]
fn a_tls_client_has_to_show_the_name_that_was_allowed() {
    let name = RemoteHost::parse("example.org").expect("a host");
    let address = RemoteHost::parse("192.0.2.1").expect("a host");
    assert_eq!(check_server_name(&name, Some(b"Example.org")), Ok(()));
    assert_eq!(check_server_name(&address, None), Ok(()));
    assert_eq!(check_server_name(&name, None), Err(NetRefusal::NoServerName));
    for (host, shown) in [
        (&name, &b"evil.net"[..]),
        (&name, b""),
        (&name, b"example.org\0.evil.net"),
        (&name, b"\xff\xfe"),
        (&name, b"192.0.2.1"),
        (&address, b"192.0.2.1"),
        (&address, b"example.org"),
    ] {
        let refusal = check_server_name(host, Some(shown));
        assert!(matches!(refusal, Err(NetRefusal::OtherName { .. })), "{host} {shown:?}");
    }
}
