//! Reads a node, or a step inside one, as a task.

use std::collections::{BTreeMap, BTreeSet};

use belljar_contract::Language;
use belljar_contract::{JsonMap, JsonValue, exact_json};

use super::action::{CodeSettings, seconds};
use super::routes::{InterruptPoint, Spot};
use super::{BEGIN, END, START, task, task_name};
use crate::FormatOptions;
use crate::expression::{NameMap, uses as template_uses};
use crate::fault::{Diagnostics, shortened};
use crate::fields::{FieldReader, expected, text};
use crate::tasks::{MAX_TASKS, condition, fit_for_id, retry};
use crate::tree::{FileNode, FileTree, Position};
use belljar_workflow::names_in_template;
use belljar_workflow::{Action, AtLimit, LoopAction, OnError, Reducer, ResultShape, Task};

/// Reads nodes and steps.
pub(super) struct Steps<'r, 'f> {
    pub(super) options: &'r FormatOptions,
    pub(super) notes: &'r mut Diagnostics<'f>,
    pub(super) code: &'r CodeSettings,
    /// The translations of names in templates.
    pub(super) names: NameMap,
    pub(super) reducers: &'r BTreeMap<String, Reducer>,
}

impl Steps<'_, '_> {
    /// Reads the nodes of an agent.
    pub(super) fn nodes(&mut self, nodes: &[FileNode], at: Position) -> Vec<Spot> {
        if nodes.is_empty() {
            self.notes.fault(at, "the agent has no nodes", "write at least one under `nodes:`");
        }
        if nodes.len() > MAX_TASKS {
            self.notes.fault(at, format!("more than {MAX_TASKS} nodes"), "split the agent");
            return Vec::new();
        }
        let mut seen = BTreeSet::new();
        let mut spots = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some((name, fields)) = self.named(node, None) else { continue };
            let name = task_name(&name).to_owned();
            let reserved = ["__next", "__enter", "__loop", "__at", "__state"]
                .iter()
                .any(|end| name.ends_with(end));
            if reserved || [START, BEGIN, END].contains(&name.as_str()) {
                let message = format!("`{}` is a reserved name", shortened(&name));
                self.notes.fault(node.at, message, "choose another name");
            }
            if !seen.insert(name.clone()) {
                let message = format!("two nodes are called `{}`", shortened(&name));
                self.notes.fault(node.at, message, "rename one of them");
                continue;
            }
            let spot = self.within(&name, |steps| steps.spot(&name, node, fields));
            // A node that cannot be read keeps its place: routes to it are not faults as well.
            let missing =
                || Spot::new(task(&name, super::pass(JsonValue::Null)), node.at, None, false, None);
            spots.push(spot.unwrap_or_else(missing));
        }
        spots
    }

    /// Reads the name of a node or step and begins to read its fields.
    fn named<'t>(
        &mut self,
        node: &'t FileNode,
        unnamed: Option<&str>,
    ) -> Option<(String, FieldReader<'t>)> {
        let mut fields = FieldReader::of(node, "a node", self.notes)?;
        let name = fields.text(&["name", "id"], self.notes).or(unnamed.map(str::to_owned));
        let Some(name) = name else {
            self.notes.fault(node.at, "a node has no `name`", "add one");
            return None;
        };
        if let Err(why) = fit_for_id(&name) {
            let message = format!("`{}` is not a valid name: it {why}", shortened(&name));
            self.notes.fault(node.at, message, "");
        }
        Some((name, fields))
    }

    /// Names the node for everything noted while `work` runs.
    pub(super) fn within<T>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Steps<'_, '_>) -> T,
    ) -> T {
        let (options, code, reducers) = (self.options, self.code, self.reducers);
        let names = self.names.clone();
        self.notes.about(name, |notes| work(&mut Steps { options, notes, code, names, reducers }))
    }

    /// Reads a node and its routes.
    fn spot(&mut self, name: &str, node: &FileNode, mut fields: FieldReader<'_>) -> Option<Spot> {
        let goto = fields.take(&["goto"], self.notes);
        let goto = goto.map(|node| self.goto(node));
        let (fan_in, joins) = match fields.take(&["fan_in", "is_fan_in"], self.notes) {
            None => (false, None),
            Some(node) => match &node.tree {
                FileTree::Bool(joins) => (*joins, None),
                FileTree::Text(target) => (false, Some((target.clone(), node.at))),
                FileTree::Null | FileTree::Number(_) | FileTree::List(_) | FileTree::Map(_) => {
                    expected(node, "true, or the name of a node", self.notes);
                    (false, None)
                }
            },
        };
        let interrupt = fields.take(&["interrupt"], self.notes);
        let interrupt = interrupt.and_then(|node| self.interrupt(node));
        let task = self.task(name, node, fields)?;
        let mut spot = Spot::new(task, node.at, goto, fan_in, joins);
        spot.interrupt = interrupt;
        Some(spot)
    }

    /// Reads `interrupt: before | after`.
    fn interrupt(&mut self, node: &FileNode) -> Option<InterruptPoint> {
        match &node.tree {
            FileTree::Bool(false) => None,
            FileTree::Bool(true) => Some(InterruptPoint::Before),
            FileTree::Text(word) if word == "before" => Some(InterruptPoint::Before),
            FileTree::Text(word) if word == "after" => Some(InterruptPoint::After),
            FileTree::Text(_)
            | FileTree::Null
            | FileTree::Number(_)
            | FileTree::List(_)
            | FileTree::Map(_) => {
                expected(node, "`before` or `after`", self.notes);
                None
            }
        }
    }

    /// Reads steps that run one after another.
    pub(super) fn sequence(&mut self, items: &[FileNode]) -> Vec<Task> {
        self.sequence_of(items, &|number| format!("step{number}"))
    }

    /// Reads steps, with ids for those that have none.
    pub(super) fn sequence_of(
        &mut self,
        items: &[FileNode],
        unnamed: &dyn Fn(usize) -> String,
    ) -> Vec<Task> {
        let mut seen = BTreeSet::new();
        let mut tasks: Vec<Task> = Vec::with_capacity(items.len());
        for (index, node) in items.iter().enumerate() {
            let unnamed = unnamed(index + 1);
            let Some((name, mut fields)) = self.named(node, Some(&unnamed)) else { continue };
            if !seen.insert(name.clone()) {
                let message = format!("two steps are called `{}`", shortened(&name));
                self.notes.fault(node.at, message, "rename one of them");
            }
            fields.refuse(&["goto"], "inside a node, steps run in order", self.notes);
            let task = self.within(&name, |steps| steps.task(&name, node, fields));
            if let Some(mut task) = task {
                task.depends_on = tasks.last().map(|last| last.id.clone()).into_iter().collect();
                tasks.push(task);
            }
        }
        past_skipped(tasks)
    }

    /// Reads the action of a node and the fields that every kind has.
    pub(super) fn task(
        &mut self,
        name: &str,
        node: &FileNode,
        mut fields: FieldReader<'_>,
    ) -> Option<Task> {
        let output = self.output(&mut fields);
        let kind = kind(&fields, node);
        // The condition of a loop belongs to its rounds.
        let when = if kind == Some("while_loop") { None } else { self.when(&mut fields) };
        let timeout = fields.take(&["timeout", "timeout_seconds"], self.notes);
        let timeout_ms = timeout.and_then(|node| seconds(node, self.notes));
        let retry = fields.take(&["retry"], self.notes).and_then(|node| retry(node, self.notes));
        let on_error = fields.take(&["on_error"], self.notes);
        let on_error = on_error.and_then(|node| self.on_error(node));
        let done = self.kind(kind, name, node, &mut fields);
        fields.ignore(&["description", "metadata", "tags", "comment", "label", "type"]);
        fields.hint(&["run", "uses", "with", "steps", "goto"]);
        fields.refuse(
            &["subgraph", "agent", "agents"],
            "other files and agents are not read: write `steps`",
            self.notes,
        );
        fields.done(self.notes);
        let mut task = Task { when, timeout_ms, retry, ..task(name, done?) };
        task.on_error = on_error.unwrap_or_default();
        put_result(&mut task, output);
        Some(task)
    }

    /// Reads where the result goes: a name, or a mapping of names to templates over it.
    fn output(&mut self, fields: &mut FieldReader<'_>) -> JsonMap {
        let mut parts = JsonMap::new();
        if let Some(node) = fields.take(&["output", "store", "output_key"], self.notes) {
            match &node.tree {
                FileTree::Text(key) => {
                    parts.insert(key.clone(), exact_json!("{{ result }}"));
                }
                FileTree::Map(_) => parts.extend(self.parts(node)),
                FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) | FileTree::List(_) => {
                    let wanted = "`output`: a name, or a mapping of names to templates";
                    expected(node, wanted, self.notes);
                }
            }
        }
        if let Some(node) = fields.take(&["outputs"], self.notes) {
            let before = self.names.clone();
            self.names = before.clone().with("action_result", "result");
            parts.extend(self.parts(node));
            self.names = before;
        }
        parts
    }

    /// Reads a mapping whose texts are templates.
    fn parts(&mut self, node: &FileNode) -> JsonMap {
        let values = self.templates(node);
        self.object(Some(values), Some(node)).unwrap_or_default()
    }

    fn kind(
        &mut self,
        kind: Option<&'static str>,
        name: &str,
        node: &FileNode,
        fields: &mut FieldReader<'_>,
    ) -> Option<Action> {
        match kind {
            Some("run") => self.run(node, fields),
            Some("uses") => {
                let uses = fields.take(&["uses", "action"], self.notes)?;
                let with = fields.take(&["with", "params"], self.notes);
                let name = text(uses, self.notes)?;
                self.uses(&name, uses.at, with)
            }
            Some("steps") => {
                let steps = fields.list(&["steps"], self.notes)?;
                Some(group(self.sequence(steps)))
            }
            Some("while_loop") => self.while_loop(node, fields).map(Action::Loop),
            Some("dynamic_parallel") => {
                self.dynamic_parallel(name, node, fields).map(Action::Foreach)
            }
            Some(_) | None => match fields.text(&["type"], self.notes) {
                Some(kind) => {
                    let message = format!("unknown node type `{}`", shortened(&kind));
                    self.notes.fault(node.at, message, "types are while_loop and dynamic_parallel");
                    None
                }
                None => {
                    // A node that only continues a route, or joins branches.
                    self.notes.warn(node.at, format!("`{}` does nothing", shortened(name)), "");
                    Some(super::pass(JsonValue::Null))
                }
            },
        }
    }

    /// Reads `when`, `if` or `condition` of a node.
    fn when(&mut self, fields: &mut FieldReader<'_>) -> Option<String> {
        let node = fields.take(&["when", "if", "condition"], self.notes)?;
        self.expression(node)
    }

    /// Reads an expression and translates its names.
    pub(super) fn expression(&mut self, node: &FileNode) -> Option<String> {
        let plain = condition(node, self.notes)?;
        self.refuse_names(&format!("{{{{ {plain} }}}}"), node.at);
        Some(lone_name(&self.names.expression(&plain)))
    }

    /// Reads a value whose texts are templates.
    pub(super) fn templates(&mut self, node: &FileNode) -> JsonValue {
        self.check_templates(node);
        self.names.value(node.json())
    }

    fn check_templates(&mut self, node: &FileNode) {
        match &node.tree {
            FileTree::Text(text) => {
                self.refuse_names(text, node.at);
                if let Err(error) = names_in_template(&self.names.template(text)) {
                    self.notes.fault(node.at, error.to_string(), "");
                }
            }
            FileTree::List(items) => items.iter().for_each(|item| self.check_templates(item)),
            FileTree::Map(entries) => {
                entries.iter().for_each(|entry| self.check_templates(&entry.value));
            }
            FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) => {}
        }
    }

    pub(super) fn refuse_names(&mut self, text: &str, at: Position) {
        for name in ["secrets", "env"].into_iter().filter(|name| template_uses(text, name)) {
            let message = format!("`{name}` is not supported: a workflow holds no secrets");
            let help = "configure them for the MCP server that needs them";
            self.notes.fault(at, message, help);
        }
        let unknown = ["settings", "checkpoint"].into_iter().filter(|name| !self.names.has(name));
        for name in unknown.filter(|name| template_uses(text, name)) {
            let message = format!("`{name}` does not exist in templates");
            self.notes.fault(at, message, "put the value into `variables` and write `variables.…`");
        }
    }

    fn on_error(&mut self, node: &FileNode) -> Option<OnError> {
        match text(node, self.notes)?.as_str() {
            "fail" | "raise" => Some(OnError::Fail),
            "continue" | "ignore" => Some(OnError::Continue),
            _ => {
                expected(node, "`fail` or `continue`", self.notes);
                None
            }
        }
    }
}

/// The kind of a node, by its fields.
fn kind(fields: &FieldReader<'_>, node: &FileNode) -> Option<&'static str> {
    let typed = node.get("type").and_then(|kind| match &kind.tree {
        FileTree::Text(word) => Some(word.as_str()),
        FileTree::Null
        | FileTree::Bool(_)
        | FileTree::Number(_)
        | FileTree::List(_)
        | FileTree::Map(_) => None,
    });
    for kind in ["while_loop", "dynamic_parallel"] {
        if typed == Some(kind) || fields.has(kind) {
            return Some(kind);
        }
    }
    let fields_of = [
        ("run", "run"),
        ("script", "run"),
        ("uses", "uses"),
        ("action", "uses"),
        ("steps", "steps"),
    ];
    fields_of.into_iter().find(|(field, _)| fields.has(field)).map(|(_, kind)| kind)
}

/// Chains tasks so that each runs even when the one before it is skipped: each also depends on a
/// task that never is.
fn past_skipped(mut tasks: Vec<Task>) -> Vec<Task> {
    if tasks.iter().all(|task| task.when.is_none()) {
        return tasks;
    }
    for task in &mut tasks {
        task.depends_on.push(BEGIN.to_owned());
    }
    tasks.insert(0, task(BEGIN, super::pass(JsonValue::Null)));
    tasks
}

/// Tasks that run once, as one group over the same state.
fn group(body: Vec<Task>) -> Action {
    let goto = Vec::new();
    Action::Loop(LoopAction { condition: None, max_rounds: 1, at_limit: AtLimit::End, body, goto })
}

/// Sets where the result of a task goes. A mapping goes into the state key by key unless the file
/// says otherwise; the result of a node's code always does.
fn put_result(task: &mut Task, output: JsonMap) {
    let is_said = !output.is_empty();
    task.output = output;
    let (merge, other) = match &task.action {
        Action::Foreach(_) if !is_said => {
            task.output.insert("parallel_results".into(), exact_json!("{{ result }}"));
            (false, false)
        }
        // The last expression of JavaScript is a value too, whether or not its author meant it.
        Action::CodeExecution(code) if code.shape == ResultShape::Node => {
            let script = matches!(code.language, Language::JavaScript | Language::TypeScript);
            (true, !script || code.code.contains("return"))
        }
        Action::CodeExecution(_) | Action::McpTool(_) | Action::Sandbox(_) => (!is_said, true),
        Action::Approval { .. }
        | Action::Foreach(_)
        | Action::Loop(_)
        | Action::Workflow { .. }
        | Action::Wait(_)
        | Action::Pass { .. } => (false, false),
    };
    task.merge_result = merge;
    task.result_key = (merge && other).then(|| "result".to_owned());
}

/// A bare name as a part of the state.
fn lone_name(expression: &str) -> String {
    let (not, name) = match expression.strip_prefix("not ") {
        Some(rest) => ("not ", rest.trim()),
        None => ("", expression),
    };
    let word = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let known = ["true", "false", "True", "False", "none", "None", "item", "index", "state"];
    if word && !known.contains(&name) {
        return format!("{not}state.{name}");
    }
    expression.to_owned()
}
