//! Checking JSON text as it is written, without building a tree of it.
//!
//! RFC 8259 leaves open what an object with a repeated key means: readers take the first, the last,
//! or both. So a check of such a text may have checked another value than the one that is used.

mod tokens;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub use tokens::{JsonToken, JsonTokenKind, JsonTokens};

/// The fault of a JSON text.
#[derive(Debug, thiserror::Error)]
pub enum JsonFlaw {
    /// It is not JSON, or one of its keys is not a text.
    #[error("not valid JSON: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Two readers may see two different values.
    #[error("the key {0} is written twice in one object")]
    RepeatedKey(String),
    /// The JSON library of this program takes the text beneath the key for JSON, in some places and
    /// not in others.
    #[error("the key {0} is reserved; use another name")]
    ReservedKey(String),
}

/// The prefix of keys to which `serde_json` gives a meaning of its own.
pub const RESERVED_PREFIX: &str = "$serde_json::private::";

/// Whether the text is JSON in which no object, at any level, has a key twice or one that is
/// reserved. Escapes make no difference: `"a"` and `"\u0061"` are one key.
///
/// # Errors
/// Says what is wrong, with the key as JSON if one is written twice or reserved.
pub fn check_keys(json: &[u8]) -> Result<(), JsonFlaw> {
    check_tokens(json, |_| ())
}

/// The same, and calls `see` with each token: a large text is read only once.
///
/// # Errors
/// As for [`check_keys`].
pub fn check_tokens<'a>(
    json: &'a [u8],
    mut see: impl FnMut(JsonToken<'a>),
) -> Result<(), JsonFlaw> {
    let json: &RawValue = serde_json::from_slice(json)?;
    // The keys of all objects that are open, and where those of each begin. Two lists rather than a
    // set per object: hostile text opens millions.
    let (mut keys, mut begins): (Vec<Cow<'_, str>>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut tokens = JsonTokens::new(json.get()).peekable();
    while let Some(token) = tokens.next() {
        see(token);
        match token.text {
            "{" => begins.push(keys.len()),
            "}" => {
                let own = keys.split_off(begins.pop().unwrap_or_default());
                if let Some(repeated) = repeated(own) {
                    return Err(JsonFlaw::RepeatedKey(repeated));
                }
            }
            text if token.kind == JsonTokenKind::String
                && tokens.peek().is_some_and(|next| next.kind == JsonTokenKind::Colon) =>
            {
                let key = key(text)?;
                if key.starts_with(RESERVED_PREFIX) {
                    return Err(JsonFlaw::ReservedKey(as_json(&key)));
                }
                keys.push(key);
            }
            _ => {}
        }
    }
    Ok(())
}

/// How many lists, objects and commas a text has outside of its strings. The text is not parsed: whoever
/// parses it next has checked how much memory that takes.
pub fn count_parts(json: impl AsRef<[u8]>) -> usize {
    let (mut parts, mut in_string, mut is_escaped) = (0, false, false);
    for byte in json.as_ref() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => parts += 1,
            _ => {}
        }
    }
    parts
}

/// The key a token means, without its quotes.
fn key(written: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    if written.contains('\\') {
        return serde_json::from_str(written).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(written.trim_matches('"')))
}

/// A key that occurs twice, as JSON.
fn repeated(mut keys: Vec<Cow<'_, str>>) -> Option<String> {
    keys.sort_unstable();
    let mut pairs = keys.iter().zip(keys.iter().skip(1));
    let (repeated, _) = pairs.find(|(one, next)| one == next)?;
    Some(as_json(repeated))
}

fn as_json(key: &str) -> String {
    serde_json::Value::from(key).to_string()
}

#[cfg(test)]
mod tests;
