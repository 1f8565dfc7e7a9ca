//! Reads a JSON text into a tree.

use serde::de::Error as _;
use serde_json::value::RawValue;

use super::{JsonMap, JsonNumber, JsonValue};
use crate::JsonText;

/// The value that a text is, if it is exactly one. A key that is written twice has its last value.
///
/// # Errors
/// The text is not JSON, or nested more than [`JsonText::MAX_DEPTH`] levels deep.
pub fn parse(json: &str) -> Result<JsonValue, serde_json::Error> {
    let checked: &RawValue = serde_json::from_str(json)?;
    if JsonText::is_too_deep(json) {
        let most = JsonText::MAX_DEPTH;
        let why = format!("the value is nested more than {most} levels deep");
        return Err(serde_json::Error::custom(why));
    }
    JsonParser { rest: checked.get() }.value()
}

/// The unread rest of a text that is known to be JSON and not too deep.
struct JsonParser<'a> {
    rest: &'a str,
}

impl<'a> JsonParser<'a> {
    fn value(&mut self) -> Result<JsonValue, serde_json::Error> {
        self.skip_space();
        match self.rest.bytes().next() {
            Some(b'{') => self.object().map(JsonValue::Object),
            Some(b'[') => self.array().map(JsonValue::Array),
            Some(b'"') => self.string().map(JsonValue::String),
            _ => {
                let text = self.scalar();
                Ok(match text {
                    "null" => JsonValue::Null,
                    "true" => JsonValue::Bool(true),
                    "false" => JsonValue::Bool(false),
                    _ => JsonValue::Number(JsonNumber::parse(text).ok_or_else(malformed)?),
                })
            }
        }
    }

    fn object(&mut self) -> Result<JsonMap, serde_json::Error> {
        let mut map = JsonMap::new();
        self.take('{');
        while !self.take('}') {
            self.take(',');
            self.skip_space();
            let key = self.string()?;
            self.take(':');
            let value = self.value()?;
            map.insert(key, value);
        }
        Ok(map)
    }

    fn array(&mut self) -> Result<Vec<JsonValue>, serde_json::Error> {
        let mut items = Vec::new();
        self.take('[');
        while !self.take(']') {
            self.take(',');
            items.push(self.value()?);
        }
        Ok(items)
    }

    /// A key or a text.
    fn string(&mut self) -> Result<String, serde_json::Error> {
        let text = self.rest.strip_prefix('"').ok_or_else(malformed)?;
        let plain = text.find(['"', '\\']).ok_or_else(malformed)?;
        if let Some(rest) = text.get(plain..).and_then(|rest| rest.strip_prefix('"')) {
            self.rest = rest;
            return Ok(text.get(..plain).unwrap_or_default().to_owned());
        }
        let mut strings = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        let string = strings.next().ok_or_else(malformed)??;
        self.rest = self.rest.get(strings.byte_offset()..).unwrap_or_default();
        Ok(string)
    }

    /// A number, or a word.
    fn scalar(&mut self) -> &'a str {
        let end = self.rest.find([',', ']', '}', ' ', '\t', '\n', '\r']);
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        text
    }

    /// Whether this sign comes next; it is then passed.
    fn take(&mut self, sign: char) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }
}

fn malformed() -> serde_json::Error {
    serde_json::Error::custom("not valid JSON")
}
