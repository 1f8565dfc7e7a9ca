//! Values that are too large for a model (E5) are stored, and a summary takes their place.

mod beginning;
mod preview;

use beginning::{Beginning, count};
use belljar_contract::{
    RunId, RunResult, head_and_tail,
    tokens::{self, CutText},
};
use belljar_store::Store;
use belljar_tools::{ValueShape, ValueShapeLimits};
use preview::preview;
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::now_ms;

/// Approximate size of a token in JSON.
const BYTES_PER_TOKEN: usize = 4;
/// A preview may take this fraction of the budget.
const PREVIEW_SHARE: usize = 4;
/// Tokens of an answer for its status, its times and the marks of what was cut.
const FRAME: usize = 250;
/// Tokens for a file that came back, and how many are named; for any other name.
const FILE: usize = 90;
const LISTED_FILES: usize = 8;
const NAME: usize = 20;
/// The least that is shared out among the parts of a result.
const MIN_SHARED: usize = 64;
/// Longest message and longest stack of an error, in bytes.
const MAX_MESSAGE: usize = 2_000;
const MAX_STACK: usize = 1_000;
/// A budget from which on nothing is cut.
const UNBOUNDED: u32 = u32::MAX;

/// Shrinks a result to a budget of tokens: its value, its state and its output share the budget, and a
/// part that needs less than its share leaves the rest to the others.
pub(super) async fn fit(result: &mut RunResult, budget: u32, store: Option<&Store>) {
    if budget == UNBOUNDED {
        return;
    }
    let budget = budget as usize;
    fit_error(result);
    let shared = budget.saturating_sub(frame(result).min(budget / 2)).max(MIN_SHARED);
    let logged = result.logs.join("\n");
    // Output is in a result three times, and an answer has one of them. Each gets what the longest needs: the
    // log lines lack the last line feed of what was printed.
    let output = [logged.as_str(), &result.stdout, &result.stderr];
    let output = output.map(|text| cost(text, shared)).into_iter().max().unwrap_or_default();
    let [value, state] = [&result.result, &result.state].map(|part| cost(part.get(), shared));
    let [value_share, state_share, output_share] = shares([value, state, output], shared);
    let run_id = result.id.clone();
    for (value, share, cut) in [
        (&mut result.result, value_share, &mut result.truncated.result),
        (&mut result.state, state_share, &mut result.truncated.state),
    ] {
        if cost(value.get(), share) > share {
            let summary = summary(&run_id, value.get(), share * BYTES_PER_TOKEN, store).await;
            if let Some(summary) = summary {
                *value = summary;
                *cut = true;
            }
        }
    }
    if let Some(short) = fitted(&run_id, &logged, output_share, store).await {
        result.logs = short.split('\n').map(str::to_owned).collect();
        result.truncated.logs = true;
    }
    for (text, cut) in [
        (&mut result.stdout, &mut result.truncated.stdout),
        (&mut result.stderr, &mut result.truncated.stderr),
    ] {
        if let Some(short) = fitted(&run_id, text, output_share, store).await {
            *text = short;
            *cut = true;
        }
    }
}

/// Tokens of an answer for everything but the value, the state and the output.
fn frame(result: &RunResult) -> usize {
    let files = result.artifacts.len().min(LISTED_FILES) * FILE;
    let others = (result.unreturned.files.len() + result.changes.len().min(20)) * NAME;
    let error = result.error.as_ref().map_or(0, |error| {
        let texts = [Some(&error.message), error.stack.as_ref(), error.hint.as_ref()];
        texts.into_iter().flatten().map(|text| cost(text, MAX_MESSAGE)).sum()
    });
    FRAME + files + others + error
}

fn fit_error(result: &mut RunResult) {
    let Some(error) = &mut result.error else { return };
    if error.message.len() > MAX_MESSAGE {
        error.message = head_and_tail(&error.message, MAX_MESSAGE);
    }
    if let Some(stack) = error.stack.as_mut().filter(|stack| stack.len() > MAX_STACK) {
        *stack = head_and_tail(stack, MAX_STACK);
    }
}

/// Tokens of a text inside of JSON, where quotes, backslashes and line feeds are escaped.
fn cost(text: &str, most: usize) -> usize {
    let plain = tokens::estimate(text, most);
    let is_escaped = |byte: &u8| matches!(byte, b'"' | b'\\' | b'\n');
    // Beyond the budget the exact number does not matter.
    if plain > most { plain } else { plain + text.bytes().filter(is_escaped).count() / 2 }
}

/// How many tokens each part gets: all that it needs if that is no more than an even share, and
/// otherwise an even share of what the others leave.
fn shares<const N: usize>(needed: [usize; N], shared: usize) -> [usize; N] {
    let mut order: Vec<usize> = needed.to_vec();
    order.sort_unstable();
    let mut left = shared;
    let mut level = 0;
    for (index, need) in order.into_iter().enumerate() {
        level = left / (N - index).max(1);
        if need > level {
            break;
        }
        left -= need;
        level = need.max(level);
    }
    needed.map(|need| need.min(level))
}

/// A text that does not fit, as its beginning and its end. The whole of it is stored.
async fn fitted(run_id: &RunId, text: &str, share: usize, store: Option<&Store>) -> Option<String> {
    if cost(text, share) <= share {
        return None;
    }
    // Marks that have to be escaped cost more than they do here.
    let CutText { head, tail, lines, bytes } = tokens::cut(text, share * 4 / 5)?;
    let whole = put(run_id, text.as_bytes(), "text/plain", store).await;
    let whole = match whole {
        Some(handle) => format!("; all of it: load(\"{handle}\") in code"),
        None => String::new(),
    };
    let lines = if lines == 0 { String::new() } else { format!("{lines} lines, ") };
    let newline = if head.ends_with('\n') { "" } else { "\n" };
    Some(format!("{head}{newline}… ({lines}{bytes} bytes left out{whole})\n{tail}"))
}

/// Stores what does not fit, and gives its handle.
async fn put(
    run_id: &RunId,
    bytes: &[u8],
    media_type: &str,
    store: Option<&Store>,
) -> Option<String> {
    let put = store?.put_run_blob(run_id, bytes.to_vec(), media_type, now_ms()).await;
    put.inspect_err(|error| {
        let error = error as &dyn std::error::Error;
        tracing::error!(error, "cannot store a large value");
    })
    .ok()
}

/// The summary that replaces a value that is too large.
#[derive(Serialize)]
struct ValueSummary<'a> {
    bytes: usize,
    /// Its items, fields or characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    handle: Option<&'a str>,
    note: &'static str,
    preview: Box<RawValue>,
    schema: Value,
    r#type: &'static str,
}

/// Stores a large value and describes it for a model.
async fn summary(
    run_id: &RunId,
    json: &str,
    budget: usize,
    store: Option<&Store>,
) -> Option<Box<RawValue>> {
    let handle = put(run_id, json.as_bytes(), "application/json", store).await;
    // The value was validated when it left its cell. Only its beginning is parsed: the whole tree
    // would take many times its size.
    let value = Beginning::of(json);
    let summary = ValueSummary {
        bytes: json.len(),
        count: count(json),
        handle: handle.as_deref(),
        note: match &handle {
            Some(_) => {
                "The value exceeds the output budget. In code, load(handle) returns all of it."
            }
            None => "The value exceeds the output budget and could not be stored: return less.",
        },
        preview: preview(json, budget / PREVIEW_SHARE),
        schema: bounded_schema(&value, budget / PREVIEW_SHARE),
        r#type: kind(&value),
    };
    to_raw_value(&summary).ok()
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

#[cfg(test)]
mod tests;
