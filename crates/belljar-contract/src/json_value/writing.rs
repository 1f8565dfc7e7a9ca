//! Writes a tree: with `serde_json`, each number as its text.

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use super::{JsonMap, JsonNumber, JsonValue, parse};

/// The tree of anything that can be written as JSON.
///
/// # Errors
/// It cannot be written as JSON, or is nested too deeply.
pub fn to_value(value: &(impl Serialize + ?Sized)) -> Result<JsonValue, serde_json::Error> {
    parse(&serde_json::to_string(value)?)
}

impl Serialize for JsonValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(map) => map.serialize(serializer),
        }
    }
}

impl Serialize for JsonMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl Serialize for JsonNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.small() {
            Some(number) => number.serialize(serializer),
            None => RawValue::from_string(self.to_string())
                .map_err(S::Error::custom)?
                .serialize(serializer),
        }
    }
}
