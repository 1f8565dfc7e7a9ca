//! Counts the values that one template makes, and replaces filters by ones that count.
//!
//! Filters that make large values from small ones are removed, or limited here.

use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Object, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, filters};

use super::values;
use crate::bounds::{DEEPEST, ITEMS, STATE_BYTES, VALUE_BYTES};

/// The output of one template so far.
#[derive(Debug, Default)]
struct TemplateUsage {
    bytes: AtomicUsize,
    items: AtomicUsize,
}

impl Object for TemplateUsage {}

/// The most items that all values of one template may have.
const ALL_ITEMS: usize = 4 * ITEMS;

/// Replaces filters and functions by limited ones.
pub(super) fn add(environment: &mut Environment<'static>) {
    for name in ["indent", "slice", "batch", "format", "chain", "zip", "pprint", "escape", "e"] {
        environment.remove_filter(name);
    }
    environment.remove_global("debug");
    environment.remove_global("namespace");
    for (name, filter) in [
        ("upper", Value::from_function(filters::upper)),
        ("lower", Value::from_function(filters::lower)),
        ("title", Value::from_function(filters::title)),
        ("capitalize", Value::from_function(filters::capitalize)),
        ("trim", Value::from_function(filters::trim)),
        ("split", Value::from_function(filters::split)),
        ("lines", Value::from_function(filters::lines)),
        ("string", Value::from_function(filters::string)),
        ("list", Value::from_function(filters::list)),
        ("sort", Value::from_function(filters::sort)),
        ("reverse", Value::from_function(filters::reverse)),
        ("unique", Value::from_function(filters::unique)),
        ("dictsort", Value::from_function(filters::dictsort)),
        ("items", Value::from_function(filters::items)),
        ("map", Value::from_function(filters::map)),
        ("select", Value::from_function(filters::select)),
        ("reject", Value::from_function(filters::reject)),
        ("selectattr", Value::from_function(filters::selectattr)),
        ("rejectattr", Value::from_function(filters::rejectattr)),
        ("groupby", Value::from_function(filters::groupby)),
        ("dict", Value::from_function(minijinja::functions::dict)),
    ] {
        let counted = move |state: &State<'_, '_>, arguments: Rest<Value>| {
            counted(state, filter.call(state, &arguments)?)
        };
        if name == "dict" {
            environment.add_function(name, counted);
        } else {
            environment.add_filter(name, counted);
        }
    }
    environment.add_filter("__counted", counted);
    environment.add_filter("__number", number);
    environment.add_filter("replace", replace);
    environment.add_filter("join", |state: &State<'_, '_>, list: Value, by: Option<String>| {
        join(state, &list, by.as_deref().unwrap_or_default())
    });
    environment.add_filter("sum", sum);
    environment.add_filter("tojson", |state: &State<'_, '_>, value: Value| json(state, &value));
    environment.add_function("range", range);
}

fn too_much() -> Error {
    Error::new(ErrorKind::InvalidOperation, "the template makes a value that is too large")
}

/// Counts a value, or fails when it is too large.
pub(super) fn counted(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    let (bytes, items) = size(&value)?;
    spend(state, bytes, items)?;
    Ok(value)
}

fn spend(state: &State<'_, '_>, bytes: usize, items: usize) -> Result<(), Error> {
    let spent = state.get_or_set_temp_object("__spent", TemplateUsage::default);
    let bytes = spent.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    let items = spent.items.fetch_add(items, Ordering::Relaxed).saturating_add(items);
    if bytes > STATE_BYTES || items > ALL_ITEMS { Err(too_much()) } else { Ok(()) }
}

/// Bytes and items of a value, as they would be written; an error as soon as it is too large.
pub(super) fn size(value: &Value) -> Result<(usize, usize), Error> {
    let (mut bytes, mut items) = (0_usize, 0_usize);
    measure(value, DEEPEST + 1, &mut bytes, &mut items)?;
    Ok((bytes, items))
}

fn measure(value: &Value, left: usize, bytes: &mut usize, items: &mut usize) -> Result<(), Error> {
    *items += 1;
    *bytes = bytes.saturating_add(value.as_str().map_or(8, |text| text.len() + 3));
    if *bytes > VALUE_BYTES || *items > ITEMS || left == 0 {
        return Err(too_much());
    }
    let is_map = value.kind() == ValueKind::Map;
    if !is_map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(());
    }
    for item in value.try_iter()? {
        measure(&item, left - 1, bytes, items)?;
        if is_map {
            measure(&value.get_item(&item)?, left - 1, bytes, items)?;
        }
    }
    Ok(())
}

/// The operand of a multiplication: a text or a list would be repeated.
fn number(value: Value) -> Result<Value, Error> {
    if matches!(value.kind(), ValueKind::Number | ValueKind::Bool) {
        return Ok(value);
    }
    let what = format!("only numbers can be multiplied, not a {}", value.kind());
    Err(Error::new(ErrorKind::InvalidOperation, what))
}

/// The filter `replace`, limited.
pub(super) fn replace(
    state: &State<'_, '_>,
    text: &str,
    old: &str,
    new: &str,
) -> Result<Value, Error> {
    let bytes = text.matches(old).count().saturating_mul(new.len()).saturating_add(text.len());
    if bytes > VALUE_BYTES {
        return Err(too_much());
    }
    spend(state, bytes, 1)?;
    Ok(Value::from(text.replace(old, new)))
}

/// The filter `join`, limited.
pub(super) fn join(state: &State<'_, '_>, list: &Value, by: &str) -> Result<Value, Error> {
    let (bytes, items) = size(list)?;
    let bytes = items.saturating_mul(by.len()).saturating_add(bytes);
    if bytes > VALUE_BYTES {
        return Err(too_much());
    }
    spend(state, bytes, items)?;
    let parts: Vec<String> = list.try_iter()?.map(|part| part.to_string()).collect();
    Ok(Value::from(parts.join(by)))
}

/// The filter `sum`, for numbers only.
fn sum(list: &Value) -> Result<Value, Error> {
    let (mut whole, mut broken, mut exact) = (0_i128, 0.0_f64, true);
    for item in list.try_iter()? {
        let item = number(item)?;
        let integer = match i64::try_from(item.clone()) {
            Ok(integer) => Some(i128::from(integer)),
            Err(_) if item.is_integer() => i128::try_from(item.clone()).ok(),
            Err(_) => None,
        };
        match integer.and_then(|item| whole.checked_add(item)) {
            Some(sum) if exact => whole = sum,
            _ => exact = false,
        }
        broken += f64::try_from(item)?;
    }
    Ok(if exact { Value::from(whole) } else { Value::from(broken) })
}

/// The filter `tojson`, limited.
pub(super) fn json(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    let (bytes, items) = size(value)?;
    spend(state, bytes, items)?;
    Ok(Value::from(values::exact(value)?.to_string()))
}

/// The function `range`, limited to 100 000 numbers.
fn range(first: i64, second: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (from, to) = second.map_or((0, first), |second| (first, second));
    let (from, to, step) = (i128::from(from), i128::from(to), i128::from(step.unwrap_or(1)));
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "range has a step of 0"));
    }
    let count =
        if (step > 0) == (from < to) { (to - from).abs().div_euclid(step.abs()) } else { -1 };
    if count >= 100_000 + i128::from((to - from) % step == 0) {
        return Err(Error::new(ErrorKind::InvalidOperation, "range has too many elements"));
    }
    let numbers = (0..=count).map(|number| from + number * step);
    let inside = numbers.filter(|number| if step > 0 { *number < to } else { *number > to });
    Ok(inside.filter_map(|number| i64::try_from(number).ok()).map(Value::from).collect())
}
