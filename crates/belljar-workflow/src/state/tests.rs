//! How values join, and what is refused.

use serde_json::json;

use super::*;

fn joined(reducer: Reducer, values: &[Value]) -> Result<Value, StateError> {
    let mut state = Map::new();
    for value in values {
        join(&mut state, reducer, "x", value.clone())?;
    }
    Ok(state.remove("x").unwrap_or_default())
}

#[test]
fn f2_reducers() {
    for (reducer, values, expected) in [
        (Reducer::Last, vec![json!(1), json!("b")], json!("b")),
        (
            Reducer::Append,
            vec![json!(1), json!([2, 3]), json!({"a": 1})],
            json!([1, 2, 3, {"a": 1}]),
        ),
        (Reducer::Union, vec![json!([1, 2]), json!([2, 3]), json!(3)], json!([1, 2, 3])),
        (Reducer::Merge, vec![json!({"a": 1, "b": 1}), json!({"b": 2})], json!({"a": 1, "b": 2})),
        (Reducer::Sum, vec![json!(1), json!(2)], json!(3)),
        (Reducer::Sum, vec![json!(1), json!(0.5)], json!(1.5)),
    ] {
        assert_eq!(joined(reducer, &values), Ok(expected), "{reducer:?}");
    }
}

#[test]
fn f2_what_does_not_fit_is_refused_and_changes_nothing() {
    assert_eq!(
        joined(Reducer::Sum, &[json!("a")]).unwrap_err().to_string(),
        "state.x sums numbers and was given a string"
    );
    assert!(joined(Reducer::Merge, &[json!([1])]).is_err());
    let mut state = Map::from_iter([("x".to_owned(), json!("text"))]);
    assert!(join(&mut state, Reducer::Append, "x", json!(1)).is_err());
    assert_eq!(state["x"], json!("text"));
}

#[test]
fn f2_names_every_workflow_knows() {
    let none = BTreeMap::new();
    assert_eq!(reducer_of(&none, "messages"), Reducer::Append);
    assert_eq!(reducer_of(&none, "context"), Reducer::Merge);
    assert_eq!(reducer_of(&none, "else"), Reducer::Last);
    let own = BTreeMap::from([("context".to_owned(), Reducer::Last)]);
    assert_eq!(reducer_of(&own, "context"), Reducer::Last);
}
