//! Tests of the exact tree.

use serde::{Deserialize, Serialize};

use super::{JsonMap, JsonNumber, JsonValue, from_str, from_value, parse, to_value};
use crate::exact_json;

/// Everything that a tree of `serde_json` loses, and what it must not change.
const WRITTEN: &str = r#"{"z":18446744073709551617,"a":[1606938044258990275541962092341162602522202993782792835301376,-9223372036854775809,1e400],"m":{"é\n\"":0.1,"\ud83d\ude00":null,"b":-0.0,"c":18446744073709551615,"d":-9223372036854775808},"":[],"e":{},"t":true}"#;

#[test]
fn a8_a_tree_is_written_as_it_was_read() {
    let read = parse(WRITTEN).expect("JSON");
    let again = read.to_string();
    assert_eq!(again, WRITTEN.replace("\\ud83d\\ude00", "😀"));
    assert_eq!(parse(&again).expect("JSON"), read);
    // Space between the parts changes nothing.
    assert_eq!(parse(&format!("{read:#}")).expect("JSON"), read);
    // The tree of `serde_json` is the control: it loses both.
    let lost: serde_json::Value =
        serde_json::from_str(r#"{"z":18446744073709551617,"a":1}"#).expect("JSON");
    assert_eq!(lost.to_string(), r#"{"a":1,"z":1.8446744073709552e+19}"#);
}

#[test]
fn s10_what_is_not_json_or_too_deep_is_no_tree() {
    for wrong in
        ["", "{", "[1,]", "01", "+1", "1 2", "NaN", "tru", r#""\ud800""#, r#"{"a" 1}"#, "-"]
    {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(127)).is_ok());
    assert!(parse(&nested(128)).is_err());
    assert!(parse(&nested(1_000_000)).is_err());
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum TaggedValue {
    Done { value: JsonValue, more: Option<JsonValue> },
    Nested(Inner),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Inner {
    #[serde(flatten)]
    rest: JsonMap,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Outer {
    at: u64,
    part: f64,
    plain: Plain,
    #[serde(flatten)]
    tagged: TaggedValue,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Plain {
    Unit,
    Held(JsonValue),
}

#[test]
fn a8_values_in_tagged_and_flattened_types_are_exact() {
    let large = "1606938044258990275541962092341162602522202993782792835301376";
    for written in [
        format!(
            r#"{{"at":1,"part":0.5,"plain":"Unit","kind":"done","value":{{"z":{large},"a":1}},"more":null}}"#
        ),
        format!(
            r#"{{"at":1,"part":2.0,"plain":{{"Held":{large}}},"kind":"nested","z":[{large}],"a":-{large}}}"#
        ),
    ] {
        let read: Outer = from_str(&written).expect("of this type");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), written);
        let again: Outer = from_value(to_value(&read).expect("a tree")).expect("of this type");
        assert_eq!(again, read);
    }
    // A number that is too large for a type is refused.
    assert!(from_str::<u64>("18446744073709551616").is_err());
    assert!(from_str::<Vec<f64>>("[1e400]").is_err());
}

#[test]
fn a8_objects_are_equal_whatever_the_order_of_their_keys() {
    let one = parse(r#"{"a":1,"b":[{"c":1,"d":2}]}"#).expect("JSON");
    assert_eq!(one, parse(r#"{"b":[{"d":2,"c":1}],"a":1}"#).expect("JSON"));
    assert_ne!(one, parse(r#"{"b":[{"d":2,"c":2}],"a":1}"#).expect("JSON"));
    let mut map = exact_json!({"z": 1, "y": 2, "x": 3}).as_object().cloned().expect("an object");
    map.remove("z");
    assert_eq!(JsonValue::Object(map).to_string(), r#"{"y":2,"x":3}"#);
}

#[test]
fn a8_the_macro_keeps_order_and_digits() {
    let large = parse("18446744073709551617").expect("JSON");
    let key = "k".to_owned();
    let made = exact_json!({"z": large, "a": [1, -2, null, {"y": 1.5, "b": []}], "n": null, (key): Some(true), "e": {}});
    let written =
        r#"{"z":18446744073709551617,"a":[1,-2,null,{"y":1.5,"b":[]}],"n":null,"k":true,"e":{}}"#;
    assert_eq!(made.to_string(), written);
    assert_eq!(made["a"][3]["y"].as_f64(), Some(1.5));
    assert_eq!(made["nowhere"], JsonValue::Null);
}

#[test]
fn a8_numbers_say_what_they_are() {
    let number = |text: &str| JsonNumber::parse(text).expect("a number");
    assert_eq!(number("18446744073709551617").as_i128(), Some(18_446_744_073_709_551_617));
    assert_eq!(number("18446744073709551617").as_f64(), Some(18_446_744_073_709_551_616.0));
    assert_eq!(number("18446744073709551617").as_u64(), None);
    assert_eq!(number("7").as_i64(), Some(7));
    assert_eq!(number("1e400").as_f64(), None);
    assert_eq!(JsonNumber::from(18_446_744_073_709_551_617_i128), number("18446744073709551617"));
    assert_eq!(JsonNumber::from(-7_i128), number("-7"));
    for wrong in ["", "x", "0x1", "1 ", "\"1\"", "[1]", "--1", "00"] {
        assert_eq!(JsonNumber::parse(wrong), None, "{wrong}");
    }
}
