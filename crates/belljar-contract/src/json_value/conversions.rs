//! Conversions from and to plain types, and comparisons with them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Number, Value};

use super::{JsonMap, JsonNumber, JsonValue};

impl From<&str> for JsonValue {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for JsonValue {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<bool> for JsonValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<JsonNumber> for JsonValue {
    fn from(number: JsonNumber) -> Self {
        Self::Number(number)
    }
}

impl From<JsonMap> for JsonValue {
    fn from(map: JsonMap) -> Self {
        Self::Object(map)
    }
}

/// `null` for infinity and what is no number.
impl From<f64> for JsonValue {
    fn from(value: f64) -> Self {
        JsonNumber::from_f64(value).map_or(Self::Null, Self::Number)
    }
}

impl<T: Into<JsonValue>> From<Vec<T>> for JsonValue {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<JsonValue>> From<Option<T>> for JsonValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A tree of `serde_json`: what it has lost stays lost.
impl From<Value> for JsonValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number.into()),
            Value::String(text) => Self::String(text),
            Value::Array(items) => items.into_iter().collect(),
            Value::Object(map) => Self::Object(map.into_iter().collect()),
        }
    }
}

/// The tree of `serde_json`, which sorts keys and rounds integers beyond 64 bits.
impl From<&JsonValue> for Value {
    fn from(value: &JsonValue) -> Self {
        match value {
            JsonValue::Null => Self::Null,
            JsonValue::Bool(value) => Self::Bool(*value),
            JsonValue::Number(number) => match number.small() {
                Some(number) => Self::Number(number.clone()),
                None => Self::from(number.as_f64()),
            },
            JsonValue::String(text) => Self::String(text.clone()),
            JsonValue::Array(items) => items.iter().map(Self::from).collect(),
            JsonValue::Object(map) => {
                Self::Object(map.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
        }
    }
}

impl<T: Into<JsonValue>> FromIterator<T> for JsonValue {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for JsonValue {
            fn from(value: $integer) -> Self {
                Self::Number(Number::from(value).into())
            }
        }

        impl PartialEq<$integer> for JsonValue {
            fn eq(&self, other: &$integer) -> bool {
                let own = self.as_number().and_then(JsonNumber::as_i128);
                own.is_some() && own == i128::try_from(*other).ok()
            }
        }
    )*};
}

integers! { i32 i64 u8 u16 u32 u64 usize }

impl PartialEq<str> for JsonValue {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for JsonValue {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

impl PartialEq<String> for JsonValue {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<bool> for JsonValue {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}

impl JsonSchema for JsonValue {
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

impl JsonSchema for JsonMap {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Map::<String, Value>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Map::<String, Value>::json_schema(generator)
    }
}
