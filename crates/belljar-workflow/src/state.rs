//! Reducers: how a new value is combined with the old one in the state.

use std::collections::BTreeMap;

use belljar_contract::{JsonMap, JsonNumber, JsonValue};

use crate::dag::Reducer;

/// Why a value cannot be put into the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A reducer that sums was given something else than a number.
    #[error("state.{part} sums numbers and was given {given}")]
    NotANumber {
        /// The part of the state.
        part: String,
        /// The kind of value that was given, with its article.
        given: &'static str,
    },
    /// A reducer that merges was given something else than an object.
    #[error("state.{part} merges objects and was given {given}")]
    NotAnObject {
        /// The part of the state.
        part: String,
        /// The kind of value that was given, with its article.
        given: &'static str,
    },
    /// The old value is of a kind that the reducer cannot add to.
    #[error("state.{part} holds {held}, which its reducer cannot add to")]
    Held {
        /// The part of the state.
        part: String,
        /// The kind of value it holds, with its article.
        held: &'static str,
    },
}

/// The reducer of a part: as declared, or by the convention for its name.
pub fn reducer_of(reducers: &BTreeMap<String, Reducer>, part: &str) -> Reducer {
    if let Some(reducer) = reducers.get(part) {
        return *reducer;
    }
    match part {
        "messages" | "tasks" | "decisions" => Reducer::Append,
        "context" => Reducer::Merge,
        _ => Reducer::Last,
    }
}

/// Combines a value with a part of the state, in place.
pub(crate) fn join(
    state: &mut JsonMap,
    reducer: Reducer,
    part: &str,
    value: JsonValue,
) -> Result<(), StateError> {
    if reducer == Reducer::Last {
        state.insert(part.to_owned(), value);
        return Ok(());
    }
    check_fits(state, reducer, part, &value)?;
    let slot = state.entry(part.to_owned()).or_insert(JsonValue::Null);
    match reducer {
        Reducer::Last => *slot = value,
        Reducer::Append => add(slot, value, false),
        Reducer::Union => add(slot, value, true),
        Reducer::Merge => merge(slot, value),
        Reducer::Sum => *slot = sum(slot, &value),
    }
    Ok(())
}

/// Checks that a reducer can take a value, before anything is changed. A value that fits also fits
/// after other fitting values were combined first.
pub fn check_fits(
    state: &JsonMap,
    reducer: Reducer,
    part: &str,
    value: &JsonValue,
) -> Result<(), StateError> {
    let held = state.get(part).unwrap_or(&JsonValue::Null);
    let part = || part.to_owned();
    match reducer {
        Reducer::Sum if !value.is_number() => {
            return Err(StateError::NotANumber { part: part(), given: kind(value) });
        }
        Reducer::Merge if !value.is_object() && !value.is_null() => {
            return Err(StateError::NotAnObject { part: part(), given: kind(value) });
        }
        Reducer::Sum | Reducer::Merge | Reducer::Last | Reducer::Append | Reducer::Union => {}
    }
    let fits = held.is_null()
        || match reducer {
            Reducer::Last => true,
            Reducer::Append | Reducer::Union => held.is_array(),
            Reducer::Merge => held.is_object(),
            Reducer::Sum => held.is_number(),
        };
    if fits { Ok(()) } else { Err(StateError::Held { part: part(), held: kind(held) }) }
}

/// Adds a list item by item, anything else as one item.
fn add(slot: &mut JsonValue, value: JsonValue, once: bool) {
    if slot.is_null() {
        *slot = JsonValue::Array(Vec::new());
    }
    let JsonValue::Array(list) = slot else { return };
    let items = match value {
        JsonValue::Array(items) => items,
        JsonValue::Null => return,
        item @ (JsonValue::Bool(_)
        | JsonValue::Number(_)
        | JsonValue::String(_)
        | JsonValue::Object(_)) => {
            vec![item]
        }
    };
    for item in items {
        if !once || !list.contains(&item) {
            list.push(item);
        }
    }
}

fn merge(slot: &mut JsonValue, value: JsonValue) {
    if slot.is_null() {
        *slot = JsonValue::Object(JsonMap::new());
    }
    if let (JsonValue::Object(held), JsonValue::Object(given)) = (slot, value) {
        held.extend(given);
    }
}

/// Adds two numbers; integers are exact while they fit into 128 bits.
fn sum(held: &JsonValue, value: &JsonValue) -> JsonValue {
    let integer = |value: &JsonValue| value.as_number().and_then(JsonNumber::as_i128);
    let whole = integer(held).or(held.is_null().then_some(0)).zip(integer(value));
    if let Some(total) = whole.and_then(|(held, value)| held.checked_add(value)) {
        return JsonValue::Number(total.into());
    }
    let total = held.as_f64().unwrap_or_default() + value.as_f64().unwrap_or_default();
    JsonNumber::from_f64(total).map_or(JsonValue::Null, JsonValue::Number)
}

/// The kind of a value with its article, for messages.
pub(crate) fn kind(value: &JsonValue) -> &'static str {
    match value {
        JsonValue::Null => "null",
        JsonValue::Bool(_) => "a boolean",
        JsonValue::Number(_) => "a number",
        JsonValue::String(_) => "a string",
        JsonValue::Array(_) => "a list",
        JsonValue::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
