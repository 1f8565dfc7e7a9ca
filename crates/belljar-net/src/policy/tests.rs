//! Which rule decides, and what the name in a TLS connection has to be.

use super::*;
use crate::rules::{HeaderRule, Secret};

fn policy(patterns: &[&str]) -> NetPolicy {
    NetPolicy::of_patterns(patterns.iter().map(|text| text.parse().expect("a pattern")))
}

fn decision(policy: &NetPolicy, host: &str, port: u16) -> Result<String, NetRefusal> {
    let host = RemoteHost::parse(host).expect("a host");
    policy.decide_host(&host, port).map(|decision| match decision {
        HostDecision::Allow(rule) => rule.to_string(),
        HostDecision::Ask(rule) => format!("ask {rule}"),
        HostDecision::EachRequest(rule) => format!("each {rule}"),
    })
}

fn request(policy: &NetPolicy, method: &str, path: &str) -> Result<String, NetRefusal> {
    let host = RemoteHost::parse("api.example.org").expect("a host");
    policy.decide_request(&host, 443, method, path).map(|decision| match decision {
        RequestDecision::Allow(rule) => rule.to_string(),
        RequestDecision::Ask(rule) => format!("ask {rule}"),
    })
}

fn rule(pattern: &str) -> NetRule {
    NetRule::of_host(pattern.parse().expect("a pattern"))
}

fn rule_of_requests(pattern: &str, methods: &[&str], paths: &[&str]) -> NetRule {
    NetRule {
        methods: methods.iter().map(|&method| method.to_owned()).collect(),
        paths: paths.iter().map(|path| path.parse().expect("a path")).collect(),
        ..rule(pattern)
    }
}

fn granted(patterns: &[&str], rules: NetRules) -> NetPolicy {
    let patterns = patterns.iter().map(|text| text.parse().expect("a pattern"));
    NetPolicy::new(patterns.collect(), Arc::new(rules))
}

#[test]
fn a5_deny_comes_before_ask_and_ask_before_allow() {
    let rules = NetRules {
        allow: vec![rule("*.example.org"), rule("db.example.org:5432")],
        ask: vec![rule("www.example.org")],
        deny: vec![rule("evil.example.org"), rule("db.example.org")],
    };
    let policy = granted(&["*.example.org", "db.example.org:5432"], rules);
    assert_eq!(decision(&policy, "a.example.org", 443), Ok("*.example.org".to_owned()));
    assert_eq!(decision(&policy, "www.example.org", 443), Ok("ask www.example.org".to_owned()));
    assert_eq!(decision(&policy, "evil.example.org", 443), Err(NetRefusal::Denied));
    // A denial that names no port is about all of them.
    assert_eq!(decision(&policy, "db.example.org", 5432), Err(NetRefusal::Denied));
}

#[test]
fn e2_a_request_gets_no_more_than_it_was_granted_and_no_more_than_the_rules() {
    let rules = || NetRules { allow: vec![rule("*.example.org")], ..NetRules::default() };
    let policy = granted(&["api.example.org", "example.net"], rules());
    assert_eq!(decision(&policy, "api.example.org", 443), Ok("*.example.org".to_owned()));
    assert_eq!(decision(&policy, "www.example.org", 443), Err(NetRefusal::Host));
    assert_eq!(decision(&policy, "example.net", 443), Err(NetRefusal::Host));
    assert!(granted(&[], rules()).is_empty());
    assert!(granted(&["example.net"], NetRules::default()).is_empty());
}

#[test]
fn a5_requests_are_decided_one_by_one_where_a_rule_is_about_requests() {
    let rules = NetRules {
        allow: vec![rule_of_requests("api.example.org", &["GET"], &["/repos/**"])],
        ask: vec![rule_of_requests("api.example.org", &["POST"], &["/repos/*/issues"])],
        deny: vec![rule_of_requests("api.example.org", &[], &["/repos/secret/**"])],
    };
    let policy = granted(&["api.example.org"], rules);
    let each = Ok("each GET api.example.org/repos/**".to_owned());
    assert_eq!(decision(&policy, "api.example.org", 443), each);
    let allowed = Ok("GET api.example.org/repos/**".to_owned());
    assert_eq!(request(&policy, "GET", "/repos/belljar/issues"), allowed);
    let asked = Ok("ask POST api.example.org/repos/*/issues".to_owned());
    assert_eq!(request(&policy, "POST", "/repos/belljar/issues"), asked);
    assert_eq!(request(&policy, "DELETE", "/repos/belljar/issues"), Err(NetRefusal::Request));
    assert_eq!(request(&policy, "GET", "/user"), Err(NetRefusal::Request));
    assert_eq!(request(&policy, "GET", "/repos/secret/x"), Err(NetRefusal::Denied));
    assert_eq!(request(&policy, "GET", "/repos/a/../../user"), Err(NetRefusal::Reading));
}

#[test]
fn a5_a_denial_of_requests_makes_the_proxy_see_all_of_them() {
    let rules = NetRules {
        allow: vec![rule("api.example.org")],
        deny: vec![rule_of_requests("api.example.org", &["DELETE"], &[])],
        ..NetRules::default()
    };
    let policy = granted(&["api.example.org"], rules);
    assert_eq!(decision(&policy, "api.example.org", 443), Ok("each api.example.org".to_owned()));
    assert_eq!(request(&policy, "GET", "/"), Ok("api.example.org".to_owned()));
    // Some servers take a method in any case.
    for method in ["DELETE", "delete", "Delete"] {
        assert_eq!(request(&policy, method, "/"), Err(NetRefusal::Denied), "{method}");
    }
}

#[test]
fn n4_what_asks_or_denies_counts_in_every_reading_of_a_request() {
    let rules = NetRules {
        allow: vec![rule("api.example.org")],
        ask: vec![rule_of_requests("api.example.org", &["POST"], &["/issues"])],
        deny: vec![rule_of_requests("api.example.org", &[], &["/admin/**"])],
    };
    let policy = granted(&["api.example.org"], rules);
    for path in ["/admin/x", "/%61dmin/x", "/Admin/x", "/admin;a=b/x", "/admin"] {
        assert_eq!(request(&policy, "GET", path), Err(NetRefusal::Denied), "{path}");
    }
    let asked = Ok("ask POST api.example.org/issues".to_owned());
    assert_eq!(request(&policy, "POST", "/issues"), asked);
    // A yes to the rule is not one to these.
    for (method, path) in [("post", "/issues"), ("POST", "/%69ssues"), ("POST", "/issues/")] {
        assert_eq!(request(&policy, method, path), Err(NetRefusal::Reading), "{method} {path}");
    }
    // Controls.
    for (method, path) in [("GET", "/public/admin"), ("GET", "/issues"), ("POST", "/other")] {
        assert_eq!(request(&policy, method, path), Ok("api.example.org".to_owned()), "{path}");
    }
    // An allow rule matches only as it is written.
    let rules = NetRules {
        allow: vec![rule_of_requests("api.example.org", &["GET"], &["/public"])],
        ..NetRules::default()
    };
    let policy = granted(&["api.example.org"], rules);
    for (method, path) in [("get", "/public"), ("GET", "/Public"), ("GET", "/public/")] {
        assert_eq!(request(&policy, method, path), Err(NetRefusal::Request), "{method} {path}");
    }
    request(&policy, "GET", "/public").expect("the control");
}

#[test]
fn n4_headers_need_an_exact_host_https_methods_and_paths() {
    let headers = |rule: NetRule| {
        let value = Secret::new("Bearer 1".to_owned());
        NetRule { headers: vec![HeaderRule { name: "authorization".to_owned(), value }], ..rule }
    };
    let good = headers(rule_of_requests("api.example.org", &["GET"], &["/**"]));
    assert!(!format!("{good:?}").contains("Bearer"));
    good.checked().expect("a rule");
    for bad in [
        headers(rule_of_requests("*.example.org", &["GET"], &["/**"])),
        headers(rule_of_requests("api.example.org", &[], &["/**"])),
        headers(rule_of_requests("api.example.org", &["GET"], &[])),
        headers(rule_of_requests("api.example.org:80", &["GET"], &["/**"])),
        rule_of_requests("api.example.org", &["TRACE"], &[]),
        rule_of_requests("api.example.org", &["get"], &[]),
    ] {
        bad.checked().expect_err("a malformed rule");
    }
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
    let rule = |text: &str, private| NetRule { private, ..rule(text) };
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
fn n3_a_name_never_leads_to_a_metadata_service() {
    let private = NetRule { private: true, ..rule("example.org") };
    for (text, written) in [
        ("169.254.169.254", "169.254.169.254"),
        ("168.63.129.16", "168.63.129.16"),
        ("100.100.100.200", "100.100.100.200"),
        ("fd00:ec2::254", "[fd00:ec2::254]"),
        ("fe80::a9fe:a9fe", "[fe80::a9fe:a9fe]"),
        ("::ffff:169.254.169.254", "[::ffff:169.254.169.254]"),
        ("64:ff9b::169.254.169.254", "[64:ff9b::169.254.169.254]"),
    ] {
        let address = text.parse().expect("an address");
        let refusal = private.check_address(address);
        assert!(matches!(refusal, Err(NetRefusal::Address { .. })), "{text}: {refusal:?}");
        // Control: an operator who means it can say so.
        assert_eq!(rule(written).check_address(address), Ok(()), "{text}");
    }
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

#[test]
fn only_rules_about_granted_hosts_need_an_authority() {
    let seen = |hosts: &[&str], pattern: &str, is_deny: bool| {
        let rule = rule_of_requests(pattern, &["GET"], &[]);
        let lists = if is_deny { (Vec::new(), vec![rule]) } else { (vec![rule], Vec::new()) };
        let allow = [lists.0, vec![NetRule::of_host("*.example.net".parse().unwrap())]].concat();
        let rules = NetRules { allow, deny: lists.1, ..NetRules::default() };
        granted(hosts, rules).sees_requests()
    };
    for is_deny in [false, true] {
        for (hosts, pattern) in [
            (&["a.example.org"][..], "a.example.org"),
            (&["a.example.org"], "*.example.org"),
            (&["*.example.org"], "a.example.org"),
            (&["b.example.net", "*.example.org:8443"], "*.a.example.org"),
        ] {
            assert!(seen(hosts, pattern, is_deny), "{hosts:?} {pattern}");
        }
        for (hosts, pattern) in [
            (&["b.example.net"][..], "a.example.org"),
            (&["example.org"], "*.example.org"),
            (&["192.0.2.1"], "*.example.org"),
        ] {
            assert!(!seen(hosts, pattern, is_deny), "{hosts:?} {pattern}");
        }
    }
}
