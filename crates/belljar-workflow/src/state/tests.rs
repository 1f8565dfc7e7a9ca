//! How values join, and what is refused.

use belljar_contract::exact_json;

use super::*;

fn joined(reducer: Reducer, values: &[JsonValue]) -> Result<JsonValue, StateError> {
    let mut state = JsonMap::new();
    for value in values {
        join(&mut state, reducer, "x", value.clone())?;
    }
    Ok(state.remove("x").unwrap_or_default())
}

#[test]
fn f2_reducers() {
    for (reducer, values, expected) in [
        (Reducer::Last, vec![exact_json!(1), exact_json!("b")], exact_json!("b")),
        (
            Reducer::Append,
            vec![exact_json!(1), exact_json!([2, 3]), exact_json!({"a": 1})],
            exact_json!([1, 2, 3, {"a": 1}]),
        ),
        (
            Reducer::Union,
            vec![exact_json!([1, 2]), exact_json!([2, 3]), exact_json!(3)],
            exact_json!([1, 2, 3]),
        ),
        (
            Reducer::Merge,
            vec![exact_json!({"a": 1, "b": 1}), exact_json!({"b": 2})],
            exact_json!({"a": 1, "b": 2}),
        ),
        (Reducer::Sum, vec![exact_json!(1), exact_json!(2)], exact_json!(3)),
        (Reducer::Sum, vec![exact_json!(1), exact_json!(0.5)], exact_json!(1.5)),
    ] {
        assert_eq!(joined(reducer, &values), Ok(expected), "{reducer:?}");
    }
}

#[test]
fn f2_what_does_not_fit_is_refused_and_changes_nothing() {
    assert_eq!(
        joined(Reducer::Sum, &[exact_json!("a")]).unwrap_err().to_string(),
        "state.x sums numbers and was given a string"
    );
    assert!(joined(Reducer::Merge, &[exact_json!([1])]).is_err());
    let mut state = JsonMap::from_iter([("x".to_owned(), exact_json!("text"))]);
    assert!(join(&mut state, Reducer::Append, "x", exact_json!(1)).is_err());
    assert_eq!(state["x"], exact_json!("text"));
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
