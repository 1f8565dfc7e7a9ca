//! The decision function: what wins, and that nothing widens it.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    Glob, Overrides, PolicyDecision, PolicyRule, PolicyVerdict, ToolGrants, ToolPolicy, Trust,
};
use crate::{Annotations, PolicySubject, Tool};

fn tool(server: &str, name: &str, annotations: Annotations) -> Tool {
    Tool { annotations, ..Tool::bare(server, name) }
}

fn hints(read_only: Option<bool>, destructive: Option<bool>) -> Annotations {
    Annotations { read_only, destructive, ..Annotations::default() }
}

fn policy(text: &str) -> ToolPolicy {
    toml::from_str(text).unwrap()
}

fn decide(policy: &ToolPolicy, name: &str, arguments: &Value) -> PolicyDecision {
    let (server, name) = name.split_once("__").unwrap();
    policy.decide(
        &tool(server, name, Annotations::default()),
        Trust::Untrusted,
        &Overrides::default(),
        arguments.as_object().unwrap(),
        &ToolGrants::default(),
    )
}

#[test]
fn deny_comes_before_ask_before_allow() {
    let rules = policy("allow = ['fs__*']\nask = ['fs__write_*']\ndeny = ['fs__write_secret']");
    for (name, verdict) in [
        ("fs__read_file", PolicyVerdict::Allow),
        ("fs__write_file", PolicyVerdict::Ask),
        ("fs__write_secret", PolicyVerdict::Deny),
        ("git__log", PolicyVerdict::Ask),
    ] {
        assert_eq!(decide(&rules, name, &json!({})).verdict, verdict, "{name}");
    }
    assert_eq!(
        decide(&rules, "fs__write_secret", &json!({})).reason,
        "the operator's policy denies `fs__write_secret`"
    );
}

#[test]
fn defaults_believe_only_trusted_servers_and_the_operator() {
    let none = ToolPolicy::default();
    let cases = [
        (Trust::Untrusted, hints(Some(true), Some(false)), PolicyVerdict::Ask),
        (Trust::Trusted, hints(None, None), PolicyVerdict::Ask),
        (Trust::Trusted, hints(Some(false), None), PolicyVerdict::Ask),
        (Trust::Trusted, hints(Some(false), Some(true)), PolicyVerdict::Ask),
        (Trust::Trusted, hints(Some(true), None), PolicyVerdict::Allow),
        (Trust::Trusted, hints(None, Some(false)), PolicyVerdict::Allow),
    ];
    for (trust, annotations, verdict) in cases {
        let tool = tool("s", "t", annotations);
        let (overrides, grants) = (Overrides::default(), ToolGrants::default());
        let decision = none.decide(&tool, trust, &overrides, &Map::new(), &grants);
        assert_eq!(decision.verdict, verdict, "{trust:?} {annotations:?}");
    }
    let overrides = Overrides { read_only: vec!["s__*".into()], idempotent: vec!["x__put".into()] };
    let asked = tool("s", "t", hints(None, Some(true)));
    let decision =
        none.decide(&asked, Trust::Untrusted, &overrides, &Map::new(), &ToolGrants::default());
    assert_eq!(decision.verdict, PolicyVerdict::Allow);
    assert!(overrides.is_idempotent(&tool("x", "put", hints(None, None)), Trust::Untrusted));
    assert!(overrides.is_idempotent(&asked, Trust::Untrusted));
    assert!(!overrides.is_read_only(&tool("x", "put", hints(Some(true), None)), Trust::Untrusted));
}

#[test]
fn a_grant_turns_a_default_ask_into_allow_and_nothing_else() {
    let rules = policy("ask = ['a__asked']\ndeny = ['a__denied']");
    let grants = ToolGrants { only: Some(vec!["a__*".into()]), given: vec!["*".into()] };
    let verdict = |server: &str, name: &str| {
        let tool = tool(server, name, Annotations::default());
        rules.decide(&tool, Trust::Untrusted, &Overrides::default(), &Map::new(), &grants)
    };
    assert_eq!(verdict("a", "other").verdict, PolicyVerdict::Allow);
    assert_eq!(verdict("a", "asked").verdict, PolicyVerdict::Ask);
    assert_eq!(verdict("a", "denied").verdict, PolicyVerdict::Deny);
    let outside = verdict("b", "other");
    assert_eq!(outside.verdict, PolicyVerdict::Deny);
    assert_eq!(outside.reason, "this run may use only the tools it was given");
}

#[test]
fn conditions_look_at_arguments() {
    let rules = policy(
        r#"
        allow = [{ tool = "fs__write_file", when = { path = "/tmp/*" } },
                 { tool = "db__query", when = { options.limit = 10, "options.dry" = true } }]
        deny = [{ tool = "fs__*", when = { path = "/etc/*" } }]
        "#,
    );
    let write = |path: Value| decide(&rules, "fs__write_file", &json!({"path": path})).verdict;
    assert_eq!(write(json!("/tmp/a/b.txt")), PolicyVerdict::Allow);
    assert_eq!(write(json!("/home/a")), PolicyVerdict::Ask);
    assert_eq!(write(json!("/etc/passwd")), PolicyVerdict::Deny);
    assert_eq!(write(json!(7)), PolicyVerdict::Ask);
    assert_eq!(decide(&rules, "fs__write_file", &json!({})).verdict, PolicyVerdict::Ask);
    let query = |options: Value| decide(&rules, "db__query", &options).verdict;
    assert_eq!(query(json!({"options": {"limit": 10.0, "dry": true}})), PolicyVerdict::Allow);
    assert_eq!(query(json!({"options": {"limit": 11, "dry": true}})), PolicyVerdict::Ask);
    assert_eq!(query(json!({"options": {"limit": 10}})), PolicyVerdict::Ask);
    // A second spelling of the same argument cannot vouch for the first.
    assert_eq!(
        query(json!({"options.dry": true, "options": {"limit": 10, "dry": false}})),
        PolicyVerdict::Ask
    );
}

#[test]
fn a_path_that_climbs_never_matches_an_allow_and_cannot_hide_from_a_deny() {
    let rules = policy(
        "allow = [{ tool = 'fs__*', when = { path = '/tmp/*' } }]\n\
         deny = [{ tool = 'fs__*', when = { path = '/etc/*' } }]",
    );
    let verdict = |path: &str| decide(&rules, "fs__read", &json!({"path": path})).verdict;
    for path in [
        "/tmp/../home",
        "/tmp/a/..",
        "/tmp/..\\x",
        "/tmp/%2e%2e/x",
        "/tmp/%252e./x",
        "/tmp/.. /x",
        "/tmp/a\0b",
        "/tmp/..%2fx",
    ] {
        assert_eq!(verdict(path), PolicyVerdict::Ask, "{path}");
    }
    for path in ["/tmp/../etc/passwd", "//etc/passwd", "/etc/./passwd", "/./etc/x", "/../etc/x"] {
        assert_eq!(verdict(path), PolicyVerdict::Deny, "{path}");
    }
    assert_eq!(verdict("/tmp/a..b/...c"), PolicyVerdict::Allow);
}

#[test]
fn s14_escapes_in_another_scripts_signs_are_escapes() {
    let rules = policy(
        "allow = [{ tool = 'fs__*', when = { path = '/srv/*' } },\n\
         { tool = 'any__*', when = { path = '*' } }]",
    );
    let verdict = |tool: &str, path: &str| decide(&rules, tool, &json!({ "path": path })).verdict;
    for path in [
        "/srv/\u{ff05}2e\u{ff05}2e/x",
        "/srv/\u{fe6a}2e./x",
        "/srv/%\u{ff12}\u{ff45}%\u{ff12}\u{ff45}/x",
        "/srv/\u{ff05}252e\u{ff05}252e\u{ff05}252fx",
    ] {
        assert_eq!(verdict("fs__read", path), PolicyVerdict::Ask, "{path:?}");
        assert_eq!(verdict("any__read", path), PolicyVerdict::Ask, "{path:?}");
    }
    for path in ["/srv/\u{ff05}00", "/srv/\u{ff05}u0041", "/srv/a\u{fe6a}20b"] {
        assert_eq!(verdict("fs__read", path), PolicyVerdict::Ask, "{path:?}");
        assert_eq!(verdict("any__read", path), PolicyVerdict::Allow, "{path:?}");
    }
    assert_eq!(verdict("fs__read", "/srv/100\u{ff05} ｆull"), PolicyVerdict::Allow);
}

#[test]
fn s14_a_path_that_climbs_in_some_readers_eyes_is_not_allowed() {
    let rules = policy(
        "allow = [{ tool = 'fs__*', when = { path = '/srv/*' } },\n\
         { tool = 'web__*', when = { path = '/srv/%20*' } },\n\
         { tool = 'any__*', when = { path = '*' } }]\n\
         ask = [{ tool = 'asked__*', when = { path = '/srv/*' } }]\n\
         deny = [{ tool = '*', when = { path = '/etc/*' } }]",
    );
    let verdict = |tool: &str, path: &str| decide(&rules, tool, &json!({ "path": path })).verdict;
    for path in [
        "/srv/..%00/x",
        "/srv/..;/x",
        "/srv/..;a=b/x",
        "/srv/%c0%ae%c0%ae/x",
        "/srv/\u{ff0e}\u{ff0e}/x",
        "/srv/\u{2024}\u{2024}/x",
        "/srv/\u{2025}/x",
        "/srv/.\u{ff0e}\u{ff0f}x",
        "/srv/..\u{2215}x",
        "/srv/..\u{200b}/x",
        "/srv/\u{ad}.\u{feff}./x",
        "/srv/%u002e%u002e/x",
        "/srv/%U002E./x",
        "/srv/..%09/x",
        "/srv/%2525252e%2525252e/x",
        "/srv/a\n/etc/passwd",
        "/srv/a\u{7f}",
        "/srv/a\u{85}b",
        "/srv/-..-/x",
        "/srv/a%20b",
    ] {
        assert_eq!(verdict("fs__read", path), PolicyVerdict::Ask, "{path:?}");
        // Rules that ask see what they saw before.
        assert_eq!(verdict("asked__read", path), PolicyVerdict::Ask, "{path:?}");
    }
    // Controls: what leads nowhere else.
    for path in [
        "/srv/x",
        "/srv/a..b/...c",
        "/srv/100%",
        "/srv/50% off",
        "/srv/.hidden/a.b.c",
        "/srv/straße/日本語/é",
        "/srv/a;b/c",
        "/srv/x\u{200d}y",
        "/srv/...",
    ] {
        assert_eq!(verdict("fs__read", path), PolicyVerdict::Allow, "{path:?}");
    }
    // Written in the rule, or a rule for anything.
    assert_eq!(verdict("web__get", "/srv/%20a%20b"), PolicyVerdict::Allow);
    assert_eq!(verdict("web__get", "/srv/%20a%2fb"), PolicyVerdict::Ask);
    assert_eq!(verdict("any__do", "two\nlines, 100%ab"), PolicyVerdict::Allow);
    // A deny looks through it as well.
    assert_eq!(verdict("fs__read", "/srv/\u{ff0e}\u{ff0e}/etc/passwd"), PolicyVerdict::Deny);
}

#[test]
fn s20_arguments_that_name_the_own_state_always_ask() {
    let rules = policy("allow = ['fs__*']\ndeny = ['fs__delete']");
    let verdict = |arguments: Value| decide(&rules, "fs__read", &arguments).verdict;
    for arguments in [
        json!({"path": ".belljar/token"}),
        json!({"path": "/home/a/p/.BellJar"}),
        json!({"paths": ["a.txt", {"from": "x/../.belljar/belljar.db"}]}),
        json!({"command": "cat ./.belljar//token"}),
        json!({"url": "file:///p/%2ebelljar/token"}),
        json!({"url": "file:///p/%252Ebelljar/token"}),
        json!({"path": "\u{ff0e}belljar/token"}),
        json!({"files": {".belljar/token": "x"}}),
    ] {
        assert_eq!(verdict(arguments.clone()), PolicyVerdict::Ask, "{arguments}");
    }
    for arguments in [json!({"path": "belljar.toml"}), json!({"path": "a/belljar/b"}), json!({})] {
        assert_eq!(verdict(arguments.clone()), PolicyVerdict::Allow, "{arguments}");
    }
    // A denied call stays denied.
    let denied = decide(&rules, "fs__delete", &json!({"path": ".belljar"}));
    assert_eq!(denied.verdict, PolicyVerdict::Deny);
}

#[test]
fn s5_a_rule_can_be_for_some_servers_only() {
    let own = std::collections::BTreeSet::from(["own".to_owned()]);
    let rule = PolicyRule::new("*").unwrap().only_of(own);
    assert!(rule.may_concern_server("own") && !rule.may_concern_server("mine"));
    let rules = ToolPolicy { allow: vec![rule], ..ToolPolicy::default() };
    assert_eq!(decide(&rules, "own__delete", &json!({})).verdict, PolicyVerdict::Allow);
    for name in ["mine__delete", "own2__delete", "mine__own__delete"] {
        assert_eq!(decide(&rules, name, &json!({})).verdict, PolicyVerdict::Ask, "{name}");
    }
    let may_ask = |server| {
        let (none, all) = (Overrides::default(), ToolGrants::default());
        let tool = tool(server, "t", Annotations::default());
        rules.may_ask([PolicySubject::Listed(&tool)], |_| Trust::Untrusted, &none, &all)
    };
    assert!(may_ask("mine") && !may_ask("own"));
}

#[test]
fn lists_are_allowed_whole_and_denied_by_one() {
    let rules = policy(
        "allow = [{ tool = 'fs__*', when = { paths = '/tmp/*' } }]\n\
         deny = [{ tool = 'fs__*', when = { paths = '/etc/*' } }]",
    );
    let verdict = |paths: Value| decide(&rules, "fs__read", &json!({"paths": paths})).verdict;
    assert_eq!(verdict(json!(["/tmp/a", "/tmp/b"])), PolicyVerdict::Allow);
    assert_eq!(verdict(json!(["/tmp/a", "/home/b"])), PolicyVerdict::Ask);
    assert_eq!(verdict(json!(["/tmp/a", "/etc/b"])), PolicyVerdict::Deny);
    assert_eq!(verdict(json!([])), PolicyVerdict::Ask);
    assert_eq!(verdict(json!([["/tmp/a"]])), PolicyVerdict::Ask);
}

#[test]
fn a_policy_that_is_none_says_where() {
    for (text, told) in [
        ("allow = ['']", "a rule needs a `server__tool` pattern, `*` for all"),
        (
            "allow = [{ tool = 'x', when = { a = [] } }]",
            "the condition on `a` is not a text, number or boolean",
        ),
        ("allow = [{ tool = 'x', if = {} }]", "unknown field `if`, expected `tool` or `when`"),
        ("allow = [7]", "expected a pattern such as \"fs__read_*\" or a table { tool, when }"),
        ("allowed = []", "unknown field `allowed`, expected one of `allow`, `ask`, `deny`"),
    ] {
        let error = toml::from_str::<ToolPolicy>(text).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
        assert!(error.contains("line 1"), "{text}: {error}");
    }
    let written = "allow = [\"a\", { tool = \"b\", when = { \"x.y\" = 1 } }]";
    let read = policy(written);
    let again: ToolPolicy = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
    assert_eq!(again, read);
}

#[test]
fn whether_a_run_may_ask_is_known_before_it_starts() {
    let tools = [tool("a", "read", hints(Some(true), None)), tool("a", "write", hints(None, None))];
    let may_ask = |rules: &str, only: Option<&str>| {
        let grants =
            ToolGrants { only: only.map(|glob| vec![Glob::from(glob)]), ..ToolGrants::default() };
        let listed = tools.iter().map(PolicySubject::Listed);
        policy(rules).may_ask(listed, |_| Trust::Trusted, &Overrides::default(), &grants)
    };
    assert!(may_ask("", None));
    assert!(!may_ask("", Some("a__read")));
    assert!(!may_ask("allow = ['a__write']", None));
    assert!(!may_ask("deny = ['a__write']", None));
    assert!(may_ask("allow = [{ tool = 'a__write', when = { x = 1 } }]", None));
    assert!(may_ask("deny = [{ tool = 'a__write', when = { x = 1 } }]", None));
    assert!(may_ask("allow = ['a__*']\nask = [{ tool = 'a__read', when = { x = 1 } }]", None));
}

#[test]
fn globs_match_whole_names() {
    for (glob, text, fits) in [
        ("*", "", true),
        ("*", "abc", true),
        ("a*c", "abbc", true),
        ("a*c", "abcd", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*b*b*", "abab", true),
        ("?", "é", true),
        ("", "", true),
        ("", "a", false),
        ("a**", "a", true),
        ("[a]", "a", false),
        ("A", "a", false),
    ] {
        assert_eq!(Glob::from(glob).matches(text), fits, "{glob} {text}");
    }
    // A pattern of many stars must not take time that grows with a power of the text.
    assert!(!Glob::new("*a".repeat(200)).matches(&"a".repeat(100)));
    assert!(!Glob::new("*a".repeat(30) + "b").matches(&"a".repeat(20_000)));
}

fn any_glob() -> impl Strategy<Value = String> {
    "[ab_*?]{1,5}"
}

fn any_rule() -> impl Strategy<Value = PolicyRule> {
    let wanted = prop_oneof![any_glob().prop_map(Value::from), any::<bool>().prop_map(Value::from)];
    (any_glob(), prop::option::of(("[xy]", wanted))).prop_map(|(glob, when)| {
        let rule = PolicyRule::new(glob.as_str()).unwrap();
        when.into_iter().fold(rule, |rule, (path, wanted)| rule.when(&path, wanted).unwrap())
    })
}

fn any_policy() -> impl Strategy<Value = ToolPolicy> {
    let rules = || prop::collection::vec(any_rule(), 0..4);
    (rules(), rules(), rules()).prop_map(|(allow, ask, deny)| ToolPolicy { allow, ask, deny })
}

fn any_grants() -> impl Strategy<Value = ToolGrants> {
    let globs = || prop::collection::vec(any_glob().prop_map(Glob::new), 0..3);
    (prop::option::of(globs()), globs()).prop_map(|(only, given)| ToolGrants { only, given })
}

fn any_call() -> impl Strategy<Value = (Tool, Map<String, Value>, Trust, Overrides)> {
    let hint = || any::<Option<bool>>();
    let value = prop_oneof![
        "[ab/.]{0,6}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(json!(["a", "b"])),
        Just(Value::Null),
    ];
    let arguments = prop::collection::btree_map("[xyz]", value, 0..3);
    let overrides = prop::collection::vec(any_glob().prop_map(Glob::new), 0..2);
    ("[ab]{1,2}", "[ab_]{1,3}", hint(), hint(), arguments, any::<bool>(), overrides).prop_map(
        |(server, name, read_only, destructive, arguments, trusted, read_only_globs)| {
            let trust = if trusted { Trust::Trusted } else { Trust::Untrusted };
            let overrides = Overrides { read_only: read_only_globs, idempotent: Vec::new() };
            let tool = tool(&server, &name, hints(read_only, destructive));
            (tool, arguments.into_iter().collect(), trust, overrides)
        },
    )
}

fn severity(verdict: PolicyVerdict) -> u8 {
    match verdict {
        PolicyVerdict::Allow => 0,
        PolicyVerdict::Ask => 1,
        PolicyVerdict::Deny => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_deny_that_matches_always_wins(
        policy in any_policy(), grants in any_grants(), (tool, arguments, trust, overrides) in any_call(),
    ) {
        let mut policy = policy;
        policy.deny.push(PolicyRule::new(tool.qualified_name().as_str()).unwrap());
        let decision = policy.decide(&tool, trust, &overrides, &arguments, &grants);
        prop_assert_eq!(decision.verdict, PolicyVerdict::Deny);
        prop_assert!(!decision.reason.is_empty());
    }

    #[test]
    fn more_rules_that_deny_or_ask_and_fewer_grants_never_widen(
        policy in any_policy(), grants in any_grants(), (tool, arguments, trust, overrides) in any_call(),
        rule in any_rule(),
    ) {
        let verdict = |policy: &ToolPolicy, grants: &ToolGrants| {
            severity(policy.decide(&tool, trust, &overrides, &arguments, grants).verdict)
        };
        let before = verdict(&policy, &grants);
        let (mut denying, mut asking) = (policy.clone(), policy.clone());
        denying.deny.push(rule.clone());
        asking.ask.push(rule);
        prop_assert!(verdict(&denying, &grants) >= before);
        prop_assert!(verdict(&asking, &grants) >= before);
        let fewer = ToolGrants { given: Vec::new(), ..grants.clone() };
        let unbound = ToolGrants { only: None, ..grants.clone() };
        prop_assert!(verdict(&policy, &fewer) >= before);
        prop_assert!(verdict(&policy, &unbound) <= before);
    }

    #[test]
    fn a_run_that_may_not_ask_never_asks(
        policy in any_policy(), grants in any_grants(), (tool, arguments, trust, overrides) in any_call(),
    ) {
        let verdict = policy.decide(&tool, trust, &overrides, &arguments, &grants).verdict;
        if verdict == PolicyVerdict::Ask {
            prop_assert!(policy.may_ask([PolicySubject::Listed(&tool)], |_| trust, &overrides, &grants));
        }
    }

    #[test]
    fn a_glob_is_the_regular_expression_it_looks_like(glob in "[ab*?]{0,6}", text in "[ab]{0,8}") {
        fn slow(glob: &[u8], text: &[u8]) -> bool {
            match (glob.split_first(), text.split_first()) {
                (None, rest) => rest.is_none(),
                (Some((b'*', more)), rest) => {
                    slow(more, text) || rest.is_some_and(|(_, left)| slow(glob, left))
                }
                (Some((wanted, more)), Some((found, left))) => {
                    (*wanted == b'?' || wanted == found) && slow(more, left)
                }
                (Some(_), None) => false,
            }
        }
        prop_assert_eq!(Glob::new(glob.as_str()).matches(&text), slow(glob.as_bytes(), text.as_bytes()));
    }
}

#[test]
fn d7_a_rule_may_concern_a_server_of_which_nothing_is_known() {
    let asks = |pattern: &str| {
        let ask = vec![PolicyRule::new(pattern).expect("a rule")];
        ToolPolicy { ask, ..ToolPolicy::default() }.may_ask_about("fs")
    };
    for pattern in ["fs__write_file", "fs__*", "*", "*__delete_*", "f?__x", "fs*"] {
        assert!(asks(pattern), "{pattern}");
    }
    for pattern in ["db__write", "fsx__write", "fs", "git*"] {
        assert!(!asks(pattern), "{pattern}");
    }
}

/// D3: a server none of whose tools a run may use is not even started for it.
#[test]
fn d3_a_run_reaches_the_servers_its_grants_could_mean() {
    let only = |globs: &[&str]| ToolGrants {
        only: Some(globs.iter().map(|glob| Glob::from(*glob)).collect()),
        given: Vec::new(),
    };
    for (globs, reaches) in [
        (&["git__log"][..], true),
        (&["git__*"], true),
        (&["*"], true),
        (&["g?t__log"], true),
        (&["*__log"], true),
        (&["fs__read", "git*"], true),
        (&["fs__read"], false),
        (&["gi"], false),
        (&["git_"], false),
        (&["github__*"], false),
        (&[], false),
    ] {
        assert_eq!(only(globs).may_reach("git"), reaches, "{globs:?}");
    }
    assert!(ToolGrants::default().may_reach("git"));
}
