//! Methods and names of Python that agents written for other frameworks expect in expressions.
//!
//! Methods read and never change a value. A method that a value does not have is an error that
//! names it.

use super::budget::{counted, join, replace};
use minijinja::value::{FunctionArgs, Rest, Value, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State};

/// Adds the methods and tests to an environment.
pub(super) fn add(environment: &mut Environment<'static>) {
    environment.set_unknown_method_callback(method);
    environment.add_function("len", length);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_test("None", |value: &Value| value.is_none());
    environment.add_test("True", |value: &Value| is_bool(value) && value.is_true());
    environment.add_test("False", |value: &Value| is_bool(value) && !value.is_true());
}

/// Whether a name is a method of objects, so that it is not one of their keys.
pub fn is_template_method(name: &str) -> bool {
    matches!(name, "get" | "items" | "keys" | "values")
}

fn is_bool(value: &Value) -> bool {
    value.kind() == ValueKind::Bool
}

fn length(value: &Value) -> Result<usize, Error> {
    value.len().ok_or_else(|| {
        let what = format!("a value of type {} has no length", value.kind());
        Error::new(ErrorKind::InvalidOperation, what)
    })
}

/// The filter `default`: replaces a missing value and null, the result of a skipped task.
fn default(value: &Value, given: Rest<Value>) -> Value {
    let missing = value.is_undefined() || value.is_none();
    let also_false = given.get(1).is_some_and(Value::is_true);
    if missing || (also_false && !value.is_true()) {
        return given.first().cloned().unwrap_or_else(|| Value::from(""));
    }
    value.clone()
}

fn method(
    state: &State<'_, '_>,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    let found = match (value.kind(), value.as_str()) {
        (_, Some(text)) => of_text(state, text, name, arguments)?,
        (ValueKind::Map, None) => of_map(value, name, arguments)?,
        (_, None) => None,
    };
    let found = found.ok_or_else(|| Error::from(ErrorKind::UnknownMethod))?;
    counted(state, found)
}

fn of_map(map: &Value, name: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match name {
        "get" => {
            let (key, other): (&Value, Option<Value>) = from(arguments)?;
            let found = map.get_item(key)?;
            if found.is_undefined() { other.unwrap_or_else(|| Value::from(())) } else { found }
        }
        "keys" => {
            let (): () = from(arguments)?;
            Value::from_iter(map.try_iter()?)
        }
        "values" => {
            let (): () = from(arguments)?;
            let values: Result<Vec<Value>, Error> =
                map.try_iter()?.map(|key| map.get_item(&key)).collect();
            Value::from(values?)
        }
        "items" => {
            let (): () = from(arguments)?;
            let pair = |key: Value| Ok(Value::from(vec![key.clone(), map.get_item(&key)?]));
            Value::from(map.try_iter()?.map(pair).collect::<Result<Vec<Value>, Error>>()?)
        }
        _ => return Ok(None),
    }))
}

fn of_text(
    state: &State<'_, '_>,
    text: &str,
    name: &str,
    arguments: &[Value],
) -> Result<Option<Value>, Error> {
    Ok(Some(match name {
        "lower" => {
            let (): () = from(arguments)?;
            Value::from(text.to_lowercase())
        }
        "upper" => {
            let (): () = from(arguments)?;
            Value::from(text.to_uppercase())
        }
        "strip" => Value::from(text.trim_matches(letters(arguments)?)),
        "lstrip" => Value::from(text.trim_start_matches(letters(arguments)?)),
        "rstrip" => Value::from(text.trim_end_matches(letters(arguments)?)),
        "split" => split(text, arguments)?,
        "startswith" => Value::from(any(arguments, |part| text.starts_with(part))?),
        "endswith" => Value::from(any(arguments, |part| text.ends_with(part))?),
        "replace" => {
            let (old, new): (&str, &str) = from(arguments)?;
            replace(state, text, old, new)?
        }
        "join" => {
            let (list,): (&Value,) = from(arguments)?;
            join(state, list, text)?
        }
        _ => return Ok(None),
    }))
}

fn from<'a, T: FunctionArgs<'a, Output = T>>(arguments: &'a [Value]) -> Result<T, Error> {
    from_args(arguments)
}

/// The characters to strip: those given, or white space.
fn letters(arguments: &[Value]) -> Result<impl Fn(char) -> bool, Error> {
    let (given,): (Option<String>,) = from(arguments)?;
    Ok(move |letter: char| match &given {
        Some(given) => given.contains(letter),
        None => letter.is_whitespace(),
    })
}

fn split(text: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (by, most): (Option<&str>, Option<usize>) = from(arguments)?;
    let pieces = most.map_or(usize::MAX, |most| most.saturating_add(1));
    Ok(match by {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(by) => text.splitn(pieces, by).map(Value::from).collect(),
        None if most.is_none() => text.split_whitespace().map(Value::from).collect(),
        None => {
            let parts = text.trim().splitn(pieces, char::is_whitespace);
            parts.map(|part| Value::from(part.trim_start())).collect()
        }
    })
}

/// Whether one of the given texts, alone or in a list, passes the test.
fn any(arguments: &[Value], test: impl Fn(&str) -> bool) -> Result<bool, Error> {
    let (first,): (&Value,) = from(arguments)?;
    if let Some(text) = first.as_str() {
        return Ok(test(text));
    }
    Ok(first.try_iter()?.any(|part| part.as_str().is_some_and(&test)))
}
