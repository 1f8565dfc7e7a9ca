//! Reducers: how a new value is combined with the old one in the state.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

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
    state: &mut Map<String, Value>,
    reducer: Reducer,
    part: &str,
    value: Value,
) -> Result<(), StateError> {
    if reducer == Reducer::Last {
        state.insert(part.to_owned(), value);
        return Ok(());
    }
    check_fits(state, reducer, part, &value)?;
    let slot = state.entry(part).or_insert(Value::Null);
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
    state: &Map<String, Value>,
    reducer: Reducer,
    part: &str,
    value: &Value,
) -> Result<(), StateError> {
    let held = state.get(part).unwrap_or(&Value::Null);
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
fn add(slot: &mut Value, value: Value, once: bool) {
    if slot.is_null() {
        *slot = Value::Array(Vec::new());
    }
    let Value::Array(list) = slot else { return };
    let items = match value {
        Value::Array(items) => items,
        Value::Null => return,
        item @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            vec![item]
        }
    };
    for item in items {
        if !once || !list.contains(&item) {
            list.push(item);
        }
    }
}

fn merge(slot: &mut Value, value: Value) {
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    if let (Value::Object(held), Value::Object(given)) = (slot, value) {
        held.extend(given);
    }
}

/// Adds two numbers; integers stay integers while they fit.
fn sum(held: &Value, value: &Value) -> Value {
    let whole = held.as_i64().or(held.is_null().then_some(0)).zip(value.as_i64());
    if let Some(total) = whole.and_then(|(held, value)| held.checked_add(value)) {
        return Value::from(total);
    }
    let total = held.as_f64().unwrap_or_default() + value.as_f64().unwrap_or_default();
    Number::from_f64(total).map_or(Value::Null, Value::Number)
}

/// The kind of a value with its article, for messages.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
