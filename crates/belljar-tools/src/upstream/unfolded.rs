//! Estimates the memory of parsed JSON: up to thirty times its length.
//!
//! A server decides what it sends, so this is checked before anything is parsed.

use belljar_wire::json::count_parts;

/// A value of its own, or an entry of a map with its key.
const VALUE_BYTES: usize = 64;

/// About how many bytes of memory the values of a JSON text take.
pub(super) fn unfolded_bytes(json: &str) -> usize {
    let values = count_parts(json) + 1;
    json.len().saturating_add(values.saturating_mul(VALUE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::unfolded_bytes;

    #[test]
    fn only_what_is_outside_of_strings_becomes_values() {
        assert_eq!(unfolded_bytes(r#""a,[{\",[""#), 64 + 10);
        assert_eq!(unfolded_bytes("[1,[],{}]"), 6 * 64 + 9);
        assert_eq!(unfolded_bytes(r#"{"a":"\\","b":2}"#), 3 * 64 + 16);
    }
}
