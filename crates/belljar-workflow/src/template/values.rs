//! Values on their way into a template and out of it. None of them is rounded.

use std::{fmt, sync::Arc};

use belljar_contract::{JsonMap, JsonNumber, JsonValue};
use minijinja::value::{DynObject, Object, ObjectRepr, Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// A number that templates can pass on and print, and cannot calculate with: it does not fit into 128
/// bits.
#[derive(Debug)]
struct LargeNumber(JsonNumber);

impl Object for LargeNumber {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<std::cmp::Ordering> {
        let other = other.downcast_ref::<Self>()?;
        (self.0 == other.0).then_some(std::cmp::Ordering::Equal)
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string())
    }
}

/// A value as templates see it.
pub(super) fn jinja(value: JsonValue) -> Value {
    match value {
        JsonValue::Null => Value::from(()),
        JsonValue::Bool(value) => Value::from(value),
        JsonValue::Number(number) => jinja_number(number),
        JsonValue::String(text) => Value::from(text),
        JsonValue::Array(items) => items.into_iter().map(jinja).collect(),
        JsonValue::Object(map) => map.into_iter().map(|(key, value)| (key, jinja(value))).collect(),
    }
}

fn jinja_number(number: JsonNumber) -> Value {
    match (number.as_i64(), number.as_u64(), number.as_i128()) {
        (Some(small), _, _) => Value::from(small),
        (_, Some(small), _) => Value::from(small),
        (_, _, Some(large)) => Value::from(large),
        (None, None, None) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(double) => Value::from(double),
            None => Value::from_object(LargeNumber(number)),
        },
    }
}

/// The value of a template as JSON.
pub(super) fn exact(value: &Value) -> Result<JsonValue, Error> {
    if let Some(large) = value.downcast_object_ref::<LargeNumber>() {
        return Ok(JsonValue::Number(large.0.clone()));
    }
    let kind = value.kind();
    if kind == ValueKind::Map {
        let mut map = JsonMap::new();
        for key in value.try_iter()? {
            let item = exact(&value.get_item(&key)?)?;
            map.insert(key_of(&key)?, item);
        }
        return Ok(JsonValue::Object(map));
    }
    if matches!(kind, ValueKind::Seq | ValueKind::Iterable) {
        let items: Result<Vec<_>, _> = value.try_iter()?.map(|item| exact(&item)).collect();
        return items.map(JsonValue::Array);
    }
    if kind == ValueKind::Number && value.is_integer() {
        let number = JsonNumber::parse(&value.to_string());
        return Ok(number.map_or(JsonValue::Null, JsonValue::Number));
    }
    // Nothing below this has values of a workflow in it.
    serde_json::to_value(value)
        .map(JsonValue::from)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, "not JSON").with_source(error))
}

/// The key of an object, as text.
fn key_of(key: &Value) -> Result<String, Error> {
    let kind = key.kind();
    if matches!(kind, ValueKind::String | ValueKind::Number | ValueKind::Bool) {
        return Ok(key.to_string());
    }
    let what = format!("a key of an object is a text, not a {kind}");
    Err(Error::new(ErrorKind::BadSerialization, what))
}
