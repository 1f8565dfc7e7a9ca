//! Expressions and templates as others write them, in the names known here.
//!
//! Only names at the root of an expression are changed: `url` in `{{ url.host }}`, never that in
//! `{{ state.url }}` or in a quoted text.

use serde_json::Value;

/// Names and what they become; one that becomes nothing is refused.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pairs: Vec<(String, String)>,
}

impl Names {
    /// Adds a name.
    pub(super) fn with(mut self, from: &str, to: &str) -> Self {
        self.pairs.retain(|(name, _)| name != from);
        self.pairs.push((from.to_owned(), to.to_owned()));
        self
    }

    /// A bare expression, or one in `{{ }}`, with its names changed.
    pub(super) fn expression(&self, text: &str) -> String {
        let text = text.trim();
        let inner = text
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"))
            .filter(|inner| !inner.contains("{{"))
            .unwrap_or(text)
            .trim();
        let inner = match inner.strip_prefix('!').filter(|rest| !rest.starts_with('=')) {
            Some(rest) => format!("not {}", rest.trim_start()),
            None => inner.to_owned(),
        };
        self.rename(&inner)
    }

    /// A text with templates in it.
    pub(super) fn template(&self, text: &str) -> String {
        let mut changed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, inside, after)) = next_template(rest) {
            changed.push_str(before);
            changed.push_str(&self.rename(inside));
            rest = after;
        }
        changed.push_str(rest);
        outputs(&changed)
    }

    /// Every text of a value.
    pub(super) fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.template(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, item)| (key, self.value(item))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn rename(&self, expression: &str) -> String {
        let mut changed = String::with_capacity(expression.len());
        let mut letters = expression.chars().peekable();
        let mut before = ' ';
        while let Some(letter) = letters.next() {
            if letter == '"' || letter == '\'' {
                changed.push(letter);
                let mut escaped = false;
                for inner in letters.by_ref() {
                    changed.push(inner);
                    if inner == letter && !escaped {
                        break;
                    }
                    escaped = inner == '\\' && !escaped;
                }
                before = letter;
            } else if letter.is_alphabetic() || letter == '_' {
                let mut word = String::from(letter);
                while let Some(more) = letters.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(more);
                }
                let pair = self.pairs.iter().find(|(name, _)| *name == word);
                let root = before != '.' && before != '|';
                changed.push_str(pair.filter(|_| root).map_or(word.as_str(), |(_, to)| to));
                before = 'a';
            } else {
                changed.push(letter);
                if !letter.is_whitespace() {
                    before = letter;
                }
            }
        }
        changed
    }
}

/// Splits at the next `{{ … }}` or `{% … %}`: what lies before, it, what lies after.
fn next_template(text: &str) -> Option<(&str, &str, &str)> {
    let opens = |at: usize| match text.get(at..at + 2) {
        Some("{{") => Some((at, "}}")),
        Some("{%") => Some((at, "%}")),
        Some(_) | None => None,
    };
    let (from, close) = text.match_indices('{').find_map(|(at, _)| opens(at))?;
    let (before, rest) = text.split_at(from);
    let end = rest.find(close)? + close.len();
    let (inside, after) = rest.split_at(end);
    Some((before, inside, after))
}

/// Whether a text uses a name at the root of one of its templates.
pub(super) fn uses(text: &str, name: &str) -> bool {
    let marked = Names::default().with(name, "\u{1}");
    let mut rest = text;
    while let Some((_, inside, after)) = next_template(rest) {
        if marked.rename(inside).contains('\u{1}') {
            return true;
        }
        rest = after;
    }
    false
}

/// Whether a text is made of values: it has a template over what is known to one.
pub(super) fn is_template(text: &str) -> bool {
    ["state", "inputs", "results", "tasks", "item", "index", "variables", "deps"]
        .iter()
        .any(|name| uses(text, name))
}

/// `$OUTPUT[task].path`, as DAGs written elsewhere refer to results.
fn outputs(text: &str) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$OUTPUT[") {
        let Some((task, after)) = after.split_once(']') else { break };
        let path: String = after
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '[' | ']'))
            .collect();
        let path = path.trim_end_matches('.').to_owned();
        changed.push_str(before);
        changed.push_str(&format!("{{{{ results[{}]{path} }}}}", quoted(task)));
        rest = after.get(path.len()..).unwrap_or_default();
    }
    changed.push_str(rest);
    changed
}

/// A text as an expression writes it.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
