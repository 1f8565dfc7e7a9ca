//! Whether an argument is what a rule says, read against whoever wrote the call.
//!
//! The one who calls chooses how a value is spelt. So where several readings are possible a rule
//! that allows wants all of them to fit, and a rule that asks or denies needs only one.

use std::slice;

use serde_json::{Map, Value};

use super::{glob::Glob, rule::Condition};

/// How doubt is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// For rules that allow: every reading has to fit.
    All,
    /// For rules that ask or deny: one reading that fits is enough.
    Any,
}

/// Whether the argument at `path` is as wanted. One that is not there never is.
pub(super) fn holds(
    wanted: &Condition,
    arguments: &Map<String, Value>,
    path: &str,
    reading: Reading,
) -> bool {
    let found = at(arguments, path);
    match reading {
        Reading::All => !found.is_empty() && found.iter().all(|value| fits(wanted, value, reading)),
        Reading::Any => found.iter().any(|value| fits(wanted, value, reading)),
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

fn fits(wanted: &Condition, value: &Value, reading: Reading) -> bool {
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
        Reading::All => !items.is_empty() && items.iter().all(one),
        Reading::Any => items.iter().any(one),
    }
}

fn text_fits(glob: &Glob, text: &str, reading: Reading) -> bool {
    match reading {
        // `/tmp/*` is meant to be below /tmp, and `/tmp/../etc/passwd` is not.
        Reading::All => glob.matches(text) && (glob.is_exact() || !climbs(text)),
        Reading::Any => glob.matches(text) || glob.matches(&straight(text)),
    }
}

/// Whether a component of the text, read as a path or an address, is `..`, or it holds what some
/// readers of paths stop at.
fn climbs(text: &str) -> bool {
    let decoded = decoded(text);
    let parts = |text: &str| text.split(['/', '\\']).any(|part| part.trim() == "..");
    parts(text) || parts(&decoded) || text.contains('\0')
}

/// The text with what addresses may write instead of `.`, `/` and `\`, also when written twice.
fn decoded(text: &str) -> String {
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
