//! D7: a wider yes covers the rule as it was read, and nothing beyond it.

use serde_json::{Map, Value, json};

use super::{Coverage, StandingRule};
use crate::RuleError;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn rule(tool: &str, when: Value) -> Result<StandingRule, RuleError> {
    StandingRule::new("rule_1".to_owned(), tool, object(when), "def1", ("cli", 7))
}

fn says(rule: &StandingRule, tool: &str, arguments: Value) -> Coverage {
    rule.coverage(tool, "def1", &object(arguments))
}

#[test]
fn d7_a_rule_covers_its_tool_and_its_pattern() {
    let rule = rule("fs__write", json!({"path": "/srv/*", "options": {"mode": 1}})).unwrap();
    assert_eq!(rule.to_string(), r#"fs__write when options.mode is 1 and path is "/srv/*""#);
    let call = |path: &str| json!({"path": path, "options": {"mode": 1}, "text": "anything"});
    assert_eq!(says(&rule, "fs__write", call("/srv/a")), Coverage::Covered);
    for path in ["/etc/passwd", "/srv/../etc/passwd", "/srv/%2e%2e/etc", "/srv/..;/x", "/srv/a\nb"]
    {
        assert_eq!(says(&rule, "fs__write", call(path)), Coverage::Other, "{path}");
    }
    assert_eq!(says(&rule, "fs__write", json!({"path": "/srv/a"})), Coverage::Other);
    assert_eq!(says(&rule, "fs__write2", call("/srv/a")), Coverage::Other);
}

/// The name of a tool is its server's choice: it is never a pattern.
#[test]
fn d7_a_tool_whose_name_looks_like_a_pattern_stands_for_itself() {
    let rule = rule("fs__*", json!({})).unwrap();
    assert_eq!(rule.to_string(), "fs__* with any arguments");
    assert_eq!(says(&rule, "fs__*", json!({"a": 1})), Coverage::Covered);
    assert_eq!(says(&rule, "fs__delete", json!({"a": 1})), Coverage::Other);
}

#[test]
fn d7_another_definition_voids_the_rule() {
    let rule = rule("fs__write", json!({})).unwrap();
    let none = Map::new();
    assert_eq!(rule.coverage("fs__write", "def1", &none), Coverage::Covered);
    assert_eq!(rule.coverage("fs__write", "def2", &none), Coverage::Void);
    let of_nothing =
        StandingRule::new("rule_1".to_owned(), "fs__write", Map::new(), "", ("cli", 7)).unwrap();
    assert_eq!(of_nothing.coverage("fs__write", "", &none), Coverage::Void);
}

#[test]
fn d7_a_rule_that_would_not_look_like_what_it_is_is_refused() {
    for when in [
        json!({"path": "/srv/\u{202e}*"}),
        json!({"path": "/srv/\n*"}),
        json!({"path": "/srv/\u{200b}*"}),
        json!({"pa\u{1b}[2Jth": "/srv/*"}),
        json!({"path": "a".repeat(501)}),
    ] {
        let refused = rule("fs__write", when);
        assert!(matches!(refused, Err(RuleError::Deceptive(_))), "{refused:?}");
    }
    assert!(matches!(rule("fs__\u{7}", json!({})), Err(RuleError::Deceptive(_))));
    assert!(matches!(rule("fs__a", json!({"list": [1]})), Err(RuleError::NoScalar(_))));
    assert!(rule("fs__write", json!({"path": "/srv/\u{e4}*", "n": 1, "b": true})).is_ok());
}

#[test]
fn a_rule_is_kept_and_read_as_it_was() {
    let rule = rule("fs__write", json!({"path": "/srv/*", "n": 2})).unwrap();
    let text = serde_json::to_string(&rule).unwrap();
    assert_eq!(serde_json::from_str::<StandingRule>(&text).unwrap(), rule);
    let deceptive = text.replace("/srv/*", "/srv/\\u202e*");
    assert!(serde_json::from_str::<StandingRule>(&deceptive).is_err());
}
