//! Reading schemas: what they mean, and that nothing breaks or bloats the reader.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Rest, Schema, Type, pointed};

fn read(schema: &Value) -> Type {
    Schema::read(schema).root
}

/// How many types a schema is made of.
fn size(schema: &Schema) -> usize {
    fn count(kind: &Type) -> usize {
        1 + kind.inner().into_iter().map(count).sum::<usize>()
    }
    count(&schema.root) + schema.definitions.iter().map(|one| count(&one.kind)).sum::<usize>()
}

#[test]
fn unions_say_each_thing_once() {
    let schema = json!({"anyOf": [{"type": "integer"}, {"type": ["number", "null"]}, {"const": 7}, {"type": "null"}]});
    assert_eq!(read(&schema), Type::Union(vec![Type::Number, Type::Null]));
    assert_eq!(read(&json!({"anyOf": [{"type": "string"}, {}]})), Type::Unknown);
    assert_eq!(
        read(&json!({"type": "string", "nullable": true})),
        Type::Union(vec![Type::String, Type::Null])
    );
}

#[test]
fn what_has_to_be_several_things_is_made_one() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "number"}},
        "allOf": [
            {"$ref": "#/$defs/more"},
            {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false},
        ],
        "$defs": {"more": {"properties": {"b": {"type": "string"}}}},
    });
    let Type::Object(object) = read(&schema) else { panic!() };
    let fields: Vec<(&str, bool, &Type)> = object
        .fields
        .iter()
        .map(|field| (field.name.as_str(), field.required, &field.kind))
        .collect();
    assert_eq!(fields, [("a", true, &Type::Integer), ("b", false, &Type::String)]);
    assert_eq!(object.rest, Rest::Closed);
    // Constraints without a type change none.
    let either = json!({"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "x"}]});
    assert_eq!(read(&either), Type::String);
    // A contradiction is a mistake of the schema, not of the one who calls.
    assert_eq!(read(&json!({"type": "string", "allOf": [{"type": "number"}]})), Type::Unknown);
}

#[test]
fn a_type_made_of_itself_has_a_name_and_one_that_is_only_itself_is_unknown() {
    let tree = Schema::read(
        &json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}),
    );
    assert_eq!(tree.definitions.len(), 1);
    for hollow in [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}}}),
    ] {
        let schema = Schema::read(&hollow);
        assert_eq!((schema.root, schema.definitions.len()), (Type::Unknown, 0), "{hollow}");
    }
}

#[test]
fn what_is_used_once_is_written_in_place() {
    let schema = Schema::read(&json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/once"}, "b": {"$ref": "#/definitions/small"}, "c": {"$ref": "#/definitions/small"}},
        "definitions": {"once": {"type": "object", "properties": {"x": {"type": "string"}}}, "small": {"enum": ["u", "v"]}},
    }));
    assert_eq!(schema.definitions, []);
}

#[test]
fn references_are_found_as_they_are_written() {
    let root = json!({"$defs": {"a b": 1, "c/d": 2, "e%20f": 3}});
    assert_eq!(pointed(&root, "#/$defs/a%20b"), Some(&json!(1)));
    assert_eq!(pointed(&root, "#/$defs/c~1d"), Some(&json!(2)));
    assert_eq!(pointed(&root, "#/$defs/e%20f"), Some(&json!(3)));
    assert_eq!(pointed(&root, "#"), Some(&root));
    assert_eq!(pointed(&root, "https://example.com#/$defs/a"), None);
    assert_eq!(pointed(&root, "#/$defs/%f"), None);
}

#[test]
fn large_schemas_stay_within_bounds() {
    let branches: Vec<Value> = (0..3_000)
        .map(|n| json!({"type": "object", "properties": {format!("f{n}"): {"$ref": "#/$defs/d0"}}}))
        .collect();
    let chain: serde_json::Map<String, Value> = (0..2_000)
        .map(|n| {
            let next = format!("#/$defs/d{}", n + 1);
            (format!("d{n}"), json!({"allOf": [{"$ref": next}, {"$ref": next}], "properties": {"x": {"$ref": next}}}))
        })
        .collect();
    let schema = json!({"anyOf": branches, "allOf": branches, "$defs": chain});
    assert!(size(&Schema::read(&schema)) < 40_000);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(vec![
            "string",
            "object",
            "array",
            "null",
            "#",
            "#/$defs/a",
            "#/$defs/b"
        ])
        .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
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
        "patternProperties",
        "$defs",
        "nullable",
        "a",
        "b",
    ]);
    leaf.prop_recursive(8, 120, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn anything_can_be_read(schema in any_json()) {
        let read = Schema::read(&schema);
        prop_assert!(size(&read) < 40_000);
        prop_assert_eq!(Schema::read(&schema), read);
    }
}
