//! Whether an argument meets a condition, when the caller may be hostile.
//!
//! The caller chooses how a value is spelt. So where several readings are possible, a rule that allows
//! needs all of them to match, and a rule that asks or denies needs only one.

use std::{borrow::Cow, slice};

use icu_normalizer::ComposingNormalizerBorrowed;
use serde_json::{Map, Value};

use super::{glob::Glob, rule::Condition};

/// How many of the possible readings have to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchMode {
    /// For rules that allow: every reading has to match.
    All,
    /// For rules that ask or deny: one reading is enough.
    Any,
}

/// Whether the argument at `path` meets the condition. A missing argument never does.
pub(super) fn holds(
    wanted: &Condition,
    arguments: &Map<String, Value>,
    path: &str,
    reading: MatchMode,
) -> bool {
    let found = at(arguments, path);
    match reading {
        MatchMode::All => {
            !found.is_empty() && found.iter().all(|value| fits(wanted, value, reading))
        }
        MatchMode::Any => found.iter().any(|value| fits(wanted, value, reading)),
    }
}

/// Every value `a.b.c` can mean: names may hold dots themselves.
fn at<'a>(arguments: &'a Map<String, Value>, path: &str) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = arguments.get(path).into_iter().collect();
    for (dot, _) in path.match_indices('.') {
        let (head, tail) = (path.get(..dot), path.get(dot + 1..));
        let inner = head.and_then(|head| arguments.get(head)).and_then(Value::as_object);
        if let (Some(inner), Some(tail)) = (inner, tail) {
            found.extend(at(inner, tail));
        }
    }
    found
}

fn fits(wanted: &Condition, value: &Value, reading: MatchMode) -> bool {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            slice::from_ref(value)
        }
    };
    let one = |item: &Value| match (wanted, item) {
        (Condition::Matches(glob), Value::String(text)) => text_fits(glob, text, reading),
        (Condition::Matches(_), _) => false,
        (Condition::Is(Value::Number(wanted)), Value::Number(found)) => {
            wanted == found || wanted.as_f64() == found.as_f64()
        }
        (Condition::Is(wanted), found) => wanted == found,
    };
    match reading {
        MatchMode::All => !items.is_empty() && items.iter().all(one),
        MatchMode::Any => items.iter().any(one),
    }
}

fn text_fits(glob: &Glob, text: &str, reading: MatchMode) -> bool {
    match reading {
        // `/tmp/*` is meant to be below /tmp, and `/tmp/../etc/passwd` is not.
        MatchMode::All => glob.matches(text) && (glob.is_exact() || !is_doubtful(glob, text)),
        MatchMode::Any => {
            glob.matches(text)
                || glob.matches(&straight(text))
                || glob.matches(&straight(&compatible(text)))
        }
    }
}

/// Whether a reader of the text might arrive elsewhere than the pattern says: as it is written, or after
/// normalisation, because escapes can be written with characters of other scripts.
fn is_doubtful(glob: &Glob, text: &str) -> bool {
    // A pattern that matches anything has no boundary to escape from.
    let is_any = glob.as_str().chars().all(|wanted| wanted == '*');
    let doubtful = |text: &str| climbs(text) || !is_any && has_hidden_meaning(glob, text);
    doubtful(text) || doubtful(&compatible(text))
}

/// Whether some reader would take a component of the text for `..`: with dots of another script, with
/// parameters, or with characters in between that a reader may drop.
fn climbs(text: &str) -> bool {
    const SEPARATORS: [char; 7] = ['/', '\\', ';', '\u{2044}', '\u{2215}', '\u{2216}', '\u{29f8}'];
    let is_up =
        |part: &str| part.chars().filter(|c| c.is_alphanumeric() || *c == '.').eq(['.', '.']);
    let parts = |text: &str| compatible(text).split(SEPARATORS).any(is_up);
    parts(text) || parts(&decoded(text)) || text.contains('\0')
}

/// Whether the text has escapes of addresses or control characters that the pattern does not have:
/// it is unknown how often a server decodes them.
fn has_hidden_meaning(glob: &Glob, text: &str) -> bool {
    let written = glob.as_str();
    let is_written = |escape: &str| written.contains(escape);
    let rests = text.match_indices('%').filter_map(|(at, _)| text.get(at..));
    rests.filter_map(escape).any(|escape| !is_written(escape))
        || text.chars().any(|c| c.is_control() && !written.contains(c))
}

/// The escape a text begins with: `%2e`, or `%u002e` as some readers have it.
fn escape(text: &str) -> Option<&str> {
    let wide = text.get(1..2).is_some_and(|letter| letter.eq_ignore_ascii_case("u"));
    let (digits, end) = if wide { (text.get(2..6)?, 6) } else { (text.get(1..3)?, 3) };
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| text.get(..end))?
}

/// The text with characters that are only another shape of a plain one made plain (NFKC).
fn compatible(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfkc().normalize(text)
}

/// The text with what addresses may write instead of `.`, `/` and `\`, also when written twice.
pub(super) fn decoded(text: &str) -> String {
    let mut decoded = text.to_owned();
    for _ in 0..2 {
        for (written, meant) in [
            ("%25", "%"),
            ("%2e", "."),
            ("%2E", "."),
            ("%2f", "/"),
            ("%2F", "/"),
            ("%5c", "\\"),
            ("%5C", "\\"),
        ] {
            decoded = decoded.replace(written, meant);
        }
    }
    decoded
}

/// The text read as a path, without `.`, `..` and doubled slashes.
fn straight(text: &str) -> String {
    let decoded = decoded(text);
    let mut parts: Vec<&str> = Vec::new();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if decoded.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if decoded.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
