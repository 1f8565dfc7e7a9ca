//! JSON that is passed on as it was written.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// Any JSON value, as its text: keys keep their order, and numbers all their digits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct JsonText(Box<RawValue>);

/// The text is not a value that can be passed on.
#[derive(Debug)]
pub enum JsonTextError {
    /// It is not exactly one JSON value.
    Malformed(serde_json::Error),
    /// Its lists and objects are nested too deeply.
    TooDeep,
}

impl fmt::Display for JsonTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::TooDeep => {
                write!(f, "the value is nested more than {} levels deep", JsonText::MAX_DEPTH)
            }
        }
    }
}

impl std::error::Error for JsonTextError {}

impl JsonText {
    /// The most lists and objects within each other: as many as a parser of a tree takes.
    pub const MAX_DEPTH: usize = 127;

    /// The value that a text is, if it is exactly one.
    ///
    /// # Errors
    /// The text is not JSON, or nested too deeply.
    pub fn parse(json: String) -> Result<Self, JsonTextError> {
        RawValue::from_string(json).map_err(JsonTextError::Malformed)?.try_into()
    }

    /// Whether lists and objects in a JSON text are nested more than [`MAX_DEPTH`](Self::MAX_DEPTH)
    /// levels.
    pub fn is_too_deep(json: &str) -> bool {
        let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
        for byte in json.bytes() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = in_string,
                b'"' => in_string = !in_string,
                b'[' | b'{' if !in_string => depth += 1,
                b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > Self::MAX_DEPTH {
                return true;
            }
        }
        false
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value for the runtime.
    pub fn into_raw(self) -> Box<RawValue> {
        self.0
    }
}

impl TryFrom<Box<RawValue>> for JsonText {
    type Error = JsonTextError;

    fn try_from(json: Box<RawValue>) -> Result<Self, JsonTextError> {
        if Self::is_too_deep(json.get()) { Err(JsonTextError::TooDeep) } else { Ok(Self(json)) }
    }
}

/// The text of a tree, whose keys are sorted.
impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        Self(RawValue::from_string(value.to_string()).unwrap_or_default())
    }
}

/// Two texts are equal if they are written alike.
impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for JsonText {}

impl JsonSchema for JsonText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Value::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a8_a_text_is_kept_as_it_is_written() {
        let json = r#"{ "total":1,"alpha": 18446744073709551617 }"#;
        let read: JsonText = serde_json::from_str(json).expect("JSON");
        assert_eq!(read.as_str(), json);
        assert_eq!(serde_json::to_string(&read).expect("JSON"), json);
        assert!(JsonText::parse("1 2".to_owned()).is_err());
    }

    #[test]
    fn s10_a_text_that_is_nested_too_deeply_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(JsonText::parse(nested(JsonText::MAX_DEPTH)).is_ok());
        let refused = JsonText::parse(nested(JsonText::MAX_DEPTH + 1));
        assert!(matches!(refused, Err(JsonTextError::TooDeep)), "{refused:?}");
        // Brackets in a string, and lists beside each other, are not nested.
        let beside = format!("[{}[]]", "[],".repeat(1000));
        let text = format!(r#""\"{}""#, "[".repeat(1000));
        for flat in [beside, text] {
            assert!(JsonText::parse(flat).is_ok());
        }
    }
}
