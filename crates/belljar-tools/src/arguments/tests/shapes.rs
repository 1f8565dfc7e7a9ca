//! Learning: what is learned accepts what it was learned from, and stays small.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{ValueShape, ValueShapeLimits, validate};

const LIMITS: ValueShapeLimits = ValueShapeLimits { depth: 4, fields: 10, items: 8, nodes: 60 };

fn schema(values: &[Value]) -> Value {
    let limits = ValueShapeLimits::default();
    let shapes = values.iter().map(|value| ValueShape::of(value, limits));
    shapes.reduce(|learned, shape| learned.merge(shape, limits)).unwrap_or_default().to_schema()
}

#[test]
fn fields_not_always_there_are_optional() {
    assert_eq!(
        schema(&[json!({"id": 1, "name": "a"}), json!({"id": 2.5, "name": null, "tags": []})]),
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "number"},
                "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "tags": {"type": "array", "items": {}},
            },
            "required": ["id", "name"],
        })
    );
}

#[test]
fn items_of_an_array_are_one_shape() {
    assert_eq!(
        schema(&[json!([{"a": 1}, {"a": 2, "b": true}, "x"])]),
        json!({"type": "array", "items": {"anyOf": [
            {"type": "string"},
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}, "required": ["a"]},
        ]}})
    );
}

#[test]
fn keys_that_are_data_are_forgotten() {
    let map = |values: Value| json!({"type": "object", "additionalProperties": values});
    let number = || json!({"type": "integer"});
    assert_eq!(
        schema(&[json!({"2024-01-01": 1, "2024-01-02": 2, "2024-01-03": 3})]),
        map(number())
    );
    assert_eq!(schema(&[json!({"a@b.c": 1, "d@e.f": 2, "g@h.i": 3})]), map(number()));
    let many: Value = (0..100).map(|n| (format!("key{n}"), Value::from(n))).collect();
    assert_eq!(schema(&[many]), map(number()));
    let varying: Vec<Value> = (0..20).map(|n| json!({ format!("name{n}"): n })).collect();
    assert_eq!(schema(&varying), map(number()));
    let learned =
        serde_json::to_string(&ValueShape::of(&json!({ "x".repeat(65): 1 }), LIMITS)).unwrap();
    assert!(!learned.contains("xx"), "{learned}");
    // A value, at least, is never kept.
    let learned =
        serde_json::to_string(&ValueShape::of(&json!({"token": "s3cret"}), LIMITS)).unwrap();
    assert_eq!(
        learned,
        r#"{"object":{"seen":1,"fields":{"token":{"seen":1,"shape":{"string":true}}}}}"#
    );
}

#[test]
fn a_shape_stays_small_whatever_it_is_shown() {
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!({"a": deep, "b": [deep]});
        if deep.to_string().len() > 1_000_000 {
            break;
        }
    }
    let limits = ValueShapeLimits::default();
    let shape = ValueShape::of(&deep, limits);
    assert!(serde_json::to_string(&shape).unwrap().len() < 100_000);
    assert_eq!(validate(&shape.to_schema(), &deep), Ok(()));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_map(|number| Value::from(f64::from(number))),
        "[a-z]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-e]{1,2}|[0-9]{2}", inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_learned_from_is_accepted(values in prop::collection::vec(any_json(), 1..6)) {
        // With every item looked at, nothing may be missing.
        let limits = ValueShapeLimits { items: usize::MAX, ..LIMITS };
        let shapes = values.iter().map(|value| ValueShape::of(value, limits));
        let learned = shapes.reduce(|learned, shape| learned.merge(shape, limits)).unwrap();
        for value in &values {
            prop_assert_eq!(validate(&learned.to_schema(), value), Ok(()), "{}", value);
        }
    }

    #[test]
    fn merging_does_not_depend_on_sides_and_survives_storing(left in any_json(), right in any_json()) {
        let (left, right) = (ValueShape::of(&left, LIMITS), ValueShape::of(&right, LIMITS));
        let merged = left.clone().merge(right.clone(), LIMITS);
        prop_assert_eq!(&merged, &right.merge(left, LIMITS));
        let stored = serde_json::to_string(&merged).unwrap();
        prop_assert!(stored.len() < LIMITS.nodes * 120);
        prop_assert_eq!(serde_json::from_str::<ValueShape>(&stored).unwrap(), merged);
    }
}
