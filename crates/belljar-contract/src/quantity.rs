//! Durations and sizes as people write them: `300ms`, `30s`, `5m`; `64KiB`, `512MiB`, `1.5GB`.
//!
//! Pure text to number. Zero is refused: no limit of a run makes sense at zero.

use std::time::Duration;

use crate::{Limit, Quantity};
use thiserror::Error;

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// The text does not start with a number. Holds the text and an example.
    #[error("`{0}` does not start with a number; write for example {1}")]
    Number(String, &'static str),
    /// The unit is unknown. Holds the text, the unit and an example.
    #[error("`{0}` has the unknown unit `{1}`; write for example {2}")]
    Unit(String, String, &'static str),
    /// A size has no unit. Holds the text, and the same number with a unit.
    #[error("`{0}` has no unit; write for example {0}{1}, or {0}B for bytes")]
    NoUnit(String, &'static str),
    /// Zero is not a limit.
    #[error("must be more than zero")]
    Zero,
    /// The number does not fit.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

const DURATIONS: &str = "300ms, 30s, 5m or 1h (a plain number is seconds)";
const SIZES: &str = "64KiB, 512MiB or 1GB";

/// The amount of a limit as it stands in a file or after a flag: nanoseconds, bytes or a count.
pub fn parse(limit: Limit, text: &str) -> Result<u64, QuantityError> {
    match limit.quantity() {
        Quantity::Time => {
            duration(text).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        }
        // The name of the limit has the unit.
        Quantity::Size if limit.key().ends_with("_bytes") && is_plain(text) => bytes(text),
        Quantity::Size => size(text),
        Quantity::Count => count(text).map(u64::from),
    }
}

/// The amount of a limit for people.
pub fn show(limit: Limit, amount: u64) -> String {
    match limit.quantity() {
        Quantity::Time => show_duration(Duration::from_nanos(amount)),
        Quantity::Size => show_size(amount),
        Quantity::Count => grouped(amount),
    }
}

/// A duration; a plain number is seconds.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let nanoseconds = scan(text, DURATIONS, |unit| {
        Some(match unit {
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "" | "s" | "sec" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        })
    })?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// A size in bytes; `KB` is 1,000 and `KiB` is 1,024. A number needs a unit: `512` is rarely meant as
/// bytes.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    if is_plain(text) {
        bytes(text)?;
        return Err(QuantityError::NoUnit(text.trim().to_owned(), "MiB"));
    }
    bytes(text)
}

/// Whether a text is a number without a unit.
fn is_plain(text: &str) -> bool {
    text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// A size in bytes; a plain number is bytes.
fn bytes(text: &str) -> Result<u64, QuantityError> {
    scan(text, SIZES, |unit| {
        Some(match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "kib" => 1 << 10,
            "mb" => 1_000_000,
            "mib" => 1 << 20,
            "gb" => 1_000_000_000,
            "gib" => 1 << 30,
            _ => return None,
        })
    })
}

/// A count without a unit.
pub fn count(text: &str) -> Result<u32, QuantityError> {
    let example = "32";
    let value = scan(text, example, |unit| unit.is_empty().then_some(1))?;
    u32::try_from(value).map_err(|_| QuantityError::TooLarge(text.to_owned()))
}

fn scan(
    text: &str,
    example: &'static str,
    scale_of: impl Fn(&str) -> Option<u64>,
) -> Result<u64, QuantityError> {
    let text = text.trim();
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (number, unit) = text.split_at(text.len() - digits.len());
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(QuantityError::Number(text.to_owned(), example));
    }
    let unit = unit.trim();
    let Some(scale) = scale_of(unit) else {
        return Err(QuantityError::Unit(text.to_owned(), unit.to_owned(), example));
    };
    match scaled(number, scale) {
        ScaledNumber::Value(0) => Err(QuantityError::Zero),
        ScaledNumber::Value(value) => Ok(value),
        ScaledNumber::Malformed => Err(QuantityError::Number(text.to_owned(), example)),
        ScaledNumber::TooLarge => Err(QuantityError::TooLarge(text.to_owned())),
    }
}

enum ScaledNumber {
    Value(u64),
    Malformed,
    TooLarge,
}

fn scaled(number: &str, scale: u64) -> ScaledNumber {
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        let value = number.parse::<u64>().ok().and_then(|value| value.checked_mul(scale));
        return value.map_or(ScaledNumber::TooLarge, ScaledNumber::Value);
    }
    let Ok(value) = number.parse::<f64>() else { return ScaledNumber::Malformed };
    let value = (value * scale as f64).round();
    // 2^63 is exact as a float, and more than any limit can be.
    if value < 9_223_372_036_854_775_808.0 {
        ScaledNumber::Value(value as u64)
    } else {
        ScaledNumber::TooLarge
    }
}

/// A size for people, in the largest binary unit that divides it, else in the nearest one.
pub fn show_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(scale, _)| bytes >= *scale && bytes.is_multiple_of(*scale)) {
        Some((scale, unit)) => format!("{} {unit}", bytes / scale),
        None => format!("{} bytes", grouped(bytes)),
    }
}

/// A size for people, to three digits: `1.23 MiB`.
pub fn round_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((scale, unit)) = UNITS.iter().find(|(scale, _)| bytes >= *scale) else {
        return format!("{bytes} B");
    };
    let size = bytes as f64 / *scale as f64;
    let digits = if size < 10.0 { 2 } else { usize::from(size < 100.0) };
    format!("{size:.digits$} {unit}")
}

/// A duration for people: `30 s`, `300 ms`.
pub fn show_duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds >= 1000 && milliseconds.is_multiple_of(1000) {
        format!("{} s", milliseconds / 1000)
    } else {
        format!("{milliseconds} ms")
    }
}

/// Milliseconds for people, with two to four significant digits.
pub fn milliseconds(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.2} ms")
    } else if ms < 1000.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{:.2} s", ms / 1000.0)
    }
}

/// A number with its digits in groups of three: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
