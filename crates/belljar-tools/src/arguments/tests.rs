//! Arguments that leave, arguments that do not, and the messages for the guest.

mod shapes;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{check, pattern, validate};
use crate::Tool;

fn read_file() -> Tool {
    Tool {
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "head": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["text", "binary", null]},
                "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}, "maxItems": 2},
            },
            "$defs": {"edit": {
                "type": "object",
                "properties": {"old_text": {"type": "string"}, "new_text": {"type": ["string", "null"]}},
                "required": ["old_text"],
            }},
            "required": ["path"],
            "additionalProperties": false,
        }),
        ..Tool::bare("fs", "read_file")
    }
}

fn told(arguments: &Value) -> String {
    check(&read_file(), arguments).map_or_else(|fault| fault.to_string(), |()| "fine".to_owned())
}

#[test]
fn what_fits_leaves() {
    for arguments in [
        json!({"path": "a"}),
        json!({"path": "a", "head": 5.0, "mode": null}),
        json!({"path": "a", "edits": [{"old_text": "x", "new_text": null, "more": 1}]}),
    ] {
        assert_eq!(told(&arguments), "fine", "{arguments}");
    }
}

#[test]
fn a_fault_names_the_field_and_the_nearest_right_one() {
    let fields = "(required: path; optional: edits, head, mode)";
    for (arguments, expected) in [
        (
            json!({"pth": "a"}),
            format!("`pth` is not an argument of fs__read_file; did you mean `path`? {fields}"),
        ),
        (json!({}), format!("fs__read_file needs `path` {fields}")),
        (Value::Null, format!("fs__read_file needs `path` {fields}")),
        (
            json!("notes.txt"),
            format!(
                "fs__read_file takes its arguments by name, in one object, not \"notes.txt\": {{ path: … }} {fields}"
            ),
        ),
        (json!({"path": 7}), "`path` of fs__read_file must be a string, not 7".to_owned()),
        (
            json!({"path": "a", "head": "5"}),
            "`head` of fs__read_file must be an integer, not \"5\"".to_owned(),
        ),
        (
            json!({"path": "a", "head": null}),
            "`head` of fs__read_file must be an integer, not null; leave it out instead".to_owned(),
        ),
        (
            json!({"path": "a", "head": 0}),
            "`head` of fs__read_file must be at least 1, not 0".to_owned(),
        ),
        (
            json!({"path": ""}),
            "`path` of fs__read_file must have at least 1 characters, not \"\"".to_owned(),
        ),
        (
            json!({"path": "a", "mode": "txt"}),
            "`mode` of fs__read_file must be one of \"text\", \"binary\", null, not \"txt\"; did you mean `text`?"
                .to_owned(),
        ),
        (
            json!({"path": "a", "edits": [{"old_text": "x"}, {"oldText": "x"}]}),
            "`edits[1].oldText` is not a field of fs__read_file; did you mean `old_text`? (required: old_text; optional: new_text)"
                .to_owned(),
        ),
        (
            json!({"path": "a", "edits": [1, 2, 3]}),
            "`edits` of fs__read_file must have at most 2 items, not an array of 3".to_owned(),
        ),
    ] {
        assert_eq!(told(&arguments), expected);
    }
}

#[test]
fn an_open_schema_still_catches_another_spelling() {
    let schema = json!({"type": "object", "properties": {"max_count": {"type": "integer"}}});
    assert_eq!(
        validate(&schema, &json!({"maxCount": 5})).unwrap_err().to_string(),
        "`maxCount` is not an argument of it; did you mean `max_count`? (all optional: max_count)"
    );
    assert_eq!(validate(&schema, &json!({"other": 5})), Ok(()));
    let missing = json!({"properties": {"path": {}}, "required": ["path"]});
    assert_eq!(
        validate(&missing, &json!({"pth": 5})).unwrap_err().to_string(),
        "it needs `path`; `pth` was given: did you mean that? (required: path)"
    );
}

#[test]
fn branches_tell_the_most_telling_fault() {
    let schema = json!({"anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"kind": {"const": "a"}, "size": {"type": "integer"}}, "required": ["kind"]},
    ]});
    assert_eq!(validate(&schema, &json!("x")), Ok(()));
    assert_eq!(
        validate(&schema, &json!({"kind": "a", "size": "big"})).unwrap_err().to_string(),
        "`size` must be an integer, not \"big\""
    );
    let optional = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    assert_eq!(
        validate(&optional, &json!(7)).unwrap_err().to_string(),
        "the value must be a string or null, not 7"
    );
    let both = json!({"oneOf": [{"type": "integer"}, {"type": "number"}]});
    assert_eq!(validate(&both, &json!(7)), Ok(()));
    assert!(
        validate(&json!({"allOf": [{"type": "string"}, {"maxLength": 1}]}), &json!("ab")).is_err()
    );
}

#[test]
fn what_is_not_understood_is_no_fault() {
    for (schema, value) in [
        (json!({"type": "file"}), json!(1)),
        (json!({"type": 7}), json!(1)),
        (json!({"$ref": "https://example.com/schema"}), json!(1)),
        (json!({"$ref": "#/nowhere"}), json!(1)),
        (json!({"pattern": "^(a|b)$"}), json!("c")),
        (json!({"not": {}}), json!(1)),
        (json!({"format": "date"}), json!("never")),
        (json!({"anyOf": []}), json!(1)),
        (json!({"required": "path", "properties": 3, "items": 4}), json!({})),
        (json!({"patternProperties": {"^x": {}}, "additionalProperties": false}), json!({"y": 1})),
        (json!(null), json!(1)),
        (json!({"type": "string", "nullable": true}), json!(null)),
    ] {
        assert_eq!(validate(&schema, &value), Ok(()), "{schema}");
    }
    assert!(validate(&json!(false), &json!(1)).is_err());
}

#[test]
fn schemas_that_never_end_do() {
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    assert_eq!(validate(&circle, &json!(1)), Ok(()));
    let doubling = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [
        {"allOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]},
        {"allOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]},
    ]}}});
    let _ = validate(&doubling, &json!(1));
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
    assert_eq!(validate(&tree, &json!({"next": {"next": {}}})), Ok(()));
    assert_eq!(
        validate(&tree, &json!({"next": {"nxt": {}}})).unwrap_err().path,
        ["next".to_owned()]
    );
}

#[test]
fn many_fields_and_long_texts_are_checked_in_no_time() {
    let declared: serde_json::Map<String, Value> =
        (0..200).map(|at| (format!("declared_field_{at}"), json!({"type": "string"}))).collect();
    let open = json!({"type": "object", "properties": declared});
    let needs = json!({"type": "object", "properties": declared, "required": ["declared_field_1"]});
    let many: serde_json::Map<String, Value> =
        (0..50_000).map(|at| (format!("other_{at}"), json!(1))).collect();
    let many = Value::from(many);
    let began = std::time::Instant::now();
    assert!(validate(&open, &many).is_ok());
    assert!(validate(&needs, &many).is_err());
    // Every way through the pattern ends with a look at the whole text.
    let slow = format!("^{}[a-z]*!$", "b?".repeat(60));
    assert_eq!(pattern::matches(&slow, &"b".repeat(1 << 20)), None);
    let took = began.elapsed();
    assert!(took.as_secs() < 10, "{took:?}");
}

#[test]
fn simple_patterns_are_matched_and_others_left() {
    for (regex, text, expected) in [
        ("^[a-z0-9-]+$", "ab-9", Some(true)),
        ("^[a-z0-9-]+$", "Ab", Some(false)),
        ("^\\d{4}-\\d{2}$", "2024-03", Some(true)),
        ("^\\d{4}-\\d{2}$", "2024-3", Some(false)),
        ("^#?[^x]*\\.$", "#abc.", Some(true)),
        ("b", "abc", Some(true)),
        ("^a.c", "abcd", Some(true)),
        ("^$", "", Some(true)),
        ("^\\w+\\$$", "a$", Some(true)),
        ("a|b", "a", None),
        ("(?i)a", "A", None),
        ("^\\p{L}+$", "a", None),
        ("^a+?$", "a", None),
        ("[z-a]", "a", None),
        ("^a{2", "aa", None),
    ] {
        assert_eq!(pattern::matches(regex, text), expected, "{regex}");
    }
    // A pattern that would take for ever says nothing.
    let slow = "a*".repeat(30) + "b";
    assert_eq!(pattern::matches(&slow, &"a".repeat(200)), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z#/$]{0,6}".prop_map(Value::from),
        prop::sample::select(vec!["string", "object", "array", "number", "#", "#/$defs/a"])
            .prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "type",
            "properties",
            "required",
            "items",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "enum",
            "const",
            "additionalProperties",
            "prefixItems",
            "$defs",
            "minimum",
            "pattern",
        ])
        .prop_map(str::to_owned),
        "[ab]",
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_value_breaks_it(schema in any_json(), value in any_json()) {
        if let Err(fault) = validate(&schema, &value) {
            prop_assert!(!fault.to_string().is_empty());
        }
    }
}
