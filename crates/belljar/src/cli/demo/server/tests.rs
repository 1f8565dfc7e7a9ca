//! The answers of the demo's server.

use serde_json::{Value, json};

use super::{GET, LIST, answer, object, tools};

fn ask(tool: &str, arguments: Value) -> Value {
    let answer = answer(tool, &object(arguments)).unwrap();
    assert_ne!(answer.is_error, Some(true), "{answer:?}");
    answer.structured_content.unwrap()
}

#[test]
fn all_commits_or_those_since_a_date() {
    let all = ask(LIST, json!({ "repo": "example/shop" }));
    let later = ask(LIST, json!({ "repo": "example/shop", "since": "2026-03-01" }));
    let count = |list: &Value| list["commits"].as_array().unwrap().len();
    assert_eq!(count(&all), 1000);
    assert!((400..700).contains(&count(&later)), "{}", count(&later));
    assert!(later["commits"][0]["date"].as_str().unwrap() >= "2026-03-01");
}

#[test]
fn one_commit_by_its_name() {
    let all = ask(LIST, json!({ "repo": "example/shop" }));
    let third = &all["commits"][2];
    assert_eq!(&ask(GET, json!({ "repo": "example/shop", "sha": third["sha"] })), third);
    let none = answer(GET, &object(json!({ "sha": "none" }))).unwrap();
    assert_eq!(none.is_error, Some(true));
    assert!(answer("drop_table", &object(json!({}))).is_err());
}

/// The declared fields are exactly those in the data.
#[test]
fn results_are_what_the_schema_says() {
    let tools = tools();
    let schema = Value::Object((**tools[1].output_schema.as_ref().unwrap()).clone());
    let all = ask(LIST, json!({ "repo": "example/shop" }));
    assert_same_fields(&schema, &all["commits"][0]);
}

fn assert_same_fields(schema: &Value, value: &Value) {
    match value {
        Value::Object(fields) => {
            let declared = schema["properties"].as_object().unwrap();
            assert!(fields.keys().eq(declared.keys()), "{fields:?} {declared:?}");
            fields.iter().for_each(|(name, field)| assert_same_fields(&declared[name], field));
        }
        Value::Array(items) => assert_same_fields(&schema["items"], &items[0]),
        Value::String(_) => assert_eq!(schema["type"], "string"),
        Value::Number(_) => assert_eq!(schema["type"], "integer"),
        Value::Null | Value::Bool(_) => panic!("{value}"),
    }
}
