//! Values that are too large for a model (E5) are stored, and a summary takes their place.

mod beginning;

use beginning::{Beginning, count};
use belljar_contract::{RunId, RunResult, head_and_tail};
use belljar_store::Store;
use belljar_tools::{ValueShape, ValueShapeLimits};
use serde_json::{Value, json};

use super::now_ms;

/// Approximate size of a token in JSON.
const BYTES_PER_TOKEN: usize = 4;
/// A preview may take this fraction of the budget.
const PREVIEW_SHARE: usize = 4;
/// Longest text in a preview, in bytes.
const PREVIEW_TEXT: usize = 200;
/// A line that does not fit is cut to its beginning and end, unless less than this is left.
const MIN_CUT_LINE: usize = 512;
/// Marks output that was cut.
const NOTE: &str = "… (cut to the output budget)";

/// Shrinks a result to a budget of tokens.
pub(super) async fn fit(result: &mut RunResult, tokens: u32, store: Option<&Store>) {
    let budget = (tokens as usize).saturating_mul(BYTES_PER_TOKEN).max(256);
    for (value, cut) in [
        (&mut result.result, &mut result.truncated.result),
        (&mut result.state, &mut result.truncated.state),
    ] {
        if value.get().len() > budget {
            let summary = summary(&result.id, value.get(), budget, store).await;
            if let Ok(summary) = serde_json::value::to_raw_value(&summary) {
                *value = summary;
                *cut = true;
            }
        }
    }
    let (mut left, mut kept) = (budget, 0);
    for line in &mut result.logs {
        if line.len() > left {
            if left < MIN_CUT_LINE {
                break;
            }
            // Half of what is left: what is printed after a long line is worth as much as its middle.
            *line = head_and_tail(line, left / 2);
            result.truncated.logs = true;
        }
        left = left.saturating_sub(line.len());
        kept += 1;
    }
    if kept < result.logs.len() {
        result.logs.truncate(kept);
        result.logs.push(NOTE.to_owned());
        result.truncated.logs = true;
    }
    for (text, cut) in [
        (&mut result.stdout, &mut result.truncated.stdout),
        (&mut result.stderr, &mut result.truncated.stderr),
    ] {
        if text.len() > budget {
            text.truncate(text.floor_char_boundary(budget));
            text.push_str(NOTE);
            *cut = true;
        }
    }
}

/// Stores a large value and describes it for a model.
async fn summary(run_id: &RunId, json: &str, budget: usize, store: Option<&Store>) -> Value {
    let handle = match store {
        Some(store) => {
            let bytes = json.as_bytes().to_vec();
            match store.put_run_blob(run_id, bytes, "application/json", now_ms()).await {
                Ok(id) => Some(id),
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "cannot store a large value"
                    );
                    None
                }
            }
        }
        None => None,
    };
    // The value was validated when it left its cell. Only its beginning is parsed: the whole tree
    // would take many times its size.
    let value = Beginning::of(json);
    let mut summary = json!({
        "handle": handle,
        "bytes": json.len(),
        "type": kind(&value),
        "schema": bounded_schema(&value, budget / PREVIEW_SHARE),
        "preview": preview(&value, budget / PREVIEW_SHARE),
        "note": match &handle {
            Some(_) => "The value exceeds the output budget. In code, load(handle) returns all of \
                        it.",
            None => "The value exceeds the output budget and could not be stored: return less.",
        },
    });
    if let (Some(count), Some(fields)) = (count(json), summary.as_object_mut()) {
        fields.insert("count".to_owned(), count.into());
    }
    summary
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn bounded_schema(value: &Value, most: usize) -> Value {
    let schema = ValueShape::of(value, ValueShapeLimits::default()).to_schema();
    if schema.to_string().len() <= most { schema } else { json!({ "type": kind(value) }) }
}

/// The beginning of a value, in roughly `most` bytes.
fn preview(value: &Value, most: usize) -> Value {
    let mut left = most;
    shorten(value, &mut left)
}

fn shorten(value: &Value, left: &mut usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            take(left, value.to_string().len() + 1);
            value.clone()
        }
        Value::String(text) => {
            let short = text.get(..text.floor_char_boundary(PREVIEW_TEXT)).unwrap_or_default();
            take(left, short.len() + 3);
            if short.len() < text.len() { format!("{short}…").into() } else { short.into() }
        }
        Value::Array(items) => {
            let mut kept = Vec::new();
            for item in items {
                if !take(left, 2) {
                    break;
                }
                kept.push(shorten(item, left));
            }
            kept.into()
        }
        Value::Object(fields) => {
            let mut kept = serde_json::Map::new();
            for (name, field) in fields {
                if !take(left, name.len() + 4) {
                    break;
                }
                kept.insert(name.clone(), shorten(field, left));
            }
            kept.into()
        }
    }
}

/// Takes bytes from the remaining budget; false if there were too few.
fn take(left: &mut usize, bytes: usize) -> bool {
    let fits = *left >= bytes;
    *left = left.saturating_sub(bytes);
    fits
}

#[cfg(test)]
mod tests;
