//! Templates over a workflow's state, inputs and results.
//!
//! A string that is one `{{ expression }}` gives the expression's value; any other string gives
//! text. An unknown name is an error that lists similar names. Only the values that a template
//! mentions are looked up, so that a small template stays cheap in a large workflow. There is no
//! loader and no include, and fuel is limited.

mod budget;
mod depth;
mod error;
mod guard;
mod python;
mod states;
#[cfg(test)]
mod tests;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use belljar_contract::{JsonMap, JsonValue};
use minijinja::value::{Value as Jinja, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, Template, UndefinedBehavior};

use crate::bounds::{DEEPEST as DEPTH, VALUE_BYTES, is_deep};

pub use error::TemplateError;
pub(crate) use error::did_you_mean;
pub use python::is_template_method;

/// The most steps one template may take.
const FUEL: u64 = 1_000_000;
/// How many characters of a template an error quotes.
const MAX_QUOTED_CHARS: usize = 400;

static STRICT: LazyLock<Environment<'static>> =
    LazyLock::new(|| environment(UndefinedBehavior::Strict));
/// A missing value is false in a condition.
static LENIENT: LazyLock<Environment<'static>> =
    LazyLock::new(|| environment(UndefinedBehavior::SemiStrict));

fn environment(undefined: UndefinedBehavior) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(undefined);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(64);
    budget::add(&mut environment);
    python::add(&mut environment);
    states::add(&mut environment);
    environment.set_formatter(|out, state, value| {
        let json = [ValueKind::Seq, ValueKind::Map, ValueKind::Iterable, ValueKind::None];
        if !json.contains(&value.kind()) {
            return minijinja::escape_formatter(out, state, value);
        }
        let text = budget::json(state, value)?;
        out.write_str(text.as_str().unwrap_or_default()).map_err(Error::from)
    });
    environment
}

/// The names that a template may use, and their values.
pub(crate) trait TemplateNames {
    /// The top-level names that exist.
    fn roots(&self) -> Vec<&'static str>;
    /// The whole value of a top-level name.
    fn whole(&self, root: &str) -> Option<JsonValue>;
    /// One part of a top-level name; `None` when it has no such part.
    fn part(&self, root: &str, key: &str) -> Option<JsonValue>;
    /// Whether a missing value is null or false instead of an error.
    fn lenient(&self) -> bool {
        false
    }
}

/// A value with every template in it rendered.
pub(crate) fn render(
    value: &JsonValue,
    names: &dyn TemplateNames,
) -> Result<JsonValue, TemplateError> {
    let value = render_at(value, names, 0)?;
    if is_deep(&value) { Err(TemplateError::Deep) } else { Ok(value) }
}

/// An object with every template in it rendered.
pub(crate) fn render_map(
    map: &JsonMap,
    names: &dyn TemplateNames,
) -> Result<JsonMap, TemplateError> {
    map.iter().map(|(key, value)| Ok((key.clone(), render(value, names)?))).collect()
}

fn render_at(
    value: &JsonValue,
    names: &dyn TemplateNames,
    depth: usize,
) -> Result<JsonValue, TemplateError> {
    if depth > DEPTH {
        return Err(TemplateError::Deep);
    }
    match value {
        JsonValue::String(text) => render_text(text, names),
        JsonValue::Array(items) => {
            items.iter().map(|item| render_at(item, names, depth + 1)).collect()
        }
        JsonValue::Object(map) => map
            .iter()
            .map(|(key, value)| Ok((key.clone(), render_at(value, names, depth + 1)?)))
            .collect::<Result<JsonMap, _>>()
            .map(JsonValue::Object),
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => Ok(value.clone()),
    }
}

/// One string: the value of its expression, or text.
pub(crate) fn render_text(
    text: &str,
    names: &dyn TemplateNames,
) -> Result<JsonValue, TemplateError> {
    if !is_template(text) {
        return Ok(JsonValue::String(text.to_owned()));
    }
    if let Some(expression) = sole_expression(text) {
        return evaluate(expression, names);
    }
    let source = guarded(text)?;
    let template = readable(text, &source, environment_of(names))?;
    let mentioned = mentioned_in_text(text, &template);
    let context = context(&mentioned, names);
    let mut out = RenderBuffer(Vec::new());
    unbroken(text, || template.render_captured_to(context, &mut out).map(drop))?
        .map_err(|error| explain(text, &error, &mentioned, names))?;
    Ok(JsonValue::String(String::from_utf8_lossy(&out.0).into_owned()))
}

/// The value of an expression.
pub(crate) fn evaluate(
    expression: &str,
    names: &dyn TemplateNames,
) -> Result<JsonValue, TemplateError> {
    let source = guard::expression(expression);
    let compiled = compiled(expression, &source, environment_of(names))?;
    let mentioned = mentioned_in_expression(expression, &compiled);
    let context = context(&mentioned, names);
    let value = unbroken(expression, || {
        let value = compiled.eval(context)?;
        budget::size(&value).map(|_| value)
    })?
    .map_err(|error| explain(expression, &error, &mentioned, names))?;
    if value.is_undefined() && names.lenient() {
        return Ok(JsonValue::Null);
    }
    if value.is_undefined() {
        let error = Error::new(ErrorKind::UndefinedError, "undefined value");
        return Err(explain(expression, &error, &mentioned, names));
    }
    values::exact(&value).map_err(|error| broken(expression, &error))
}

/// Whether a condition holds: empty, zero, null and false do not.
pub(crate) fn holds(condition: &str, names: &dyn TemplateNames) -> Result<bool, TemplateError> {
    let value = evaluate(bare(condition), names)?;
    Ok(match value {
        JsonValue::Null => false,
        JsonValue::Bool(value) => value,
        JsonValue::Number(number) => number.as_f64() != Some(0.0),
        // The text of a template that was meant as a condition.
        JsonValue::String(text) => !matches!(text.as_str(), "" | "false" | "False"),
        JsonValue::Array(items) => !items.is_empty(),
        JsonValue::Object(map) => !map.is_empty(),
    })
}

/// The names that a template mentions, as paths: `results.fetch`, `item`. An error when the
/// template cannot be parsed.
pub fn names_in_template(text: &str) -> Result<BTreeSet<String>, TemplateError> {
    if !is_template(text) {
        return Ok(BTreeSet::new());
    }
    if let Some(expression) = sole_expression(text) {
        return names_in_expression(expression);
    }
    let source = guarded(text)?;
    let template = readable(text, &source, &STRICT)?;
    known_to(text, &guard::called_in_text(text))?;
    Ok(mentioned_in_text(text, &template))
}

/// The names that a condition mentions, as paths. An error when it is not one expression.
pub fn names_in_expression(text: &str) -> Result<BTreeSet<String>, TemplateError> {
    let text = bare(text);
    match compiled(text, &guard::expression(text), &STRICT) {
        Ok(compiled) => {
            known_to(text, &guard::called_in_expression(text))?;
            Ok(mentioned_in_expression(text, &compiled))
        }
        Err(TemplateError::Broken { what, template }) => {
            Err(TemplateError::NotAnExpression { what, template })
        }
        Err(error) => Err(error),
    }
}

/// The names that a text mentions, the operands of slices included.
fn mentioned_in_text(text: &str, template: &Template<'_, '_>) -> BTreeSet<String> {
    let mut mentioned = sorted(template.undeclared_variables(true));
    if let Some(source) = guard::unsliced_text(text)
        && let Ok(plain) = readable(text, &source, &STRICT)
    {
        mentioned.extend(plain.undeclared_variables(true));
    }
    mentioned
}

/// The names that an expression mentions, the operands of slices included.
fn mentioned_in_expression(text: &str, compiled: &Expression<'_, '_>) -> BTreeSet<String> {
    let mut mentioned = sorted(compiled.undeclared_variables(true));
    if let Some(source) = guard::unsliced_expression(text)
        && let Ok(plain) = self::compiled(text, &source, &STRICT)
    {
        mentioned.extend(plain.undeclared_variables(true));
    }
    mentioned
}

/// Refuses unknown filters and tests; minijinja reports them only when it reaches them.
fn known_to(text: &str, called: &guard::FiltersAndTests) -> Result<(), TemplateError> {
    let is_missing = |source: String, kind: ErrorKind| {
        let tried = unbroken(&source, || STRICT.compile_expression(&source)?.eval(()));
        matches!(tried, Ok(Err(error)) if error.kind() == kind)
    };
    for name in &called.filters {
        if is_missing(format!("none|{name}"), ErrorKind::UnknownFilter) {
            return Err(unreadable(text, format!("unknown filter {name}")));
        }
    }
    for name in &called.tests {
        if is_missing(format!("none is {name}"), ErrorKind::UnknownTest) {
            return Err(unreadable(text, format!("unknown test {name}")));
        }
    }
    Ok(())
}

/// Whether a name is a function that a template may call.
pub(crate) fn is_function(name: &str) -> bool {
    matches!(name, "len" | "range" | "dict") || states::is_function(name)
}

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

/// The expression between the braces, when the text is one expression and nothing else.
fn sole_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner);
    compiled(inner, &guard::expression(inner), &STRICT).ok().map(|_| inner)
}

fn environment_of(names: &dyn TemplateNames) -> &'static Environment<'static> {
    if names.lenient() { &LENIENT } else { &STRICT }
}

/// A text rewritten so that its values are counted.
fn guarded(text: &str) -> Result<String, TemplateError> {
    depth::bounded_text(text).map_err(|what| unreadable(text, what))?;
    guard::text(text).map_err(|what| unreadable(text, what))
}

/// A parsed text template: `source` is the guarded form of `text`.
fn readable<'a>(
    text: &str,
    source: &'a str,
    environment: &'a Environment<'a>,
) -> Result<Template<'a, 'a>, TemplateError> {
    unbroken(text, || environment.template_from_str(source))?.map_err(|error| broken(text, &error))
}

/// A compiled expression: `source` is the guarded form of `text`.
fn compiled<'a>(
    text: &str,
    source: &'a str,
    environment: &'a Environment<'a>,
) -> Result<Expression<'a, 'a>, TemplateError> {
    if closes_early(text) {
        return Err(unreadable(text, "unexpected }}".to_owned()));
    }
    depth::bounded(text).map_err(|what| unreadable(text, what))?;
    unbroken(text, || environment.compile_expression(source))?.map_err(|error| broken(text, &error))
}

/// The result of a call into minijinja; a panic becomes an error of the template.
fn unbroken<T>(text: &str, work: impl FnOnce() -> T) -> Result<T, TemplateError> {
    let work = std::panic::AssertUnwindSafe(work);
    std::panic::catch_unwind(work)
        .map_err(|_| unreadable(text, "the template engine failed".to_owned()))
}

/// The output of a text template, up to a limit.
struct RenderBuffer(Vec<u8>);

impl std::io::Write for RenderBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > VALUE_BYTES {
            return Err(std::io::Error::other("the text is too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether `}}` comes where no bracket is open: minijinja's lexer would panic on it.
fn closes_early(text: &str) -> bool {
    let mut balance = 0_i64;
    let mut quote = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '}') if balance == 0 && letters.peek() == Some(&'}') => return true,
            (None, '(' | '[' | '{') => balance += 1,
            (None, ')' | ']' | '}') => balance -= 1,
            (None, _) => {}
        }
    }
    false
}

/// A condition without the braces that some authors write around it.
fn bare(condition: &str) -> &str {
    sole_expression(condition).unwrap_or(condition)
}

fn sorted(names: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    names.into_iter().collect()
}

/// The values that a template mentions, and no others.
fn context(mentioned: &BTreeSet<String>, names: &dyn TemplateNames) -> BTreeMap<String, Jinja> {
    let mut parts: BTreeMap<&str, Option<BTreeMap<String, Jinja>>> = BTreeMap::new();
    for path in mentioned {
        let mut steps = path.split('.');
        let Some(root) = steps.next() else { continue };
        let found = steps.next().and_then(|key| Some((key, names.part(root, key)?)));
        match (parts.entry(root).or_insert_with(|| Some(BTreeMap::new())), found) {
            (Some(map), Some((key, value))) => {
                map.insert(key.to_owned(), values::jinja(value));
            }
            // A missing part may be a method, which needs the whole value.
            (slot, _) => *slot = None,
        }
    }
    let mut context = BTreeMap::new();
    for (root, map) in parts {
        let value = match map {
            Some(map) => Some(Jinja::from_iter(map)),
            None => names.whole(root).map(values::jinja),
        };
        if let Some(value) = value {
            context.insert(root.to_owned(), value);
        }
    }
    context
}

/// An error for a text that cannot be parsed; it quotes only the beginning.
fn unreadable(template: &str, what: String) -> TemplateError {
    let mut quoted: String = template.chars().take(MAX_QUOTED_CHARS).collect();
    if quoted.len() < template.len() {
        quoted.push('…');
    }
    TemplateError::Broken { what, template: quoted }
}

fn broken(template: &str, error: &Error) -> TemplateError {
    let what = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    unreadable(template, what)
}

/// Finds the name that made a template fail.
fn explain(
    template: &str,
    error: &Error,
    mentioned: &BTreeSet<String>,
    names: &dyn TemplateNames,
) -> TemplateError {
    let missed = error.detail().is_some_and(|detail| detail.contains("undefined"));
    if error.kind() != ErrorKind::UndefinedError && !missed {
        return broken(template, error);
    }
    for path in mentioned.iter().chain(&subscripts(template, mentioned)) {
        if let Some((name, near)) = missing(path, names) {
            return TemplateError::Unknown { name, template: template.to_owned(), near };
        }
    }
    broken(template, error)
}

/// Names written as `state["key"]`, as paths.
fn subscripts(template: &str, mentioned: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for root in mentioned.iter().filter(|path| !path.contains('.')) {
        for piece in template.split(&format!("{root}[")).skip(1) {
            let quote = piece.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let inside = quote.and_then(|quote| piece.get(1..)?.split_once(quote));
            // A key with a dot in it cannot be a step of a path.
            found.extend(
                inside
                    .filter(|(key, _)| !key.contains('.'))
                    .map(|(key, _)| format!("{root}.{key}")),
            );
        }
    }
    found
}

/// The first step of a path that does not exist, and similar names.
fn missing(path: &str, names: &dyn TemplateNames) -> Option<(String, Vec<String>)> {
    let steps: Vec<&str> = path.split('.').collect();
    let (root, rest) = steps.split_first()?;
    if is_function(root) {
        return None;
    }
    let Some(mut value) = names.whole(root) else {
        let roots: Vec<String> = names.roots().into_iter().map(str::to_owned).collect();
        return Some(((*root).to_owned(), near(root, &roots)));
    };
    let mut walked = (*root).to_owned();
    for step in rest {
        let JsonValue::Object(mut map) = value else { return None };
        if is_template_method(step) && !map.contains_key(*step) {
            return None;
        }
        let before = std::mem::take(&mut walked);
        walked = format!("{before}.{step}");
        match map.remove(step) {
            Some(next) => value = next,
            None => {
                let keys: Vec<String> = map.into_iter().map(|(key, _)| key).collect();
                let near = near(step, &keys).into_iter().map(|key| format!("{before}.{key}"));
                return Some((walked, near.collect()));
            }
        }
    }
    None
}

/// Names that the author of `name` may have meant, nearest first.
pub(crate) fn near(name: &str, candidates: &[String]) -> Vec<String> {
    let allowed = (name.chars().count() / 3).max(1);
    let mut found: Vec<(usize, &String)> = candidates
        .iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && candidate.as_str() != name)
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(3).map(|(_, candidate)| candidate.clone()).collect()
}

/// The number of characters that differ (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, letter) in left.chars().take(64).enumerate() {
        let mut diagonal = above;
        let mut before = above + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(&right) {
            let change = diagonal + usize::from(letter != *other);
            diagonal = *cell;
            before = change.min(before + 1).min(*cell + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = above + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
