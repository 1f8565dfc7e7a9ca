//! Parses the beginning of a JSON text and counts its items, without building the whole tree.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Approximate size of the parsed beginning, in bytes of text.
const KEPT_BYTES: usize = 256 << 10;
/// Cost of a JSON node beside its text.
const NODE_BYTES: usize = 16;
/// Longest part of one string that is kept.
const KEPT_TEXT: usize = 1 << 10;

/// Deserializes until the budget is used up.
pub(super) struct Beginning<'a> {
    left: &'a mut usize,
}

impl Beginning<'_> {
    /// The beginning of a value; `null` if the text is not valid JSON.
    pub(super) fn of(json: &str) -> Value {
        let mut left = KEPT_BYTES;
        let mut text = serde_json::Deserializer::from_str(json);
        Beginning { left: &mut left }.deserialize(&mut text).unwrap_or_default()
    }

    fn take(&mut self, bytes: usize) {
        *self.left = self.left.saturating_sub(bytes + NODE_BYTES);
    }
}

impl<'de> DeserializeSeed<'de> for Beginning<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Beginning<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(mut self) -> Result<Value, E> {
        self.take(0);
        Ok(Value::Null)
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<Value, E> {
        self.take(0);
        Ok(value.into())
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<Value, E> {
        self.take(0);
        Ok(value.into())
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<Value, E> {
        self.take(0);
        Ok(value.into())
    }

    fn visit_f64<E>(mut self, value: f64) -> Result<Value, E> {
        self.take(0);
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(mut self, text: &str) -> Result<Value, E> {
        let kept = text.get(..text.floor_char_boundary(KEPT_TEXT)).unwrap_or_default();
        self.take(kept.len());
        Ok(kept.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        self.take(0);
        let mut kept = Vec::new();
        while *self.left > 0 {
            match items.next_element_seed(Beginning { left: &mut *self.left })? {
                Some(item) => kept.push(item),
                None => return Ok(kept.into()),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(kept.into())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Value, A::Error> {
        self.take(0);
        let mut kept = Map::new();
        while *self.left > 0 {
            let Some(name) = fields.next_key::<String>()? else { return Ok(kept.into()) };
            self.take(name.len());
            kept.insert(name, fields.next_value_seed(Beginning { left: &mut *self.left })?);
        }
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(kept.into())
    }
}

/// The number of items, fields or characters of a value; `None` for other values.
pub(super) fn count(json: &str) -> Option<usize> {
    serde_json::from_str::<Count>(json).ok()?.0
}

struct Count(Option<usize>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Count, E> {
        Ok(Count(Some(text.chars().count())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Count, A::Error> {
        let mut count = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Count(Some(count)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Count, A::Error> {
        let mut count = 0;
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Count(Some(count)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn s10_a_small_value_is_all_there() {
        let value = json!({"a": [1, -2, 1.5, null, true, "x"], "b": {}});
        assert_eq!(Beginning::of(&value.to_string()), value);
        assert_eq!(Beginning::of("[1,"), Value::Null);
    }

    /// A value that would parse to a hundred megabytes is cut to almost nothing.
    #[test]
    fn s10_of_a_large_value_only_the_beginning_is_unfolded() {
        let json = format!("[{}[]]", "[],".repeat(1_000_000));
        let kept = Beginning::of(&json);
        assert!(kept.as_array().is_some_and(|kept| kept.len() <= KEPT_BYTES / NODE_BYTES));
        assert_eq!(count(&json), Some(1_000_001));
        let text = Beginning::of(&json!(["é".repeat(1 << 20)]).to_string());
        assert!(text[0].as_str().is_some_and(|text| text.len() <= KEPT_TEXT));
    }

    #[test]
    fn s10_what_can_be_counted_is_counted() {
        assert_eq!(count("\"aé\""), Some(2));
        assert_eq!(count("{\"a\":1,\"b\":[1,2]}"), Some(2));
        assert_eq!((count("7"), count("null"), count("true")), (None, None, None));
    }
}
