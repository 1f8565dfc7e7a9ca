//! Reads types out of a tree, so that the values in them are exact.
//!
//! A reader of `serde_json` offers an integer beyond 64 bits as a double, and nothing shows what it was. So the
//! text becomes a tree first. The tree offers such a number as bytes, which JSON does not have: they
//! reach a [`JsonValue`] through every type between, tagged and flattened ones included.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Number};

use super::{JsonMap, JsonNumber, JsonValue, parse};

/// Reads a type from a text; the values in it are exact.
///
/// # Errors
/// The text is not JSON, or not of this type.
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    from_str(std::str::from_utf8(json).map_err(Error::custom)?)
}

/// Reads a type from a text; the values in it are exact.
///
/// # Errors
/// The text is not JSON, or not of this type.
pub fn from_str<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    from_value(parse(json)?)
}

/// Reads a type from a tree; the values in it are exact.
///
/// # Errors
/// The value is not of this type.
pub fn from_value<T: DeserializeOwned>(value: JsonValue) -> Result<T, Error> {
    T::deserialize(value)
}

impl<'de> IntoDeserializer<'de, Error> for JsonValue {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for JsonValue {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Number(number) => match number.small() {
                Some(number) => number.deserialize_any(visitor),
                None => visitor.visit_byte_buf(number.to_string().into_bytes()),
            },
            Self::String(text) => visitor.visit_string(text),
            Self::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter());
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            Self::Object(map) => {
                let mut entries = MapDeserializer::new(map.into_iter());
                let value = visitor.visit_map(&mut entries)?;
                entries.end()?;
                Ok(value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::String(name) => visitor.visit_enum(name.into_deserializer()),
            Self::Object(map) => {
                let entries = MapDeserializer::new(map.into_iter());
                visitor.visit_enum(MapAccessDeserializer::new(entries))
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) => {
                Err(Error::custom("expected a name, or an object with one key"))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> Deserialize<'de> for JsonValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

impl<'de> Deserialize<'de> for JsonMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor;

        impl<'de> Visitor<'de> for MapVisitor {
            type Value = JsonMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_unit<E>(self) -> Result<JsonMap, E> {
                Ok(JsonMap::new())
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<JsonMap, A::Error> {
                map(entries)
            }
        }

        deserializer.deserialize_map(MapVisitor)
    }
}

fn map<'de, A: MapAccess<'de>>(mut entries: A) -> Result<JsonMap, A::Error> {
    let mut map = JsonMap::new();
    while let Some((key, value)) = entries.next_entry()? {
        map.insert(key, value);
    }
    Ok(map)
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = JsonValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<JsonValue, E> {
        Ok(JsonValue::Null)
    }

    fn visit_none<E>(self) -> Result<JsonValue, E> {
        Ok(JsonValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonValue, D::Error> {
        JsonValue::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<JsonValue, D::Error> {
        JsonValue::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<JsonValue, E> {
        Ok(JsonValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<JsonValue, E> {
        Ok(JsonValue::Number(Number::from(value).into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<JsonValue, E> {
        Ok(JsonValue::Number(Number::from(value).into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<JsonValue, E> {
        Ok(JsonNumber::from_f64(value).map_or(JsonValue::Null, JsonValue::Number))
    }

    /// Only a number that does not fit into 64 bits is offered as bytes.
    fn visit_bytes<E: serde::de::Error>(self, text: &[u8]) -> Result<JsonValue, E> {
        let number = std::str::from_utf8(text).ok().and_then(JsonNumber::parse);
        number.map(JsonValue::Number).ok_or_else(|| E::custom("bytes are not JSON"))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonValue, E> {
        Ok(JsonValue::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<JsonValue, E> {
        Ok(JsonValue::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonValue, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(JsonValue::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<JsonValue, A::Error> {
        map(entries).map(JsonValue::Object)
    }
}
