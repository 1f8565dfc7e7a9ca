//! Translates expressions and templates of other frameworks into the names of workflows.
//!
//! Only names at the root of an expression are changed: `url` in `{{ url.host }}`, never in `{{
//! state.url }}` or in a quoted text.

use std::collections::BTreeSet;
use std::rc::Rc;

use belljar_contract::JsonValue;

/// Names and their translations.
#[derive(Debug, Clone, Default)]
pub(super) struct NameMap {
    pairs: Vec<(String, String)>,
    /// Tasks whose results a text may name as `$task.path`.
    tasks: Option<Rc<SiblingTasks>>,
}

/// The tasks of one list, and those of the lists around it.
#[derive(Debug)]
struct SiblingTasks {
    ids: BTreeSet<String>,
    around: Option<Rc<SiblingTasks>>,
}

impl NameMap {
    /// Adds the translation of one name, in place of an older one.
    pub(super) fn with(mut self, from: &str, to: &str) -> Self {
        self.pairs.retain(|(name, _)| name != from);
        self.pairs.push((from.to_owned(), to.to_owned()));
        self
    }

    /// Whether a name has a translation.
    pub(super) fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(known, _)| known == name)
    }

    /// Adds the tasks of an inner list, whose results can be named as well.
    pub(super) fn with_tasks(mut self, ids: impl IntoIterator<Item = String>) -> Self {
        let around = self.tasks.take();
        self.tasks = Some(Rc::new(SiblingTasks { ids: ids.into_iter().collect(), around }));
        self
    }

    fn knows(&self, task: &str) -> bool {
        std::iter::successors(self.tasks.as_deref(), |beside| beside.around.as_deref())
            .any(|beside| beside.ids.contains(task))
    }

    /// A bare expression, or one in `{{ }}`, translated.
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

    /// A text with its templates translated.
    pub(super) fn template(&self, text: &str) -> String {
        let mut changed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, inside, after)) = next_template(rest) {
            changed.push_str(before);
            changed.push_str(&self.rename(inside));
            rest = after;
        }
        changed.push_str(rest);
        self.references(&outputs(&changed))
    }

    /// Translates `$task.path` and `${task.path}`, by which other DAGs name results, when such a
    /// task exists.
    fn references(&self, text: &str) -> String {
        let mut changed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, reference, after)) = Reference::next(rest) {
            changed.push_str(before);
            let alone = reference.whole.len() == text.trim().len();
            if self.knows(reference.task) && (alone || reference.is_clear()) {
                changed.push_str(&reference.translated());
            } else {
                changed.push_str(reference.whole);
            }
            rest = after;
        }
        changed.push_str(rest);
        changed
    }

    /// The first text of a value that looks like a reference but names no task, and stays text.
    pub(super) fn left_as_text(value: &JsonValue) -> Option<String> {
        match value {
            JsonValue::String(text) => {
                let mut rest = text.as_str();
                while let Some((_, reference, after)) = Reference::next(rest) {
                    if reference.is_clear() {
                        return Some(reference.whole.to_owned());
                    }
                    rest = after;
                }
                None
            }
            JsonValue::Array(items) => items.iter().find_map(Self::left_as_text),
            JsonValue::Object(map) => map.values().find_map(Self::left_as_text),
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => None,
        }
    }

    /// A value with every text in it translated.
    pub(super) fn value(&self, value: JsonValue) -> JsonValue {
        match value {
            JsonValue::String(text) => JsonValue::String(self.template(&text)),
            JsonValue::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            JsonValue::Object(map) => {
                let entries = map.into_iter().map(|(key, item)| (key, self.value(item)));
                JsonValue::Object(entries.collect())
            }
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => value,
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

/// A reference to a task's result: `$task.path` or `${task.path}`.
struct Reference<'t> {
    whole: &'t str,
    task: &'t str,
    path: &'t str,
    braced: bool,
}

impl<'t> Reference<'t> {
    /// The next reference, with the text before and after it.
    fn next(text: &'t str) -> Option<(&'t str, Self, &'t str)> {
        let found = text.match_indices('$').find_map(|(at, _)| Some((at, Self::at(text, at)?)));
        let (at, reference) = found?;
        let after = text.get(at + reference.whole.len()..)?;
        Some((text.get(..at)?, reference, after))
    }

    fn at(text: &'t str, at: usize) -> Option<Self> {
        let rest = text.get(at + 1..)?;
        let (braced, inner) = match rest.strip_prefix('{') {
            Some(inner) => (true, inner),
            None => (false, rest),
        };
        let in_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let named = inner.find(|c| !in_name(c)).unwrap_or(inner.len());
        let (task, rest) = inner.split_at(named);
        let in_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '[' | ']');
        let ends = rest.find(|c| !in_path(c)).unwrap_or(rest.len());
        let path = rest.get(..ends)?.trim_end_matches('.');
        let closes = !braced || rest.get(path.len()..)?.starts_with('}');
        let begins = path.is_empty() || path.starts_with(['.', '[']);
        if task.is_empty() || !closes || !begins {
            return None;
        }
        let length = 1 + 2 * usize::from(braced) + task.len() + path.len();
        Some(Self { whole: text.get(at..at + length)?, task, path, braced })
    }

    /// Whether the text can hardly be anything but a reference.
    fn is_clear(&self) -> bool {
        let given = ["result", "output"].iter().any(|word| self.below(word).is_some());
        given || (self.braced && !self.path.is_empty())
    }

    /// The rest of the path after a first step of that name.
    fn below(&self, word: &str) -> Option<&'t str> {
        let rest = self.path.strip_prefix('.')?.strip_prefix(word)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
    }

    fn translated(&self) -> String {
        let path = self.below("result").or(self.below("output")).unwrap_or(self.path);
        format!("{{{{ {}{path} }}}}", result_of(self.task))
    }
}

/// The expression for the result of a task.
pub(super) fn result_of(task: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = task.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && task.chars().all(plain) && !belljar_workflow::is_template_method(task) {
        return format!("results.{task}");
    }
    format!("results[{}]", quoted(task))
}

/// Splits at the next `{{ … }}` or `{% … %}`: the text before it, it, and the text after it.
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
    let marked = NameMap::default().with(name, "\u{1}");
    let mut rest = text;
    while let Some((_, inside, after)) = next_template(rest) {
        if marked.rename(inside).contains('\u{1}') {
            return true;
        }
        rest = after;
    }
    false
}

/// Whether a text has a template over the values of a workflow.
pub(super) fn is_template(text: &str) -> bool {
    ["state", "inputs", "results", "tasks", "item", "index", "variables", "deps"]
        .iter()
        .any(|name| uses(text, name))
}

/// Translates `$OUTPUT[task].path`, by which some DAGs name results.
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

/// A text as a literal of an expression.
pub(super) fn quoted(text: &str) -> String {
    JsonValue::from(text).to_string()
}
