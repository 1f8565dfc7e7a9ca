//! Checks the value that a cell sent: JSON that any reader accepts, or an error.

use std::fmt;

use belljar_contract::{ErrorCode, Limits, RunError};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Checks that the bytes are one JSON document within its caps.
pub(crate) fn check(value: Vec<u8>, limits: &Limits) -> Result<Box<RawValue>, RunError> {
    if value.len() as u64 > limits.result_bytes {
        return Err(RunError::new(
            ErrorCode::LimitResult,
            format!("the value is larger than {} bytes of JSON", limits.result_bytes),
        ));
    }
    let broken = || RunError::new(ErrorCode::SandboxProtocol, "the cell's value is not JSON");
    parse_strict(value).ok_or_else(broken)
}

/// Parses one JSON document that any reader accepts; `None` if it is not one.
pub(crate) fn parse_strict(value: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(value).ok()?;
    serde_json::from_str::<StrictJson>(&text).ok()?;
    RawValue::from_string(text).ok()
}

/// Parses every string and number of a document and keeps none of them.
///
/// A raw value alone would accept lone surrogates, numbers out of range and endless nesting, and the next
/// reader would fail.
struct StrictJson;

impl<'de> Deserialize<'de> for StrictJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = StrictJson;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_bool<E>(self, _: bool) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_u64<E>(self, _: u64) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_i64<E>(self, _: i64) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_f64<E>(self, _: f64) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_str<E>(self, _: &str) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<StrictJson, A::Error> {
        while items.next_element::<StrictJson>()?.is_some() {}
        Ok(StrictJson)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<StrictJson, A::Error> {
        while entries.next_entry::<StrictJson, StrictJson>()?.is_some() {}
        Ok(StrictJson)
    }
}

#[cfg(test)]
mod tests;
