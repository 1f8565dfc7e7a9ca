//! A value as a cell sent it: JSON that any reader takes, or refused.

use std::fmt;

use belljar_contract::{ErrorCode, Limits, RunError};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Checks that the bytes are one JSON document within its caps.
pub(crate) fn checked(value: Vec<u8>, limits: &Limits) -> Result<Box<RawValue>, RunError> {
    if value.len() as u64 > limits.result_bytes {
        return Err(RunError::new(
            ErrorCode::LimitResult,
            format!("the value is over {} bytes of JSON", limits.result_bytes),
        ));
    }
    let broken = || RunError::new(ErrorCode::SandboxProtocol, "the cell's value is not JSON");
    readable(value).ok_or_else(broken)
}

/// The bytes as one JSON document that any reader takes.
pub(crate) fn readable(value: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(value).ok()?;
    serde_json::from_str::<Readable>(&text).ok()?;
    RawValue::from_string(text).ok()
}

/// Reads a document to its last string and number and keeps nothing of it.
///
/// A raw value alone would let lone surrogates, numbers beyond any range and endless nesting
/// through, for the next reader to fail on.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadAll)
    }
}

struct ReadAll;

impl<'de> Visitor<'de> for ReadAll {
    type Value = Readable;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_str<E>(self, _: &str) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Readable, A::Error> {
        while items.next_element::<Readable>()?.is_some() {}
        Ok(Readable)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Readable, A::Error> {
        while entries.next_entry::<Readable, Readable>()?.is_some() {}
        Ok(Readable)
    }
}

#[cfg(test)]
mod tests;
