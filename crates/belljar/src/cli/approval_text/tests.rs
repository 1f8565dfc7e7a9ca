//! Nothing a guest puts into a call is hidden from who decides about it.

use super::{super::look::Look, arguments, arguments_in_line, place};

#[test]
fn arguments_are_shown_as_they_are() {
    assert_eq!(
        arguments(r#"{"path":"a.txt","n":1}"#, Look::PLAIN),
        "    {\"path\": \"a.txt\", \"n\": 1}\n"
    );
    assert_eq!(arguments_in_line("{\"a\":\n1}"), "{\"a\": 1}");
}

#[test]
fn hidden_characters_are_seen() {
    let json = "{\"path\":\"safe\u{202e}txt.exe\u{200b}\u{e0041}\u{9b}2J\"}";
    let shown = r#"    {"path": "safe\u202etxt.exe\u200b\udb40\udc41\u009b2J"}"#;
    assert_eq!(arguments(json, Look::PLAIN), format!("{shown}\n"));
    assert!(!arguments_in_line(json).contains(['\u{202e}', '\u{200b}', '\u{9b}']));
}

#[test]
fn what_is_cut_is_said_to_be() {
    let long = format!("[{}]", vec!["\"0123456789\""; 100].join(","));
    let shown = arguments(&long, Look::PLAIN);
    assert_eq!(shown.lines().count(), 41);
    assert!(shown.ends_with("    … cut, 1301 bytes in all: belljar approvals list --json\n"));
    let wide = format!("\"{}\"", "x".repeat(1000));
    assert!(arguments(&wide, Look::PLAIN).contains("… cut, 1002 bytes"));
}

#[test]
fn what_is_no_json_is_shown_all_the_same() {
    assert_eq!(arguments("{\u{1b}[2J", Look::PLAIN), "    {\\x1b[2J\n");
}

#[test]
fn the_place_is_one_line() {
    let text = place("run_1", Some(3), Some("await mcp.a.b()\u{1b}"));
    assert_eq!(text, "run run_1, line 3: await mcp.a.b()\\x1b");
    assert_eq!(place("run_1", None, None), "run run_1");
}
