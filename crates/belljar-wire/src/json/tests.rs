//! S2: one text, one meaning.

use super::{JsonFlaw, check_keys, count_parts};

#[test]
fn parts_are_counted_outside_of_strings() {
    assert_eq!(count_parts(r#""a,[{\",[""#), 0);
    assert_eq!(count_parts("[1,[],{}]"), 5);
    assert_eq!(count_parts(r#"{"a":"\\","b":2}"#), 2);
}

#[test]
fn s2_a_key_that_is_written_twice_is_found_at_every_level() {
    let twice = [
        (r#"{"path":"/tmp/a","path":"/etc/b"}"#, r#""path""#),
        (r#"{"path":"/tmp/a","tags":["t"],"path":"/tmp/a"}"#, r#""path""#),
        (r#"{"a":{"b":1,"c":{"d":1},"b":2}}"#, r#""b""#),
        (r#"[1,[{"x":1},{"x":1,"y":{"z":0},"x":2}]]"#, r#""x""#),
        (r#"{"path":1,"p\u0061th":2}"#, r#""path""#),
        (r#"{"":1 , "" : 2}"#, r#""""#),
        ("{\"a\\\"b\":1,\n\t\"a\\u0022b\":2}", r#""a\"b""#),
    ];
    for (json, key) in twice {
        match check_keys(json.as_bytes()) {
            Err(JsonFlaw::RepeatedKey(found)) => assert_eq!(found, key, "{json}"),
            other => panic!("{json}: {other:?}"),
        }
    }
}

#[test]
fn s2_keys_that_only_look_alike_are_two() {
    let once = [
        r#"{"path":1,"Path":2,"path ":3,"p\u00e4th":4,"pa\\u0074h":5}"#,
        r#"{"a":{"a":{"a":[{"a":1},{"a":1}]}},"b":"\"a\":1,\"a\":2"}"#,
        r#"["a","a",{"k":"a"},{"k":"a"}]"#,
        r#""a""#,
        "12345678901234567890123",
        "{}",
    ];
    for json in once {
        assert!(check_keys(json.as_bytes()).is_ok(), "{json}");
    }
}

/// `serde_json` reads what is beneath such a key as JSON of its own when it makes a `Value`, and only
/// there.
#[test]
fn s2_keys_with_a_meaning_of_their_own_are_refused() {
    let reserved = [
        r#"{"$serde_json::private::RawValue":"{\"path\":1}"}"#,
        r#"{"a":[{"b":1,"$serde_json::private::RawValue":"2"}]}"#,
        r#"{"\u0024serde_json::private::Number":"1"}"#,
    ];
    for json in reserved {
        assert!(matches!(check_keys(json.as_bytes()), Err(JsonFlaw::ReservedKey(_))), "{json}");
    }
    // Control: as a text, and as a key that only looks alike.
    let harmless = r#"{"a":"$serde_json::private::RawValue","$serde_json":1,"$ref":2}"#;
    assert!(check_keys(harmless.as_bytes()).is_ok());
}

#[test]
fn what_is_no_json_is_refused() {
    for json in [&b"{"[..], b"", b"{\"a\":1}}", b"{\"a\" 1}", b"\"\xff\"", b"{\"\\ud800\":1}"] {
        assert!(matches!(check_keys(json), Err(JsonFlaw::Malformed(_))), "{json:?}");
    }
}

#[test]
fn hostile_depth_is_looked_at_without_recursion() {
    let depth = 1 << 20;
    let json = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(check_keys(json.as_bytes()).is_ok());
    let json = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(check_keys(json.as_bytes()).is_ok());
}
