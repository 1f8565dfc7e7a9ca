//! JavaScript strings as Rust strings.
//!
//! JavaScript strings may hold half of a surrogate pair, which UTF-8 cannot. Such halves become
//! U+FFFD, here and nowhere else.

use rquickjs::{Error, Result, String as JsString};

/// The string, with unpaired surrogates replaced.
pub(super) fn text_of(string: &JsString<'_>) -> Result<String> {
    text_and_loss(string).map(|(text, _)| text)
}

/// The same, and whether there was anything to replace.
pub(super) fn text_and_loss(string: &JsString<'_>) -> Result<(String, bool)> {
    match string.to_string() {
        Err(Error::Utf8(_)) => Ok((replaced(string)?, true)),
        other => Ok((other?, false)),
    }
}

/// `JSON.stringify` escapes unpaired surrogates and only those, and the C function behind it
/// calls nothing of the guest's for a plain string.
fn replaced(string: &JsString<'_>) -> Result<String> {
    let quoted = string.ctx().json_stringify(string.clone())?.ok_or(Error::Unknown)?;
    let json = without_surrogate_escapes(&quoted.to_string()?);
    serde_json::from_str(&json).map_err(|_| Error::Unknown)
}

fn without_surrogate_escapes(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let is_surrogate = escape
            .get(2..6)
            .filter(|_| escape.starts_with("\\u"))
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .is_some_and(|unit| (0xd800..0xe000).contains(&unit));
        let length = if is_surrogate { 6 } else { 2 };
        let (escape, after) = escape.split_at(length.min(escape.len()));
        out.push_str(if is_surrogate { "\u{fffd}" } else { escape });
        rest = after;
    }
    out + rest
}
