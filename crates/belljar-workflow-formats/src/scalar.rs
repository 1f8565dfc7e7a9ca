//! The meaning of plain words of YAML: the core schema of YAML 1.2, in which `no` and `on` are
//! text.

use std::borrow::Cow;

use belljar_contract::JsonNumber;

use super::tree::FileTree;

/// The value of a plain scalar.
pub(super) fn resolve(text: &str) -> FileTree {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => FileTree::Null,
        "true" | "True" | "TRUE" => FileTree::Bool(true),
        "false" | "False" | "FALSE" => FileTree::Bool(false),
        word => number(word).map_or_else(|| FileTree::Text(word.to_owned()), FileTree::Number),
    }
}

fn number(word: &str) -> Option<JsonNumber> {
    let radix = |digits: &str, radix| {
        let digits = digits.chars().next().filter(|c| c.is_digit(radix)).map(|_| digits)?;
        i128::from_str_radix(digits, radix).ok().map(JsonNumber::from)
    };
    if let Some(digits) = word.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = word.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let begins = digits.chars().next().is_some_and(|c| c.is_ascii_digit() || c == '.');
    let fits =
        digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    if !begins || !fits || !digits.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if digits.chars().all(|c| c.is_ascii_digit()) {
        let sign = if word.starts_with('-') { "-" } else { "" };
        let first = digits.find(|c| c != '0').unwrap_or(digits.len() - 1);
        return JsonNumber::parse(&format!("{sign}{}", digits.get(first..)?));
    }
    word.parse::<f64>().ok().and_then(JsonNumber::from_f64)
}

/// Joins surrogate pairs: JSON writes a character beyond the first plane as two escapes, which YAML
/// does not know. Only where the text is JSON.
pub(super) fn join_surrogates(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with(['{', '[']) || !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        joined.push_str(before);
        let pair = high_then_low(escape);
        let taken = match pair {
            Some(letter) => {
                joined.push_str(&format!("\\U{:08X}", u32::from(letter)));
                12
            }
            None => {
                let taken = escape.char_indices().nth(2).map_or(escape.len(), |(at, _)| at);
                joined.push_str(escape.get(..taken).unwrap_or_default());
                taken
            }
        };
        rest = escape.get(taken..).unwrap_or_default();
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

/// The character of `\uD83D\uDE00`, when the text begins with such a pair.
fn high_then_low(escape: &str) -> Option<char> {
    let unit = |at: usize| -> Option<u16> {
        let digits = escape.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (high, low) = (unit(0)?, unit(6)?);
    char::decode_utf16([high, low]).next()?.ok().filter(|letter| u32::from(*letter) > 0xFFFF)
}
