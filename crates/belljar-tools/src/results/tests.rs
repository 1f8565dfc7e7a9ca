//! The rule of `docs/tools.md`, case by case.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ToolValue, value_of};
use crate::{ContentBlock, ToolAnswer};

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text { text: text.to_owned() }
}

fn given(content: &[ContentBlock]) -> ToolValue {
    let answer = ToolAnswer { content: content.to_vec(), ..ToolAnswer::default() };
    value_of(answer, None).unwrap()
}

fn bytes(content: &[ContentBlock]) -> Vec<u8> {
    given(content).into_json()
}

/// The value as guest code reads it. The host has the same, without reading it.
fn value(content: &[ContentBlock]) -> Value {
    let read: Value = serde_json::from_slice(&bytes(content)).unwrap();
    assert_eq!(given(content).into_value(), read);
    read
}

#[test]
fn structured_content_is_the_value() {
    let schema = json!({"x-fastmcp-wrap-result": true});
    let plain = json!({"type": "object"});
    let structured = json!({"result": [1, 2]});
    let with = |output_schema| {
        let content = vec![text("{\"other\": 1}")];
        let answer = ToolAnswer { structured: Some(structured.clone()), content, is_error: false };
        let value = value_of(answer, output_schema).unwrap();
        let read: Value = serde_json::from_slice(&value.clone().into_json()).unwrap();
        assert_eq!(value.into_value(), read);
        read
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
        bytes(&[ContentBlock::Image { data: "AA==".into(), mime_type: "image/png".into() }]),
        br#"{"type":"image","data":"AA==","mimeType":"image/png"}"#
    );
    assert_eq!(
        value(&[
            ContentBlock::Audio { data: "AA==".into(), mime_type: "audio/wav".into() },
            ContentBlock::Resource {
                uri: "a:b".into(),
                mime_type: None,
                text: Some("t".into()),
                blob: None
            },
            ContentBlock::ResourceLink {
                uri: "a:c".into(),
                name: "c".into(),
                description: None,
                mime_type: Some("x/y".into())
            },
            ContentBlock::Other { kind: "new".into() },
        ]),
        json!([
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource", "uri": "a:b", "text": "t"},
            {"type": "resource_link", "uri": "a:c", "name": "c", "mimeType": "x/y"},
            null,
        ])
    );
}

#[test]
fn an_error_has_the_text_of_the_answer() {
    let message = |structured: Option<Value>, content: &[ContentBlock]| {
        let answer = ToolAnswer { structured, content: content.to_vec(), is_error: true };
        value_of(answer, None).unwrap_err().message
    };
    assert_eq!(message(None, &[text("no such file"), text("x")]), "no such file\nx");
    assert_eq!(message(Some(json!({"code": 7})), &[]), "{\"code\":7}");
    assert_eq!(message(None, &[]), "the tool reported an error without a message");
    assert_eq!(message(None, &[text(&"é".repeat(100_000))]).chars().count(), 16 * 1024 + 1);
}

/// Shapes of large values are not learned; the size is that of the JSON, whatever the value was made as.
#[test]
fn the_size_of_a_value_is_that_of_its_json() {
    let long = "x".repeat(1000);
    for value in [
        ToolValue::Value(json!([long])),
        ToolValue::Content(vec![text(&long)]),
        ToolValue::Json(json!([long]).to_string().into_bytes()),
    ] {
        assert!(value.is_larger_than(999), "{value:?}");
        assert!(!value.is_larger_than(1100), "{value:?}");
    }
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
