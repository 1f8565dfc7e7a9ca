//! Calls that name the directory of Belljar's own state.
//!
//! It holds the token with which approvals are decided and the records of other runs. A server that reads
//! or writes files for guest code could reach them, though no cell can. So a person is asked whatever the
//! rules allow.

use icu_normalizer::ComposingNormalizerBorrowed;
use serde_json::{Map, Value};

/// The directory, as every project calls it, and the end of the path of the one with the rules that a user
/// approved for good.
const NAMES: [&str; 2] = [".belljar", "belljar/approvals"];

/// Why such a call asks.
pub(super) const REASON: &str = "its arguments name .belljar or belljar/approvals, where the token, the records and the approved \
     rules are";

/// Whether a text or a key in the arguments contains the name, in any spelling.
pub(super) fn is_named(arguments: &Map<String, Value>) -> bool {
    arguments.iter().any(|(key, value)| is_in(key) || is_in_value(value))
}

fn is_in_value(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => is_in(text),
        Value::Array(items) => items.iter().any(is_in_value),
        Value::Object(fields) => is_named(fields),
    }
}

fn is_in(text: &str) -> bool {
    let names = |text: &str, name: &str| {
        let name = name.as_bytes();
        text.as_bytes().windows(name.len()).any(|window| window.eq_ignore_ascii_case(name))
    };
    let has = |text: &str| NAMES.iter().any(|name| names(text, name));
    let is_plain = text.is_ascii() && !text.contains('%');
    has(text) || !is_plain && has(&plain(text))
}

/// The text with escapes of addresses decoded, also when written twice, and plain letters for what
/// only looks different.
fn plain(text: &str) -> String {
    let decoded = super::condition::decoded(text);
    ComposingNormalizerBorrowed::new_nfkc().normalize(&decoded).into_owned()
}
