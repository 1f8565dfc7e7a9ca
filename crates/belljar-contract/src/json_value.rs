//! JSON as a tree that keeps what was written: keys in their order, integers with all their digits.
//!
//! The tree of `serde_json` sorts keys and rounds integers beyond 64 bits. Values that pass from code to
//! code through the host are this tree, so that they arrive as they were sent.

mod conversions;
mod macros;
mod map;
mod number;
mod parser;
mod reading;
#[cfg(test)]
mod tests;
mod writing;

use std::{fmt, ops};

pub use map::JsonMap;
pub use number::JsonNumber;
pub use parser::parse;
pub use reading::{from_slice, from_str, from_value};
pub use writing::to_value;

/// One value of JSON, with everything below it.
#[derive(Clone, Default, PartialEq)]
pub enum JsonValue {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(JsonNumber),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<JsonValue>),
    /// An object; its keys are in the order in which they were written.
    Object(JsonMap),
}

static NULL: JsonValue = JsonValue::Null;

impl JsonValue {
    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// Whether it is a text.
    pub fn is_string(&self) -> bool {
        matches!(self, Self::String(_))
    }

    /// Whether it is a list.
    pub fn is_array(&self) -> bool {
        matches!(self, Self::Array(_))
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The boolean that it is.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The text that it is.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The number that it is.
    pub fn as_number(&self) -> Option<&JsonNumber> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    /// The integer that it is, if it fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The integer that it is, if it fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// The nearest double to the number that it is.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// The items of the list that it is.
    pub fn as_array(&self) -> Option<&Vec<JsonValue>> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The items of the list that it is.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<JsonValue>> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The object that it is.
    pub fn as_object(&self) -> Option<&JsonMap> {
        if let Self::Object(map) = self { Some(map) } else { None }
    }

    /// The object that it is.
    pub fn as_object_mut(&mut self) -> Option<&mut JsonMap> {
        if let Self::Object(map) = self { Some(map) } else { None }
    }

    /// The value of a key, or the item at a place.
    pub fn get(&self, place: impl JsonPlace) -> Option<&JsonValue> {
        place.within(self)
    }

    /// Takes the value and leaves `null`.
    pub fn take(&mut self) -> JsonValue {
        std::mem::take(self)
    }
}

/// The place of a value in its parent: the key of an object or the index of a list.
pub trait JsonPlace {
    /// The value at this place.
    fn within(self, value: &JsonValue) -> Option<&JsonValue>;
}

impl JsonPlace for &str {
    fn within(self, value: &JsonValue) -> Option<&JsonValue> {
        value.as_object()?.get(self)
    }
}

impl JsonPlace for &String {
    fn within(self, value: &JsonValue) -> Option<&JsonValue> {
        self.as_str().within(value)
    }
}

impl JsonPlace for usize {
    fn within(self, value: &JsonValue) -> Option<&JsonValue> {
        value.as_array()?.get(self)
    }
}

/// `null` where there is nothing.
impl<P: JsonPlace> ops::Index<P> for JsonValue {
    type Output = JsonValue;

    fn index(&self, place: P) -> &JsonValue {
        place.within(self).unwrap_or(&NULL)
    }
}

/// The value of a key, to be assigned. A value that is not an object becomes one.
impl ops::IndexMut<&str> for JsonValue {
    fn index_mut(&mut self, key: &str) -> &mut JsonValue {
        if !self.is_object() {
            *self = Self::Object(JsonMap::new());
        }
        match self {
            Self::Object(map) => map.entry(key.to_owned()).or_default(),
            other @ (Self::Null
            | Self::Bool(_)
            | Self::Number(_)
            | Self::String(_)
            | Self::Array(_)) => other,
        }
    }
}

/// The text of the value, on one line.
impl fmt::Display for JsonValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = if f.alternate() {
            serde_json::to_string_pretty(self)
        } else {
            serde_json::to_string(self)
        };
        f.write_str(&written.map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for JsonValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
