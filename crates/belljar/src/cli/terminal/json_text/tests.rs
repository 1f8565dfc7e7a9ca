//! A9: order, digits and depth of a value are unchanged.

use serde_json::value::RawValue;

use super::{Layout, lay_out};
use crate::cli::terminal::style::{Colours, TextStyle};

fn fitted(json: &str) -> String {
    lay_out(json, Layout::Fitted, TextStyle::PLAIN)
}

#[test]
fn a9_short_containers_stay_on_a_line_and_long_ones_do_not() {
    let json = r#"{"b":[1,2,3],"a":{"x":null,"empty":{}},"names":["Ada Lovelace","Grace Hopper","Barbara Liskov","Frances Allen"]}"#;
    insta::assert_snapshot!(fitted(json), @r#"
    {
      "b": [1, 2, 3],
      "a": {"x": null, "empty": {}},
      "names": [
        "Ada Lovelace",
        "Grace Hopper",
        "Barbara Liskov",
        "Frances Allen"
      ]
    }
    "#);
}

#[test]
fn a9_expanded_puts_every_element_on_a_line() {
    let json = r#"{"b":[1,{"c":[]}],"a":"x"}"#;
    insta::assert_snapshot!(lay_out(json, Layout::Expanded, TextStyle::PLAIN), @r#"
    {
      "b": [
        1,
        {
          "c": []
        }
      ],
      "a": "x"
    }
    "#);
}

#[test]
fn a9_order_and_digits_stay_as_written() {
    let json = r#"{"z": 12345678901234567890123, "a": 1.10, "text": "a\"b\\"}"#;
    assert_eq!(fitted(json), json);
}

#[test]
fn a4_controls_that_json_lets_through_are_escaped() {
    assert_eq!(fitted("\"\u{9b}31m\u{7f}\u{202e}\""), r#""\u009b31m\u007f\u202e""#);
    assert_eq!(fitted(r#""\u001b[2J""#), r#""\u001b[2J""#);
}

#[test]
fn colours_mark_what_a_token_is() {
    let style = TextStyle { colours: Colours::On, ..TextStyle::PLAIN };
    let text = lay_out(r#"{"k":["s",1,true]}"#, Layout::Fitted, style);
    let expected =
        "{\x1b[34m\"k\"\x1b[0m: [\x1b[32m\"s\"\x1b[0m, \x1b[33m1\x1b[0m, \x1b[35mtrue\x1b[0m]}";
    assert_eq!(text, expected);
}

#[test]
fn a9_deep_nesting_costs_neither_stack_nor_space() {
    let json = "[".repeat(200_000) + &"]".repeat(200_000);
    let raw = RawValue::from_string(json).expect("deep JSON is JSON");
    for layout in [Layout::Fitted, Layout::Expanded] {
        let text = lay_out(raw.get(), layout, TextStyle::PLAIN);
        assert!(text.len() < 410_000, "{} bytes", text.len());
    }
}

#[test]
fn text_that_is_not_json_ends_early_and_never_panics() {
    for text in ["", "\"open", "[1,", "}{", "nul", "\\", "日本"] {
        fitted(text);
    }
}
