//! The canonical form of a call's arguments: checked, recorded, hashed, shown to a person and sent.
//!
//! Arguments come as text from guest code, and text can be read in more than one way. Here it is read
//! once. Text that two readers could understand differently, or that would reach the server as another
//! value, is refused; all later steps use the [`canonical`] form and never the original text.

use belljar_wire::json::{JsonFlaw, JsonTokenKind, RESERVED_PREFIX, check_tokens};
use serde_json::{Map, Value};

/// Integers with fewer digits fit into 64 bits.
const SURELY_EXACT_DIGITS: usize = 18;

/// Why a text cannot be used as arguments.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableArguments {
    /// A key is written twice or reserved, or the text is not JSON.
    #[error(transparent)]
    Flaw(#[from] JsonFlaw),
    /// It is JSON, but not an object.
    #[error("not a JSON object: {0}")]
    NoObject(#[from] serde_json::Error),
    /// A number would be rounded on its way to the server.
    #[error("the integer {0} has more than 64 bits and would be sent rounded; pass it as a text")]
    Rounded(String),
}

/// Parses arguments.
///
/// # Errors
/// If it is not an object, if a key is in it twice, or if a number in it cannot be kept.
pub fn read(json: &[u8]) -> Result<Map<String, Value>, UnreadableArguments> {
    let read: Result<Map<String, Value>, _> = serde_json::from_slice(json);
    // Text in canonical form has no duplicate keys and no rounded numbers. It could still have a
    // reserved key, written without escapes.
    if let Ok(arguments) = &read
        && serde_json::to_vec(arguments).is_ok_and(|form| form == json)
        && !has_reserved_text(json)
    {
        return Ok(read?);
    }
    let mut rounded = None;
    check_tokens(json, |token| {
        if token.kind == JsonTokenKind::Number && rounded.is_none() && is_rounded(token.text) {
            rounded = Some(crate::visible::line(token.text, 40));
        }
    })?;
    match rounded {
        Some(number) => Err(UnreadableArguments::Rounded(number)),
        None => Ok(read?),
    }
}

fn has_reserved_text(json: &[u8]) -> bool {
    std::str::from_utf8(json).is_ok_and(|json| json.contains(RESERVED_PREFIX))
}

/// The arguments as they are sent: keys sorted, no white space. `None` if they cannot be [`read`], and so
/// are never sent.
pub(crate) fn canonical(json: &[u8]) -> Option<Vec<u8>> {
    serde_json::to_vec(&read(json).ok()?).ok()
}

/// Whether a record has these canonical arguments. Earlier versions recorded the original text.
pub(crate) fn is_recorded_as(record: &[u8], arguments: &[u8]) -> bool {
    record == arguments || canonical(record).is_some_and(|record| record == arguments)
}

/// Whether an integer would be stored as a float of another value. Fractions are rounded by every reader
/// alike, and shown as sent.
fn is_rounded(number: &str) -> bool {
    let digits = number.trim_start_matches('-');
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_integer || digits.len() <= SURELY_EXACT_DIGITS {
        return false;
    }
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return false;
    }
    // Code that has floats only writes the shortest digits that mean one, and zeros.
    let Ok(float) = digits.parse::<f64>() else { return true };
    let shortest = format!("{float:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let same_digits = mantissa.replace('.', "") == digits.trim_end_matches('0');
    !same_digits || exponent.parse() != Ok(digits.len() - 1)
}

#[cfg(test)]
mod tests;
