//! Arguments as people type them.

use belljar_tools::Tool;
use serde_json::{Value, json};

use super::{named, read};

fn tool() -> Tool {
    Tool {
        input_schema: json!({"properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}),
        ..Tool::bare("s", "t")
    }
}

#[test]
fn values_are_what_the_tool_wants_where_that_is_known() {
    let given = ["text=1", "n=1", "other=[1, true]", "free=a=b", "empty="].map(str::to_owned);
    let arguments = Value::Object(named(&given, &tool()).unwrap());
    let expected = json!({"text": "1", "n": 1, "other": [1, true], "free": "a=b", "empty": ""});
    assert_eq!(arguments, expected);
}

#[test]
fn what_is_no_object_is_refused() {
    let told = |text: &str| read(text).map_err(|error| error.to_string()).unwrap_err();
    assert!(told("[1]").starts_with("the arguments: not a JSON object: "));
    assert!(told("@/nowhere/at/all.json").starts_with("cannot read /nowhere/at/all.json"));
    let told = named(&["novalue".to_owned()], &tool()).unwrap_err().to_string();
    assert_eq!(told, "novalue: expected KEY=VALUE");
}

#[test]
fn s2_what_is_given_twice_is_refused() {
    let told = read(r#"{"path":"a","path":"b"}"#).unwrap_err().to_string();
    assert_eq!(told, r#"the arguments: the key "path" is written twice in one object"#);
    let given = |list: &[&str]| {
        let list: Vec<String> = list.iter().map(|&one| one.to_owned()).collect();
        named(&list, &tool()).map_err(|error| error.to_string())
    };
    assert_eq!(given(&["n=1", "n=2"]).unwrap_err(), "n is given twice");
    let twice = given(&[r#"other={"a":1,"a":2}"#]).unwrap_err();
    assert_eq!(twice, r#"the arguments: the key "a" is written twice in one object"#);
    let long = given(&["n=123456789012345678901234567890"]).unwrap_err();
    assert!(
        long.starts_with("the arguments: the integer 123456789012345678901234567890 has"),
        "{long}"
    );
    // Control: a text keeps all its digits.
    let kept = given(&["text=123456789012345678901234567890", "n=12345678901234567890"]).unwrap();
    let expected =
        json!({"n": 12_345_678_901_234_567_890_u64, "text": "123456789012345678901234567890"});
    assert_eq!(Value::Object(kept), expected);
}
