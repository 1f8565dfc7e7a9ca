//! `run`: the code of a node.

use belljar_contract::{JsonMap, JsonValue, exact_json};

use super::step::Steps;
use crate::code::{self, LanguageFields};
use crate::expression::{is_template, quoted};
use crate::fields::{FieldReader, expected, text};
use crate::tree::{FileNode, FileTree, Position};
use belljar_contract::Language;
use belljar_workflow::reducer_of;
use belljar_workflow::{Action, Reducer};

impl Steps<'_, '_> {
    /// Reads `run`: code that sees `state` and `variables`, and returns changes of the state.
    pub(super) fn run(&mut self, node: &FileNode, fields: &mut FieldReader<'_>) -> Option<Action> {
        let allowed = code::allowed(node.at, self.options, self.notes);
        let run = fields.take(&["run", "script"], self.notes)?;
        let language = LanguageFields::take(fields, self.notes);
        let source = match &run.tree {
            FileTree::Map(_) => self.computed(run)?,
            FileTree::Null
            | FileTree::Bool(_)
            | FileTree::Number(_)
            | FileTree::Text(_)
            | FileTree::List(_) => text(run, self.notes)?,
        };
        let usual = (language_of(&source), run.at);
        let language = language.read(usual, self.options, self.notes)?;
        self.warn_about_code(language.0, &source, run.at);
        let code = self.code.node(language, source.clone(), self.given(&source));
        allowed.then_some(Action::CodeExecution(code))
    }

    /// The context of the code: the names that it sees.
    fn given(&self, source: &str) -> JsonMap {
        let mut context = JsonMap::new();
        context.insert("state".into(), exact_json!("{{ state }}"));
        for (name, value) in [
            ("variables", "{{ state.variables }}"),
            ("parallel_results", "{{ state.parallel_results | default([]) }}"),
        ] {
            if source.contains(name) {
                context.insert(name.into(), exact_json!(value));
            }
        }
        // Of these parts, the code returns only the items it adds, not the whole list.
        let usual = ["messages", "tasks", "decisions"].map(str::to_owned);
        let grows: JsonMap = (self.reducers.keys().cloned().chain(usual))
            .filter(|part| source.contains(part.as_str()))
            .filter_map(|part| match reducer_of(self.reducers, &part) {
                Reducer::Append => Some((part, exact_json!("append"))),
                Reducer::Sum => Some((part, exact_json!("sum"))),
                Reducer::Last | Reducer::Merge | Reducer::Union => None,
            })
            .collect();
        if !grows.is_empty() {
            context.insert("__grows__".into(), JsonValue::Object(grows));
        }
        context
    }

    /// Warns about code that does something else here than its author may expect.
    fn warn_about_code(&mut self, language: Language, source: &str, at: Position) {
        if source.contains("secrets[") || source.contains("secrets.") {
            let help = "configure the secret for the MCP server that needs it";
            self.notes.warn(at, "code cannot read `secrets`", help);
        }
        if is_template(source) {
            let help =
                "read the value from `state` in the code: a rendered value could be run as code";
            self.notes.warn(at, "`{{ }}` in the code of a node is not rendered", help);
        }
        if language == Language::Python && ends_with_a_name(source) {
            let help = "`return` them in a mapping, or set `state[…]`";
            self.notes.warn(at, "variables that the code sets do not go into the state", help);
        }
    }

    /// Reads `run: {type: expression, value, output_key}`.
    fn computed(&mut self, run: &FileNode) -> Option<String> {
        let mut fields = FieldReader::of(run, "`run`", self.notes)?;
        let kind = fields.text(&["type"], self.notes).unwrap_or_else(|| "expression".to_owned());
        let inline = fields.text(&["code", "inline"], self.notes);
        let value = fields.text(&["value"], self.notes);
        let key = fields.text(&["output_key", "output"], self.notes);
        fields.done(self.notes);
        match (kind.as_str(), value, key, inline) {
            ("expression", Some(value), Some(key), None) => {
                Some(format!("return {{{}: ({})}}", quoted(&key), value.trim()))
            }
            (_, None, None, Some(code)) => Some(code),
            _ => {
                expected(run, "code, or an expression with `value` and `output_key`", self.notes);
                None
            }
        }
    }
}

/// The language of inline code, as it says itself or as its syntax shows.
fn language_of(code: &str) -> &'static str {
    let first = code.trim_start().lines().next().unwrap_or_default().trim();
    // No line of Python begins like this.
    let word = first.trim_start_matches(['-', '%']).trim_start().to_ascii_lowercase();
    match first {
        _ if first.starts_with("--") && word.starts_with("prolog") => "prolog",
        _ if first.starts_with("--") => "lua",
        _ if first.starts_with('%') => "prolog",
        _ if is_lua(code) => "lua",
        _ => "python",
    }
}

/// Whether code has syntax of Lua that Python does not have: blocks with `then` or `do` and `end`,
/// `local`, tables with `=`.
fn is_lua(code: &str) -> bool {
    let (mut begins, mut ends, mut sure) = (false, false, false);
    for line in code.lines().map(str::trim) {
        let opens = |word: &str, last: &str| line.starts_with(word) && line.ends_with(last);
        begins |= opens("if ", " then") || opens("for ", " do") || opens("while ", " do");
        begins |= line.starts_with("function ");
        ends |= matches!(line, "end" | "end)" | "end," | "end;");
        sure |= line.starts_with("local ") || opens("elseif ", " then");
        sure |= line.strip_prefix("return").is_some_and(is_table);
    }
    sure || (begins && ends)
}

/// Whether a text begins like a table of Lua: `{ name = value`.
fn is_table(text: &str) -> bool {
    let Some(inner) = text.trim_start().strip_prefix('{') else { return false };
    let inner = inner.trim_start();
    let name = inner.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(0);
    let rest = inner.get(name..).unwrap_or_default().trim_start();
    name > 0 && rest.starts_with('=') && !rest.starts_with("==")
}

/// Whether code without `return` ends with an assignment.
fn ends_with_a_name(code: &str) -> bool {
    let last = code.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let name = last.split(['=', ':']).next().unwrap_or_default();
    let is_name = !name.is_empty()
        && name.trim_end().chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(char::is_numeric);
    let sets =
        last.get(name.len()..).is_some_and(|rest| rest.starts_with('=') && !rest.starts_with("=="));
    // The worker takes a variable `result` as the value.
    is_name
        && sets
        && name.trim() != "result"
        && !code.contains("return")
        && !code.contains("state[")
}
