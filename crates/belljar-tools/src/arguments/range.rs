//! The bounds of a schema on numbers, texts, arrays and objects.

use serde_json::{Map, Value};

use super::{
    fault::{ArgumentFault, FaultKind},
    pattern, shown,
};

/// Whether the value is within the bounds the schema sets for its kind.
pub(super) fn check(
    keywords: &Map<String, Value>,
    value: &Value,
    path: &[String],
) -> Result<(), ArgumentFault> {
    let wanted = match value {
        Value::Number(number) => number.as_f64().and_then(|number| of_number(keywords, number)),
        Value::String(text) => of_text(keywords, text),
        Value::Array(items) => of_count(keywords, items.len(), "minItems", "maxItems", "items"),
        Value::Object(fields) => {
            of_count(keywords, fields.len(), "minProperties", "maxProperties", "fields")
        }
        Value::Null | Value::Bool(_) => None,
    };
    match wanted {
        None => Ok(()),
        Some(wanted) => {
            let kind = FaultKind::Range { given: shown(value), wanted };
            Err(ArgumentFault::new(path, kind))
        }
    }
}

fn of_number(keywords: &Map<String, Value>, number: f64) -> Option<String> {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    // Draft 4 writes `exclusiveMinimum: true` beside `minimum`.
    let strict = |keyword: &str| keywords.get(keyword) == Some(&Value::Bool(true));
    if let Some(least) = bound("minimum").filter(|least| number < *least) {
        return Some(format!("must be at least {least}"));
    }
    if let Some(most) = bound("maximum").filter(|most| number > *most) {
        return Some(format!("must be at most {most}"));
    }
    let above = bound("exclusiveMinimum")
        .or_else(|| bound("minimum").filter(|_| strict("exclusiveMinimum")));
    if let Some(least) = above.filter(|least| number <= *least) {
        return Some(format!("must be more than {least}"));
    }
    let below = bound("exclusiveMaximum")
        .or_else(|| bound("maximum").filter(|_| strict("exclusiveMaximum")));
    below.filter(|most| number >= *most).map(|most| format!("must be less than {most}"))
}

fn of_text(keywords: &Map<String, Value>, text: &str) -> Option<String> {
    let length = text.chars().count();
    of_count(keywords, length, "minLength", "maxLength", "characters").or_else(|| {
        let wanted = keywords.get("pattern").and_then(Value::as_str)?;
        (pattern::matches(wanted, text) == Some(false)).then(|| format!("must match {wanted}"))
    })
}

fn of_count(
    keywords: &Map<String, Value>,
    count: usize,
    least: &str,
    most: &str,
    what: &str,
) -> Option<String> {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_u64);
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    if let Some(least) = bound(least).filter(|least| count < *least) {
        return Some(format!("must have at least {least} {what}"));
    }
    bound(most).filter(|most| count > *most).map(|most| format!("must have at most {most} {what}"))
}
