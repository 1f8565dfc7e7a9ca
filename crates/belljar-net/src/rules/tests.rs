//! Dependencies between the fields of a rule.

use super::*;

fn rule(name: &str, value: &str) -> NetRule {
    let value = Secret::new(value.to_owned());
    NetRule {
        methods: vec!["GET".to_owned()],
        paths: vec!["/api/**".parse().unwrap()],
        headers: vec![HeaderRule { name: name.to_owned(), value }],
        ..NetRule::of_host("api.example.org".parse().unwrap())
    }
}

#[test]
fn headers_need_a_name_and_a_value_that_a_request_can_have() {
    for (name, value) in [
        ("host", "example.net"),
        ("content-length", "0"),
        ("transfer-encoding", "chunked"),
        ("authorization", "two\nlines"),
        ("author ization", "s3cret"),
    ] {
        let error = rule(name, value).checked().unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("`api.example.org`: the header `{name}`")), "{text}");
        assert!(!text.contains(value) || value == "0", "{text}");
    }
    // Control.
    assert!(rule("authorization", "Bearer value").checked().is_ok());
}
