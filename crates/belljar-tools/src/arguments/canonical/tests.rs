//! S2: what is read is all that was written, and there is one way to write it.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{CallArguments, UnreadableArguments, read};

/// The canonical form; `None` if the text cannot be read.
fn canonical(json: &[u8]) -> Option<Vec<u8>> {
    let CallArguments { text, read } = CallArguments::parse(json.to_vec());
    if read.is_err() {
        assert_eq!(text, json, "recorded as it came");
    }
    read.ok().map(|_| text)
}

fn text(json: &str) -> String {
    String::from_utf8(canonical(json.as_bytes()).expect(json)).expect("JSON is UTF-8")
}

#[test]
fn s2_the_canonical_form_keeps_every_value() {
    let kept = [
        (r#"{"b":1,"a":[true,null,"x"]}"#, r#"{"a":[true,null,"x"],"b":1}"#),
        (
            r#"{"i":-9223372036854775808,"u":18446744073709551615}"#,
            r#"{"i":-9223372036854775808,"u":18446744073709551615}"#,
        ),
        (
            r#"{"x":0.1,"y":1e-7,"z":2.2250738585072014e-308}"#,
            r#"{"x":0.1,"y":1e-7,"z":2.2250738585072014e-308}"#,
        ),
        (r#"{"n":1.7976931348623157e308,"o":-0.0}"#, r#"{"n":1.7976931348623157e+308,"o":-0.0}"#),
        // JavaScript's text of 2 ** 65 and 2 ** 70.
        (
            r#"{"a":36893488147419103000,"b":1.1805916207174113e+21}"#,
            r#"{"a":3.6893488147419103e+19,"b":1.1805916207174113e+21}"#,
        ),
        (r#"{ "t" : "\u00e4\ud83d\ude00\u0000" }"#, "{\"t\":\"ä😀\\u0000\"}"),
    ];
    for (written, meant) in kept {
        assert_eq!(text(written), meant, "{written}");
        assert_eq!(text(meant), meant, "{written}: written again");
    }
}

#[test]
fn s2_an_integer_that_would_be_rounded_is_refused() {
    for json in [
        r#"{"id":18446744073709551616}"#,
        r#"{"a":[{"id":-9223372036854775809}]}"#,
        r#"{"id":123456789012345678901234567890}"#,
    ] {
        let refused = read(json.as_bytes());
        assert!(matches!(refused, Err(UnreadableArguments::Rounded(_))), "{json}: {refused:?}");
    }
    let long = format!(r#"{{"id":{}}}"#, "7".repeat(400));
    assert!(read(long.as_bytes()).is_err());
    // Controls: the same digits as a text, and one that is exact.
    assert!(read(br#"{"id":"123456789012345678901234567890"}"#).is_ok());
    assert!(read(br#"{"id":1000000000000000000000000000000}"#).is_ok());
}

/// Such arguments are one thing as an object and another as a value, so they are neither.
#[test]
fn s2_a_reserved_key_is_no_argument() {
    for json in [
        r#"{"$serde_json::private::RawValue":"{\"path\":\"/tmp/a\"}","path":"/etc/b"}"#,
        r#"{"$serde_json::private::RawValue":"{\"path\":\"/tmp/a\"}"}"#,
        r#"{"o":{"$serde_json::private::RawValue":"{\"a\":1,\"a\":2}"}}"#,
        r##"{"o":{"#":1,"$serde_json::private::RawValue":"2"}}"##,
    ] {
        assert!(read(json.as_bytes()).is_err(), "{json}");
        assert_eq!(canonical(json.as_bytes()), None, "{json}");
    }
    // Control: as a text it is like any other.
    let harmless = r#"{"a":"$serde_json::private::RawValue"}"#;
    assert_eq!(text(harmless), harmless);
}

#[test]
fn s2_a_key_that_is_written_twice_is_no_argument() {
    let refused = read(br#"{"path":"/tmp/a","tags":[],"path":"/etc/b"}"#).expect_err("twice");
    assert_eq!(refused.to_string(), r#"the key "path" is written twice in one object"#);
    assert!(canonical(br#"{"a":[{"b":1,"b":1}]}"#).is_none());
    assert_eq!(
        read(b"[1]").expect_err("a list").to_string(),
        "not a JSON object: invalid type: sequence, expected a map at line 1 column 0"
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| json!(float)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

proptest! {
    #[test]
    fn s2_any_arguments_are_read_back_as_they_were(
        given in prop::collection::hash_map(any::<String>(), any_value(), 0..6)
    ) {
        let given = Map::from_iter(given);
        let written = serde_json::to_vec_pretty(&given).expect("keys are texts");
        let sent = canonical(&written).expect("no key twice");
        prop_assert_eq!(&sent, &serde_json::to_vec(&given).expect("keys are texts"));
        prop_assert_eq!(read(&sent).expect("canonical"), given);
    }
}

/// S2: arguments that the host has as values are recorded as if they had come as their text.
#[test]
fn s2_values_of_the_host_have_the_same_form_as_their_text() {
    let deep = (0..150).fold(json!(1), |inner, _| json!([inner]));
    let given = [
        json!({"b": [1, {"z": "\u{0}", "a": null}], "a": -1, "big": u64::MAX}),
        json!({"fractions": [0.1, 1e300, -0.0, 5e-324, 36893488147419103000.0]}),
        json!({"deep": deep}),
        json!({"a": {"$serde_json::private::RawValue": "1"}}),
        json!({}),
    ];
    let mut refused = 0;
    for value in given {
        let text = value.to_string();
        let Value::Object(map) = value else { panic!("an object") };
        let (host, guest) = (CallArguments::from(map), CallArguments::parse(text.into_bytes()));
        assert_eq!(host.text, guest.text);
        refused += u32::from(host.read.is_err());
        assert_eq!(host.read.ok(), guest.read.ok());
    }
    // Too deep, and a reserved key; the others are read.
    assert_eq!(refused, 2);
}
