//! The canonical form of a call's arguments: checked, recorded, hashed, shown to a person and sent.
//!
//! Arguments come as text from guest code, and text can be read in more than one way. Here it is read
//! once. Text that two readers could understand differently, or that would reach the server as another
//! value, is refused; all later steps use the canonical form of [`CallArguments`] and never the original
//! text.

use belljar_wire::json::{JsonFlaw, JsonTokenKind, RESERVED_PREFIX, check_tokens};
use serde_json::{Map, Value};

/// Integers with fewer digits fit into 64 bits.
const SURELY_EXACT_DIGITS: usize = 18;
/// Values with this many levels can be read; the reader refuses some more.
const MOST_LEVELS: usize = 100;

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

/// Arguments that were read, or why they cannot be.
pub(crate) type ReadArguments = Result<Map<String, Value>, UnreadableArguments>;

/// The arguments of a call, read once: the value that is checked and sent, beside the text that is
/// recorded, hashed and shown.
#[derive(Debug)]
pub struct CallArguments {
    /// The canonical form: keys sorted, no white space. The original text if that cannot be read;
    /// such a call is recorded and refused.
    pub(crate) text: Vec<u8>,
    pub(crate) read: ReadArguments,
}

impl CallArguments {
    /// Reads arguments that come as a text.
    pub fn parse(json: Vec<u8>) -> Self {
        let read = read(&json);
        let form = read.as_ref().ok().and_then(|read| serde_json::to_vec(read).ok());
        Self { text: form.unwrap_or(json), read }
    }
}

impl From<Map<String, Value>> for CallArguments {
    fn from(arguments: Map<String, Value>) -> Self {
        // A map of JSON values cannot fail to be JSON.
        let text = serde_json::to_vec(&arguments).unwrap_or_default();
        let is_deep = arguments.values().any(|value| is_deep(value, MOST_LEVELS));
        if is_deep || has_reserved_text(&text) {
            return Self::parse(text);
        }
        Self { text, read: Ok(arguments) }
    }
}

/// Whether a value has so many levels that the reader of its text could refuse it.
fn is_deep(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => items.iter().any(|item| is_deep(item, below)),
        Value::Object(fields) => fields.values().any(|field| is_deep(field, below)),
    }
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
            rounded = Some(belljar_catalogue::visible::line(token.text, 40));
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

/// Whether a record has these canonical arguments. Earlier versions recorded the original text.
pub(crate) fn is_recorded_as(record: &[u8], arguments: &[u8]) -> bool {
    record == arguments || {
        let CallArguments { text, read } = CallArguments::parse(record.to_vec());
        read.is_ok() && text == arguments
    }
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
