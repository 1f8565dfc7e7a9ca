//! A number as it was written.

use std::fmt;

use serde_json::{Number, value::RawValue};

/// A number of JSON: an integer of any size, or a double.
#[derive(Clone, PartialEq)]
pub struct JsonNumber(Kind);

#[derive(Clone, PartialEq)]
enum Kind {
    /// An integer of 64 bits, or a double.
    Small(Number),
    /// The text of a number that is neither, in the form of JSON.
    Large(Box<str>),
}

impl JsonNumber {
    /// The number that a text of JSON is. It keeps the text of an integer that has more than 64 bits, and of a
    /// number that is greater than every double.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |letter: char| letter.is_ascii_digit();
        if !text.starts_with(|first| first == '-' || digit(first)) || !text.ends_with(digit) {
            return None;
        }
        let is_integer = !text.contains(['.', 'e', 'E']);
        let is_rounded = |number: &Number| is_integer && number.is_f64() && text != "-0";
        Some(Self(match serde_json::from_str::<Number>(text) {
            Ok(number) if !is_rounded(&number) => Kind::Small(number),
            // Greater than every double, or not a number.
            _ if serde_json::from_str::<&RawValue>(text).is_err() => return None,
            Ok(_) | Err(_) => Kind::Large(text.into()),
        }))
    }

    /// The number of a double, if it is finite.
    pub fn from_f64(value: f64) -> Option<Self> {
        Number::from_f64(value).map(|number| Self(Kind::Small(number)))
    }

    /// The integer that it is, if it fits.
    pub fn as_i64(&self) -> Option<i64> {
        if let Kind::Small(number) = &self.0 { number.as_i64() } else { None }
    }

    /// The integer that it is, if it fits.
    pub fn as_u64(&self) -> Option<u64> {
        if let Kind::Small(number) = &self.0 { number.as_u64() } else { None }
    }

    /// The integer that it is, if it fits.
    pub fn as_i128(&self) -> Option<i128> {
        match &self.0 {
            Kind::Small(number) => number.as_i128(),
            Kind::Large(text) => text.parse().ok(),
        }
    }

    /// The nearest double; none if every double is smaller or greater.
    pub fn as_f64(&self) -> Option<f64> {
        match &self.0 {
            Kind::Small(number) => number.as_f64(),
            Kind::Large(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
        }
    }

    /// Whether it is a double.
    pub fn is_f64(&self) -> bool {
        matches!(&self.0, Kind::Small(number) if number.is_f64())
    }

    /// The number, if it fits into 64 bits.
    pub(super) fn small(&self) -> Option<&Number> {
        if let Kind::Small(number) = &self.0 { Some(number) } else { None }
    }
}

impl From<Number> for JsonNumber {
    fn from(number: Number) -> Self {
        Self(Kind::Small(number))
    }
}

impl From<i128> for JsonNumber {
    fn from(value: i128) -> Self {
        let small = i64::try_from(value).map(Number::from);
        let small = small.or_else(|_| u64::try_from(value).map(Number::from));
        Self(small.map_or_else(|_| Kind::Large(value.to_string().into()), Kind::Small))
    }
}

impl fmt::Display for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Small(number) => number.fmt(f),
            Kind::Large(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
