//! A5, N1: rules of several sources: flags add, and a project takes away.

use std::sync::Arc;

use super::*;
use crate::{NetPolicy, PathPattern, host::RemoteHost, policy::NetRefusal};

fn rule(pattern: &str) -> NetRule {
    NetRule::of_host(pattern.parse().expect("a pattern"))
}

fn of_requests(pattern: &str, methods: &[&str], paths: &[&str]) -> NetRule {
    let path = |path: &&str| path.parse::<PathPattern>().expect("a path pattern");
    NetRule {
        methods: methods.iter().map(|&method| method.to_owned()).collect(),
        paths: paths.iter().map(path).collect(),
        ..rule(pattern)
    }
}

fn shown(rules: &[NetRule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

fn allowing(patterns: &[&str]) -> NetRules {
    NetRules {
        allow: patterns.iter().map(|pattern| rule(pattern)).collect(),
        ..NetRules::default()
    }
}

#[test]
fn n1_a_project_allows_only_what_its_user_allows() {
    let user =
        NetRules { ask: vec![rule("pypi.org")], ..allowing(&["*.example.org", "a.test:8443"]) };
    let project = ProjectNetRules {
        allow: Some(vec![
            rule("api.example.org:443"),
            rule("*.other.test"),
            rule("a.test"),
            rule("pypi.org"),
        ]),
        deny: vec![rule("x.api.example.org")],
        ..ProjectNetRules::default()
    };
    let both = user.clone().narrowed_by(&project);
    assert_eq!(shown(&both.allow), ["api.example.org:443"]);
    assert_eq!(shown(&both.ask), ["pypi.org"]);
    assert_eq!(shown(&both.deny), ["x.api.example.org"]);
    // Control: a project without a word changes nothing, and one that allows nothing forbids all.
    assert_eq!(user.clone().narrowed_by(&ProjectNetRules::default()), user);
    let nothing = ProjectNetRules { allow: Some(Vec::new()), ..ProjectNetRules::default() };
    assert!(user.narrowed_by(&nothing).is_empty());
}

#[test]
fn n1_a_project_that_asks_does_not_widen() {
    let user = NetRules {
        allow: vec![
            NetRule { private: true, ..of_requests("api.test", &["GET", "HEAD"], &["/repos/**"]) },
            rule("b.test"),
        ],
        ..NetRules::default()
    };
    let project = ProjectNetRules {
        ask: vec![
            of_requests("api.test", &["GET", "POST"], &["/*/mine", "/other/**"]),
            rule("*.stranger.test"),
            NetRule { each: true, ..rule("b.test:443") },
        ],
        ..ProjectNetRules::default()
    };
    let both = user.narrowed_by(&project);
    assert_eq!(shown(&both.ask), ["GET api.test/repos/mine", "b.test:443"]);
    assert_eq!(both.ask.iter().map(|rule| rule.private).collect::<Vec<_>>(), [true, false]);
    assert_eq!(both.ask.iter().map(|rule| rule.each).collect::<Vec<_>>(), [false, true]);
    assert_eq!(shown(&both.allow), ["GET,HEAD api.test/repos/**", "b.test"]);
}

#[test]
fn n1_a_flag_adds_hosts_that_no_rule_allows() {
    let file = NetRules {
        allow: vec![of_requests("api.test", &["GET"], &["/repos/**"])],
        deny: vec![rule("bad.test")],
        ..NetRules::default()
    };
    let flags = ["api.test:443", "other.test", "bad.test"].map(|text| text.parse().expect("one"));
    let rules = file.with_hosts(flags.clone());
    // Only the file's rules for a host count.
    assert_eq!(shown(&rules.allow), ["GET api.test/repos/**", "other.test", "bad.test"]);
    let policy = NetPolicy::new(flags.to_vec(), Arc::new(rules));
    let decided =
        |host: &str| policy.decide_host(&RemoteHost::parse(host).expect("a host"), 443).err();
    assert_eq!(decided("other.test"), None);
    assert_eq!(decided("bad.test"), Some(NetRefusal::Denied));
    assert_eq!(decided("third.test"), Some(NetRefusal::Host));
}

#[test]
fn n1_what_may_be_reached_is_within_one_pattern() {
    let rules =
        NetRules { ask: vec![rule("pypi.org")], ..allowing(&["*.example.org", "a.test:443"]) };
    for (pattern, may) in [
        ("api.example.org", true),
        ("*.api.example.org:80", true),
        ("pypi.org", true),
        ("a.test:443", true),
        ("a.test", false),
        ("example.org", false),
        ("api.example.org:8443", false),
        ("192.0.2.1", false),
    ] {
        assert_eq!(rules.may_reach(&pattern.parse().expect("a pattern")), may, "{pattern}");
    }
}

/// The intersection of two path patterns matches exactly the paths that both match.
#[test]
fn n1_path_patterns_have_an_exact_intersection() {
    let parts = ["a", "b", "*", "**"];
    let mut patterns = vec!["/".to_owned()];
    for first in parts {
        patterns.push(format!("/{first}"));
        if first != "**" {
            patterns.extend(parts.iter().map(|second| format!("/{first}/{second}")));
            patterns.push(format!("/{first}/"));
        }
    }
    let paths = ["/", "/a", "/b", "/c", "/a/", "/c/", "/a/a", "/a/b", "/b/a", "/c/c", "/a/b/c"];
    for one in &patterns {
        for other in &patterns {
            let (one, other): (PathPattern, PathPattern) =
                (one.parse().expect("a pattern"), other.parse().expect("a pattern"));
            let both = one.both(&other);
            for path in paths {
                let expected = one.matches(path) && other.matches(path);
                let matches = both.as_ref().is_some_and(|both| both.matches(path));
                assert_eq!(matches, expected, "{one} and {other}: {path}: {both:?}");
            }
        }
    }
}
