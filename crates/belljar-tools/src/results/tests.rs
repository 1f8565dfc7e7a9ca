//! The rule of `docs/tools.md`, case by case.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{AnswerParts, Block, value_of};

fn text(text: &str) -> Block<'_> {
    Block::Text { text }
}

fn bytes(content: &[Block<'_>]) -> Vec<u8> {
    value_of(AnswerParts { structured: None, content, is_error: false, output_schema: None })
        .unwrap()
}

fn value(content: &[Block<'_>]) -> Value {
    serde_json::from_slice(&bytes(content)).unwrap()
}

#[test]
fn structured_content_is_the_value() {
    let schema = json!({"x-fastmcp-wrap-result": true});
    let plain = json!({"type": "object"});
    let structured = json!({"result": [1, 2]});
    let with = |output_schema| {
        let content = [text("{\"other\": 1}")];
        let answer = AnswerParts {
            structured: Some(&structured),
            content: &content,
            is_error: false,
            output_schema,
        };
        serde_json::from_slice::<Value>(&value_of(answer).unwrap()).unwrap()
    };
    assert_eq!(with(None), structured);
    assert_eq!(with(Some(&plain)), structured);
    assert_eq!(with(Some(&schema)), json!([1, 2]));
}

#[test]
fn text_is_json_only_if_it_is_an_object_or_an_array() {
    for (given, seen) in [
        ("{\"a\": 1}", json!({"a": 1})),
        (" \n[1, 2]\t", json!([1, 2])),
        ("007", json!("007")),
        ("7", json!("7")),
        ("true", json!("true")),
        ("null", json!("null")),
        ("\"quoted\"", json!("\"quoted\"")),
        ("", json!("")),
        ("{not json}", json!("{not json}")),
        ("{\"a\": 1} and more", json!("{\"a\": 1} and more")),
        ("{'a': None}", json!("{'a': None}")),
        ("[NaN]", json!("[NaN]")),
        ("a\0b", json!("a\0b")),
        ("[\"a\0b\"]", json!("[\"a\0b\"]")),
        ("\u{feff}{}", json!("\u{feff}{}")),
    ] {
        assert_eq!(value(&[text(given)]), seen, "{given:?}");
    }
}

#[test]
fn json_text_passes_as_it_came() {
    let odd = "{\"a\" : 1.0,  \"a\":12345678901234567890123, \"s\": \"\\ud83d\\ude00\\u0000\"}";
    assert_eq!(bytes(&[text(odd)]), odd.as_bytes());
}

#[test]
fn json_that_others_could_not_read_stays_text() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    for given in ["[\"\\ud800\"]", "{\"\\udc00\": 1}", "[1e999]", &deep(128), &deep(200_000)] {
        assert_eq!(value(&[text(given)]), json!(given));
    }
    assert_eq!(bytes(&[text(&deep(127))]), deep(127).as_bytes());
}

#[test]
fn several_blocks_are_a_list_and_other_kinds_are_objects() {
    assert_eq!(value(&[]), Value::Null);
    assert_eq!(value(&[text("a"), text("{}"), text("7")]), json!(["a", {}, "7"]));
    assert_eq!(
        value(&[Block::Image { data: "AA==", mime_type: "image/png" }]),
        json!({"type": "image", "data": "AA==", "mimeType": "image/png"})
    );
    assert_eq!(
        value(&[
            Block::Audio { data: "AA==", mime_type: "audio/wav" },
            Block::Resource { uri: "a:b", mime_type: None, text: Some("t"), blob: None },
            Block::ResourceLink {
                uri: "a:c",
                name: "c",
                description: None,
                mime_type: Some("x/y")
            },
            Block::Other(&json!({"type": "new", "field": 1})),
        ]),
        json!([
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource", "uri": "a:b", "text": "t"},
            {"type": "resource_link", "uri": "a:c", "name": "c", "mimeType": "x/y"},
            {"type": "new", "field": 1},
        ])
    );
}

#[test]
fn an_error_has_the_text_of_the_answer() {
    let message = |structured: Option<&Value>, content: &[Block<'_>]| {
        let answer = AnswerParts { structured, content, is_error: true, output_schema: None };
        value_of(answer).unwrap_err().message
    };
    assert_eq!(message(None, &[text("no such file"), text("x")]), "no such file\nx");
    assert_eq!(message(Some(&json!({"code": 7})), &[]), "{\"code\":7}");
    assert_eq!(message(None, &[]), "the tool reported an error without a message");
    assert_eq!(message(None, &[text(&"é".repeat(100_000))]).chars().count(), 16 * 1024 + 1);
}

proptest! {
    /// Whatever text comes, the value is JSON, and the text itself unless it is an object or array.
    #[test]
    fn any_text_is_a_value(given in "\\PC{0,30}|[\\[\\]{}\":,0-9a \\\\u]{0,30}") {
        let seen: Value = serde_json::from_slice(&bytes(&[text(&given)])).unwrap();
        match serde_json::from_str::<Value>(&given) {
            Ok(parsed) if parsed.is_object() || parsed.is_array() => prop_assert_eq!(seen, parsed),
            _ => prop_assert_eq!(seen, Value::from(given)),
        }
    }
}
