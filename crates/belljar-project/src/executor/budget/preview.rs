//! The beginning of a large value for a model, as it was written: keys in their order, numbers with all
//! their digits.

use belljar_wire::json::{JsonTokenKind, JsonTokens};
use serde_json::value::RawValue;

/// Longest text in a preview, in bytes.
const TEXT_BYTES: usize = 200;

/// The beginning of a value, in roughly `most` bytes. Of a long text, only the beginning is kept.
pub(super) fn preview(json: &str, most: usize) -> Box<RawValue> {
    let mut writer = PreviewWriter { text: String::new(), open: Vec::new(), left: most };
    let mut tokens = JsonTokens::new(json).peekable();
    let mut comma = "";
    while let Some(token) = tokens.next() {
        let is_key = token.kind == JsonTokenKind::String
            && tokens.peek().is_some_and(|next| next.kind == JsonTokenKind::Colon);
        let cost = if is_key { token.text.len() + 2 } else { 2 };
        let begins_part = is_key || (writer.is_in_array() && is_item(token.kind));
        if begins_part {
            if !writer.take(cost) {
                break;
            }
            writer.text += comma;
            comma = "";
        }
        match token.kind {
            JsonTokenKind::Open => writer.open(token.text),
            JsonTokenKind::Close => writer.close(),
            JsonTokenKind::Comma => comma = ",",
            JsonTokenKind::Colon => writer.text += ":",
            JsonTokenKind::String if is_key => writer.text += token.text,
            JsonTokenKind::String => writer.string(token.text),
            JsonTokenKind::Number | JsonTokenKind::Literal => {
                writer.take(token.text.len() + 1);
                writer.text += token.text;
            }
        }
    }
    writer.end()
}

/// Whether a token is an item, or the beginning of one.
fn is_item(kind: JsonTokenKind) -> bool {
    !matches!(kind, JsonTokenKind::Close | JsonTokenKind::Comma | JsonTokenKind::Colon)
}

struct PreviewWriter {
    text: String,
    /// The ends of what is open.
    open: Vec<&'static str>,
    /// Bytes left for further parts.
    left: usize,
}

impl PreviewWriter {
    fn is_in_array(&self) -> bool {
        self.open.last() == Some(&"]")
    }

    fn open(&mut self, bracket: &str) {
        self.text += bracket;
        self.open.push(if bracket == "[" { "]" } else { "}" });
    }

    fn close(&mut self) {
        self.text += self.open.pop().unwrap_or_default();
    }

    fn string(&mut self, written: &str) {
        let short = shortened(written);
        let kept = short.as_deref().unwrap_or(written);
        self.take(kept.len() + 1);
        self.text += kept;
    }

    /// Takes bytes from the remaining budget; false if there were too few.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.left >= bytes;
        self.left = self.left.saturating_sub(bytes);
        fits
    }

    fn end(mut self) -> Box<RawValue> {
        while !self.open.is_empty() {
            self.close();
        }
        RawValue::from_string(self.text).unwrap_or_default()
    }
}

/// The beginning of a JSON string that is too long; `None` if it is not.
fn shortened(written: &str) -> Option<String> {
    if written.len() <= TEXT_BYTES + 2 {
        return None;
    }
    let text: String = serde_json::from_str(written).unwrap_or_default();
    let short = text.get(..text.floor_char_boundary(TEXT_BYTES)).unwrap_or_default();
    let end = if short.len() < text.len() { "…" } else { "" };
    serde_json::to_string(&format!("{short}{end}")).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a8_a_preview_keeps_the_order_of_keys_and_the_digits_of_numbers() {
        let json = r#"{"total":1,"alpha":[18446744073709551617,{"z":1.50,"a":[]}],"e":{}}"#;
        assert_eq!(preview(json, 1000).get(), json);
        assert_eq!(preview(" [ 1 , \"a\\\"\" ] ", 1000).get(), r#"[1,"a\""]"#);
        for scalar in ["7", "null", "true", "\"x\"", "[]", "{}"] {
            assert_eq!(preview(scalar, 0).get(), scalar);
        }
    }

    /// However little fits, it is JSON.
    #[test]
    fn e5_a_preview_is_json_at_every_size() {
        let json = r#"{"rows":[{"z":[1,2],"a":"x"},{"z":[],"a":"y"}],"n":18446744073709551617}"#;
        for most in 0..json.len() * 2 {
            let short = preview(json, most);
            assert_ne!(short.get(), "null", "{most}");
            assert!(short.get().len() <= most + 40, "{most}: {short}");
        }
        assert_eq!(preview(json, 10).get(), r#"{"rows":[{}]}"#);
    }

    #[test]
    fn e5_of_a_long_text_only_the_beginning_is_there() {
        let long = json!([["é\n".repeat(1000)]]).to_string();
        let short: Vec<Vec<String>> = serde_json::from_str(preview(&long, 10).get()).expect("JSON");
        let text = short.concat().concat();
        assert!(text.starts_with("é\né\n") && text.ends_with('…'), "{text}");
        assert!(text.len() <= TEXT_BYTES + 3, "{}", text.len());
        // Controls: text that fits is as it was written.
        let fits = format!("\"{}\"", "x".repeat(TEXT_BYTES));
        assert_eq!(preview(&fits, 10).get(), fits);
    }
}
