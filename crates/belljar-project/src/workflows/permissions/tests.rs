//! The JSON of permissions is stored with every workflow, so its text stays as it is.

use belljar_contract::JsonValue;

use super::WorkflowPermissions;

fn json(text: &str) -> JsonValue {
    serde_json::from_str(text).expect("the test's JSON is valid")
}

/// The text that is stored again for permissions that were stored as this text.
fn stored_again(text: &str) -> String {
    WorkflowPermissions::of(&json(text)).kept().to_string()
}

const NONE: &str = r#"{"code":false,"shell":null,"readable":[],"writable":[],"env":{},"modules":null,"commands":null,"hosts":[]}"#;

#[test]
fn stored_permissions_stay_as_they_are() {
    let all = r#"{"code":true,"shell":true,"readable":["/data","/b"],"writable":["/out"],"env":{"A":"1","KEY":"v"},"modules":["pickle"],"commands":["git"],"hosts":["a.example"]}"#;
    assert_eq!(stored_again(all), all);
    // An empty list allows no name; `null` allows any.
    let no_name = r#"{"code":true,"shell":false,"readable":[],"writable":[],"env":{},"modules":[],"commands":[],"hosts":[]}"#;
    assert_eq!(stored_again(no_name), no_name);
    assert_eq!(WorkflowPermissions::default().kept().to_string(), NONE);
}

#[test]
fn permissions_of_earlier_versions_are_read() {
    let early = r#"{"code":true,"readable":["/data"],"of_a_later_version":[1]}"#;
    let full = r#"{"code":true,"shell":null,"readable":["/data"],"writable":[],"env":{},"modules":null,"commands":null,"hosts":[]}"#;
    assert_eq!(stored_again(early), full);
}

#[test]
fn unreadable_permissions_permit_nothing() {
    for odd in [
        r#"{"code":true,"readable":5}"#,
        r#"{"code":true,"env":["A"]}"#,
        r#"{"code":true,"modules":true}"#,
        r#"{"code":1}"#,
        "7",
    ] {
        assert_eq!(stored_again(odd), NONE, "{odd}");
    }
}
