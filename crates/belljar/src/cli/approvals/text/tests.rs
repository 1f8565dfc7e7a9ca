//! A guest cannot hide any part of a call from the person who decides.

use super::{Extent, all_arguments, arguments, arguments_in_line, cut_note, name_in_line, place};
use crate::cli::terminal::style::TextStyle;

#[test]
fn arguments_are_shown_as_they_are() {
    assert_eq!(
        arguments(r#"{"path":"a.txt","n":1}"#, TextStyle::PLAIN),
        ("    {\"path\": \"a.txt\", \"n\": 1}\n".to_owned(), Extent::Whole)
    );
    assert_eq!(arguments_in_line("{\"a\":\n1}"), "{\"a\": 1}");
}

#[test]
fn hidden_characters_are_seen() {
    let json = "{\"path\":\"safe\u{202e}txt.exe\u{200b}\u{e0041}\u{9b}2J\"}";
    let shown = r#"    {"path": "safe\u202etxt.exe\u200b\udb40\udc41\u009b2J"}"#;
    assert_eq!(arguments(json, TextStyle::PLAIN), (format!("{shown}\n"), Extent::Whole));
    assert_eq!(all_arguments(json, TextStyle::PLAIN), format!("{shown}\n"));
    assert!(!arguments_in_line(json).contains(['\u{202e}', '\u{200b}', '\u{9b}']));
}

#[test]
fn s9_what_is_cut_is_said_to_be() {
    let long = format!("[{}]", vec!["\"0123456789\""; 100].join(","));
    let (shown, extent) = arguments(&long, TextStyle::PLAIN);
    assert_eq!((shown.lines().count(), extent), (40, Extent::InPart));
    assert_eq!(
        cut_note("apr_1", &long, TextStyle::PLAIN),
        "    … cut, 1301 bytes in total: belljar approvals show apr_1\n"
    );
    // Controls: arguments that just fit, and all of longer ones.
    let fits = format!("\"{}\"", "é".repeat(398));
    assert_eq!(arguments(&fits, TextStyle::PLAIN).1, Extent::Whole);
    let wide = format!("\"{}\"", "é".repeat(399));
    assert_eq!(arguments(&wide, TextStyle::PLAIN).1, Extent::InPart);
    assert_eq!(all_arguments(&wide, TextStyle::PLAIN), format!("    {wide}\n"));
    assert_eq!(all_arguments(&long, TextStyle::PLAIN).matches("0123456789").count(), 100);
}

#[test]
fn s20_a_tools_name_stays_on_its_line() {
    let name = "s__read\n    {\"path\": \"/tmp/harmless\"}\r\u{202e}\u{200b}";
    let shown = name_in_line(name);
    assert_eq!(shown, r#"s__read\n    {"path": "/tmp/harmless"}\x0d\u202e\u200b"#);
}

#[test]
fn what_is_no_json_is_shown_all_the_same() {
    assert_eq!(arguments("{\u{1b}[2J", TextStyle::PLAIN).0, "    {\\x1b[2J\n");
}

#[test]
fn the_place_is_one_line() {
    let text = place("run_1", Some(3), Some("await mcp.a.b()\u{1b}"));
    assert_eq!(text, "run run_1, line 3: await mcp.a.b()\\x1b");
    assert_eq!(place("run_1", None, None), "run run_1");
}
