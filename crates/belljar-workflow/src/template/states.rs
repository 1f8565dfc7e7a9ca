//! Functions that combine the states of branches. The reader of agent files writes calls of them.

use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{Environment, Error, State};

use super::budget::counted;

/// Merges mappings, later ones over earlier ones; a value that is not a mapping becomes the part
/// `result`.
const MERGED: &str = "__merged";
/// The keys of a mapping whose values differ from those of another.
const CHANGED: &str = "__changed";
/// The result of a branch: the keys of its state, `state` itself, and data about the branch.
const BRANCH: &str = "__branch";

/// Adds the functions to an environment.
pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_function(MERGED, |state: &State<'_, '_>, parts: Rest<Value>| {
        counted(state, merged(&parts)?)
    });
    environment.add_function(CHANGED, changed);
    environment.add_function(BRANCH, |state: &State<'_, '_>, own: Value, about: Value| {
        let itself = Value::from_iter([("state", own.clone())]);
        counted(state, merged(&[own, itself, about])?)
    });
}

/// Whether a name is one of these functions.
pub(super) fn is_function(name: &str) -> bool {
    matches!(name, MERGED | CHANGED | BRANCH)
}

fn merged(parts: &[Value]) -> Result<Value, Error> {
    // A key has its first place and its last value.
    let mut all: Vec<(Value, Value)> = Vec::new();
    for part in parts.iter().filter(|part| !part.is_undefined() && !part.is_none()) {
        if part.kind() == ValueKind::Map {
            for key in part.try_iter()? {
                let value = part.get_item(&key)?;
                all.push((key, value));
            }
        } else {
            all.push((Value::from("result"), part.clone()));
        }
    }
    Ok(all.into_iter().collect())
}

fn changed(state: &State<'_, '_>, now: &Value, before: &Value) -> Result<Value, Error> {
    let mut all: Vec<(Value, Value)> = Vec::new();
    for key in now.try_iter()? {
        let value = now.get_item(&key)?;
        if before.get_item(&key)? != value {
            all.push((key, value));
        }
    }
    counted(state, all.into_iter().collect())
}
