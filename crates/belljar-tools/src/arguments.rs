//! Checks arguments against a tool's schema before a call leaves.
//!
//! The server checks again: this check gives the guest an early error that names the field and the
//! nearest right one. So only a certain violation of the schema is a fault; keywords, references and
//! patterns that are not understood here are left to the server. The work is bounded, because schemas
//! come from servers and values from guests.

mod canonical;
mod fault;
mod pattern;
mod range;

use std::collections::HashMap;

use belljar_catalogue::{
    pointed,
    spelling::{fold, nearest},
};
use serde_json::{Map, Value};

pub use canonical::{CallArguments, UnreadableArguments, read};
pub(crate) use canonical::{ReadArguments, is_recorded_as};
pub use fault::{ArgumentFault, FaultKind};

use crate::Tool;

/// Steps one check may take; the rest is left to the server.
const MAX_STEPS: usize = 200_000;
/// Levels of schemas within schemas and references to references.
const MAX_DEPTH: usize = 100;
/// Fields that are compared with a misspelt name.
const MAX_NEAR: usize = 1_000;

/// Checks the arguments of a call of `tool`.
pub fn check(tool: &Tool, arguments: &Value) -> Result<(), ArgumentFault> {
    let checked = match arguments {
        // Guest code may leave out arguments altogether.
        Value::Null => validate(&tool.input_schema, &Value::Object(Map::new())),
        Value::Object(_) => validate(&tool.input_schema, arguments),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ArgumentFault::not_named(&tool.input_schema, arguments))
        }
    };
    checked.map_err(|fault| fault.of_tool(tool))
}

/// Whether `value` fits `schema`, as far as this module understands schemas.
pub fn validate(schema: &Value, value: &Value) -> Result<(), ArgumentFault> {
    let mut check = Check { root: schema, steps: MAX_STEPS };
    check.value(schema, value, &mut Vec::new(), 0)
}

/// The position in the value: names of fields and indices of items.
type Path = Vec<String>;

struct Check<'a> {
    root: &'a Value,
    steps: usize,
}

/// The declared fields by their folded names. Made once for an object: a guest may pass a million
/// fields.
#[derive(Default)]
struct Alike<'a>(Option<HashMap<String, &'a str>>);

impl<'a> Alike<'a> {
    /// The declared field that differs from this name only in case and separators.
    fn to<I: Iterator<Item = &'a str>>(
        &mut self,
        name: &str,
        declared: impl Fn() -> I,
    ) -> Option<&'a str> {
        let known = self.0.get_or_insert_with(|| {
            declared().map(|name| (fold(name), name)).filter(|(key, _)| !key.is_empty()).collect()
        });
        if known.is_empty() { None } else { known.get(&fold(name)).copied() }
    }
}

impl<'a> Check<'a> {
    fn value(
        &mut self,
        schema: &'a Value,
        value: &Value,
        path: &mut Path,
        depth: usize,
    ) -> Result<(), ArgumentFault> {
        if self.steps == 0 || depth > MAX_DEPTH {
            return Ok(());
        }
        self.steps -= 1;
        let keywords = match schema {
            Value::Bool(false) => return Err(ArgumentFault::new(path, FaultKind::NotAllowed)),
            Value::Object(keywords) => keywords,
            Value::Null
            | Value::Bool(true)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => return Ok(()),
        };
        let reference = keywords.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|reference| pointed(self.root, reference)) {
            self.value(target, value, path, depth + 1)?;
        }
        // OpenAPI's way to say that null is fine too.
        if value.is_null() && keywords.get("nullable") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        self.kind(keywords, value, path)?;
        self.choices(keywords, value, path)?;
        range::check(keywords, value, path)?;
        self.fields(keywords, value, path, depth)?;
        self.items(keywords, value, path, depth)?;
        self.combined(keywords, value, path, depth)
    }

    fn kind(
        &self,
        keywords: &Map<String, Value>,
        value: &Value,
        path: &Path,
    ) -> Result<(), ArgumentFault> {
        let kinds: Vec<&str> = match keywords.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return Ok(()),
        };
        let known = ["null", "boolean", "integer", "number", "string", "array", "object"];
        let understood = kinds.iter().all(|kind| known.contains(kind));
        if kinds.is_empty() || !understood || kinds.iter().any(|kind| is_kind(value, kind)) {
            return Ok(());
        }
        let wanted = kinds.into_iter().map(str::to_owned).collect();
        Err(ArgumentFault::new(path, FaultKind::Kind { wanted, given: shown(value) }))
    }

    fn choices(
        &self,
        keywords: &Map<String, Value>,
        value: &Value,
        path: &Path,
    ) -> Result<(), ArgumentFault> {
        let constant = keywords.get("const").map(std::slice::from_ref);
        let choices = keywords.get("enum").and_then(Value::as_array).map(Vec::as_slice);
        for choices in [constant, choices].into_iter().flatten() {
            if !choices.iter().any(|choice| same(choice, value)) {
                let near = value.as_str().and_then(|given| {
                    nearest(given, choices.iter().filter_map(Value::as_str), 1).pop()
                });
                let choices = choices.iter().map(shown).collect();
                let kind = FaultKind::Choice { given: shown(value), choices, near };
                return Err(ArgumentFault::new(path, kind));
            }
        }
        Ok(())
    }

    fn fields(
        &mut self,
        keywords: &'a Map<String, Value>,
        value: &Value,
        path: &mut Path,
        depth: usize,
    ) -> Result<(), ArgumentFault> {
        let Some(given) = value.as_object() else { return Ok(()) };
        let empty = Map::new();
        let declared = keywords.get("properties").and_then(Value::as_object);
        let mut alike = Alike::default();
        for (name, given) in given {
            if let Some(schema) = declared.and_then(|declared| declared.get(name)) {
                path.push(name.clone());
                self.value(schema, given, path, depth + 1)?;
                path.pop();
                continue;
            }
            self.undeclared(keywords, (name, given), path, depth, &mut alike)?;
        }
        let required = keywords.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !given.contains_key(name) {
                let declared = declared.unwrap_or(&empty);
                let others =
                    given.keys().filter(|other| !declared.contains_key(*other)).take(MAX_NEAR);
                let near = nearest(name, others.map(String::as_str), 1).pop();
                let kind =
                    FaultKind::Missing { name: name.to_owned(), near, fields: fields_of(keywords) };
                return Err(ArgumentFault::new(path, kind));
            }
        }
        Ok(())
    }

    /// A field that `properties` does not have.
    fn undeclared(
        &mut self,
        keywords: &'a Map<String, Value>,
        (name, given): (&str, &Value),
        path: &mut Path,
        depth: usize,
        alike: &mut Alike<'a>,
    ) -> Result<(), ArgumentFault> {
        // Which fields a pattern covers is for the server to say.
        let elsewhere = ["patternProperties", "unevaluatedProperties", "propertyNames"];
        if elsewhere.iter().any(|keyword| keywords.contains_key(*keyword)) {
            return Ok(());
        }
        let declared = keywords.get("properties").and_then(Value::as_object);
        let names = || declared.into_iter().flatten().map(|(name, _)| name.as_str());
        let unknown = |near| {
            let kind =
                FaultKind::Unknown { name: name.to_owned(), near, fields: fields_of(keywords) };
            Err(ArgumentFault::new(path, kind))
        };
        match keywords.get("additionalProperties") {
            Some(Value::Bool(false)) => unknown(nearest(name, names(), 1).pop()),
            Some(schema @ Value::Object(_)) => {
                path.push(name.to_owned());
                self.value(schema, given, path, depth + 1)?;
                path.pop();
                Ok(())
            }
            Some(_) => Ok(()),
            // Many servers leave this open and ignore what they do not know. `maxCount` for
            // `max_count` would then be ignored without any error.
            None => match alike.to(name, names) {
                Some(other) => unknown(Some(other.to_owned())),
                None => Ok(()),
            },
        }
    }

    fn items(
        &mut self,
        keywords: &'a Map<String, Value>,
        value: &Value,
        path: &mut Path,
        depth: usize,
    ) -> Result<(), ArgumentFault> {
        let Some(given) = value.as_array() else { return Ok(()) };
        let leading = keywords.get("prefixItems").or_else(|| keywords.get("items"));
        let leading = leading.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let rest = match keywords.get("items") {
            Some(Value::Array(_)) => keywords.get("additionalItems"),
            other => other,
        };
        for (at, item) in given.iter().enumerate() {
            let Some(schema) = leading.get(at).or(rest) else { break };
            path.push(at.to_string());
            self.value(schema, item, path, depth + 1)?;
            path.pop();
        }
        Ok(())
    }

    fn combined(
        &mut self,
        keywords: &'a Map<String, Value>,
        value: &Value,
        path: &mut Path,
        depth: usize,
    ) -> Result<(), ArgumentFault> {
        let list = |keyword: &str| keywords.get(keyword).and_then(Value::as_array);
        for schema in list("allOf").into_iter().flatten() {
            self.value(schema, value, path, depth + 1)?;
        }
        // That two of `oneOf` fit is no fault here: what tells them apart may not be understood.
        for branches in [list("anyOf"), list("oneOf")].into_iter().flatten() {
            let mut best: Option<ArgumentFault> = None;
            let mut fits = branches.is_empty();
            for branch in branches {
                match self.value(branch, value, &mut path.clone(), depth + 1) {
                    Ok(()) => fits = true,
                    Err(fault) => {
                        best = Some(best.map_or(fault.clone(), |best| best.deeper(fault)));
                    }
                }
                if fits {
                    break;
                }
            }
            if let (false, Some(fault)) = (fits, best) {
                return Err(fault);
            }
        }
        Ok(())
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match (value, kind) {
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Number(_), "number")
        | (Value::String(_), "string")
        | (Value::Array(_), "array")
        | (Value::Object(_), "object") => true,
        // 5.0 is an integer: JavaScript has no other way to write one.
        (Value::Number(number), "integer") => {
            number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

/// Equal as JSON: 1 and 1.0 are one number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        _ => left == right,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The fields of an object: required ones first.
fn fields_of(keywords: &Map<String, Value>) -> (Vec<String>, Vec<String>) {
    let required = keywords.get("required").and_then(Value::as_array);
    let required: Vec<String> =
        required.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let declared = keywords.get("properties").and_then(Value::as_object);
    let names = declared.into_iter().flatten().map(|(name, _)| name);
    let optional = names.filter(|name| !required.contains(name)).cloned().collect();
    (required, optional)
}

#[cfg(test)]
mod tests;
