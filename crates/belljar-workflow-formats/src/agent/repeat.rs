//! Reads `while_loop` and `dynamic_parallel` nodes.

use std::collections::BTreeSet;

use belljar_contract::{JsonMap, JsonValue, exact_json, json_value};

use super::step::Steps;
use super::{START, constants, pass, task};
use crate::fields::FieldReader;
use crate::tree::{FileNode, FileTree};
use belljar_workflow::{Action, AtLimit, Dag, DagSettings, Foreach, LoopAction, OnError, Task};
use belljar_workflow::{is_template_method, names_in_expression, names_in_template};

impl Steps<'_, '_> {
    /// The fields of a construct: in a mapping of its own, or beside `type` in the node.
    fn inner<'t, T>(
        &mut self,
        name: &'static str,
        fields: &mut FieldReader<'t>,
        read: impl FnOnce(&mut Self, &mut FieldReader<'t>) -> T,
    ) -> Option<T> {
        match fields.take(&[name], self.notes) {
            None => Some(read(self, fields)),
            Some(node) => {
                let mut inner = FieldReader::of(node, name, self.notes)?;
                let done = read(self, &mut inner);
                inner.done(self.notes);
                Some(done)
            }
        }
    }

    /// Reads steps that repeat while a condition holds.
    pub(super) fn while_loop(
        &mut self,
        node: &FileNode,
        fields: &mut FieldReader<'_>,
    ) -> Option<LoopAction> {
        let at = node.at;
        self.inner("while_loop", fields, |steps, fields| {
            let test = fields.take(&["condition", "while"], steps.notes);
            let test = test.and_then(|node| steps.expression(node));
            let rounds = fields.number(&["max_iterations", "max_rounds"], 1..=100_000, steps.notes);
            let body = fields.list(&["body", "steps"], steps.notes);
            let empty = body.is_none_or(<[FileNode]>::is_empty);
            let body = body.map(|items| steps.sequence(items)).unwrap_or_default();
            if test.is_none() || empty {
                let help = "write both, and `max_iterations`";
                steps.notes.fault(at, "a while_loop needs `condition` and `body`", help);
                return None;
            }
            if rounds.is_none() {
                steps.notes.warn(at, "`max_iterations` is missing; the limit is 100", "set it");
            }
            let max_rounds = rounds.and_then(|n| n.try_into().ok()).unwrap_or(100);
            let goto = Vec::new();
            Some(LoopAction { condition: test, max_rounds, at_limit: AtLimit::End, body, goto })
        })?
    }

    /// Reads an action or steps for each item of a list.
    pub(super) fn dynamic_parallel(
        &mut self,
        name: &str,
        node: &FileNode,
        fields: &mut FieldReader<'_>,
    ) -> Option<Foreach> {
        self.inner("dynamic_parallel", fields, |steps, fields| steps.fan_out(name, node, fields))?
    }

    fn fan_out(
        &mut self,
        name: &str,
        node: &FileNode,
        fields: &mut FieldReader<'_>,
    ) -> Option<Foreach> {
        let items = fields.take(&["items"], self.notes);
        let item = fields.text(&["item_var"], self.notes).unwrap_or_else(|| "item".to_owned());
        let index = fields.text(&["index_var"], self.notes).unwrap_or_else(|| "index".to_owned());
        let mut at_once = fields.number(&["max_concurrency"], 1..=10_000, self.notes);
        let mut fail_fast = fields.flag(&["fail_fast"], self.notes);
        if let Some(node) = fields.take(&["parallel_config"], self.notes) {
            let mut inner = FieldReader::of(node, "`parallel_config`", self.notes)?;
            at_once = at_once.or(inner.number(&["max_concurrency"], 1..=10_000, self.notes));
            fail_fast = fail_fast.or(inner.flag(&["fail_fast"], self.notes));
            inner.tolerate(&["strategy", "timeout"], "branches run as parallel tasks", self.notes);
            inner.done(self.notes);
        }
        let action = fields.take(&["action"], self.notes);
        let steps = fields.list(&["steps"], self.notes);
        let elsewhere = fields.has("subgraph");
        if elsewhere {
            fields.ignore(&["input"]);
        }
        fields.refuse(&["subgraph"], "other files are not read: write `steps`", self.notes);
        let items = items.map(|node| match &node.tree {
            // `items: state.urls` means the same as `"{{ state.urls }}"`.
            FileTree::Text(text) if !text.contains("{{") => {
                exact_json!(format!("{{{{ {} }}}}", self.names.expression(text)))
            }
            FileTree::Text(_)
            | FileTree::Null
            | FileTree::Bool(_)
            | FileTree::Number(_)
            | FileTree::List(_)
            | FileTree::Map(_) => self.templates(node),
        });
        let fail_fast = fail_fast.unwrap_or(false);
        let branch = ForeachBranch { node: name, item: &item, index: &index, fail_fast };
        let each = match (action, steps) {
            (Some(action), None) => Some(self.each_action(action, &branch)),
            (None, Some(list)) => Some(self.each_steps(list, &branch)),
            (None, None) if elsewhere => None,
            _ => {
                let help = "write one of them";
                self.notes.fault(
                    node.at,
                    "dynamic_parallel needs either `action` or `steps`",
                    help,
                );
                None
            }
        };
        if items.is_none() {
            let help = "write `items: \"{{ state.list }}\"`";
            self.notes.fault(node.at, "dynamic_parallel needs `items`", help);
        }
        Some(Foreach {
            items: items?,
            each: Box::new(each?),
            at_once: at_once.and_then(|n| n.try_into().ok()),
            fail_fast,
        })
    }

    /// An action for each item: it sees the parts of the state it reads, and returns those it sets.
    fn each_action(&mut self, action: &FileNode, branch: &ForeachBranch<'_>) -> Task {
        let one = std::slice::from_ref(action);
        let steps = self.inside(branch, |steps| steps.sequence_of(one, &|_| "action".to_owned()));
        let Some(parts) = parts_read(&steps) else {
            return self.each(steps, branch, exact_json!("{{ state }}"), "state");
        };
        let own = |part: &String| *part != branch.item && *part != branch.index;
        let parts: JsonMap = (parts.into_iter().filter(own))
            .map(|part| {
                let value = exact_json!(format!("{{{{ state.{part} }}}}"));
                (part, value)
            })
            .collect();
        self.each(steps, branch, JsonValue::Object(parts), "__changed(state, inputs.state)")
    }

    /// Steps for each item, over a copy of the state.
    fn each_steps(&mut self, list: &[FileNode], branch: &ForeachBranch<'_>) -> Task {
        let steps = self.inside(branch, |steps| steps.sequence(list));
        self.each(steps, branch, exact_json!("{{ state }}"), "state")
    }

    /// Reads steps that find the item in their state.
    fn inside(
        &mut self,
        branch: &ForeachBranch<'_>,
        read: impl FnOnce(&mut Self) -> Vec<Task>,
    ) -> Vec<Task> {
        let before = self.names.clone();
        let inside = |name: &str| format!("state.{name}");
        let (item, index) = (branch.item, branch.index);
        self.names = before.clone().with(item, &inside(item)).with(index, &inside(index));
        let steps = read(self);
        self.names = before;
        steps
    }

    /// A branch: a workflow with a state of its own, which holds the item. `kept` names the parts
    /// of the state that it returns.
    fn each(
        &self,
        mut steps: Vec<Task>,
        branch: &ForeachBranch<'_>,
        state: JsonValue,
        kept: &str,
    ) -> Task {
        let mut start = task(START, pass(exact_json!("{{ inputs.state }}")));
        start.merge_result = true;
        start.output.insert(branch.item.to_owned(), exact_json!("{{ inputs.item }}"));
        start.output.insert(branch.index.to_owned(), exact_json!("{{ inputs.index }}"));
        if let Some(first) = steps.first_mut() {
            first.depends_on = vec![START.to_owned()];
        }
        let about = "{\"source_node\": inputs.source_node, \"branch\": inputs.branch, \
                     \"index\": inputs.index, \"success\": true, \"error\": none}";
        let dag = Dag {
            name: "each".into(),
            reducers: self.reducers.clone(),
            tasks: std::iter::once(start).chain(steps).collect(),
            output: Some(exact_json!(format!("{{{{ __branch({kept}, {about}) }}}}"))),
            settings: DagSettings {
                lenient: true,
                constants: constants(&self.names),
                ..DagSettings::default()
            },
            ..Dag::default()
        };
        let inputs = [
            ("state", state),
            ("item", exact_json!("{{ item }}")),
            ("index", exact_json!("{{ index }}")),
            ("source_node", exact_json!(branch.node)),
            ("branch", exact_json!(branch.named())),
        ];
        let inputs: JsonMap =
            inputs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut each = task("each", Action::Workflow { workflow: Box::new(dag), inputs });
        if !branch.fail_fast {
            each.on_error = OnError::Fallback(Box::new(branch.failed()));
        }
        each
    }
}

/// The branch of one item, and the names of its values.
struct ForeachBranch<'a> {
    node: &'a str,
    item: &'a str,
    index: &'a str,
    fail_fast: bool,
}

impl ForeachBranch<'_> {
    fn named(&self) -> String {
        format!("{}[{{{{ index }}}}]", self.node)
    }

    /// The result for an item that failed: it is among the results, and the other items continue.
    fn failed(&self) -> Task {
        let mut given = JsonMap::new();
        given.insert(self.item.to_owned(), exact_json!("{{ item }}"));
        given.insert(self.index.to_owned(), exact_json!("{{ index }}"));
        let state = JsonValue::Object(given.clone());
        given.insert("state".to_owned(), state);
        given.insert("source_node".to_owned(), exact_json!(self.node));
        given.insert("branch".to_owned(), exact_json!(self.named()));
        given.insert("index".to_owned(), exact_json!("{{ index }}"));
        given.insert("success".to_owned(), exact_json!(false));
        given.insert("error".to_owned(), exact_json!("{{ error.message }}"));
        task("failed", pass(JsonValue::Object(given)))
    }
}

/// The parts of the state that tasks read; `None` when they may read all of it.
fn parts_read(tasks: &[Task]) -> Option<BTreeSet<String>> {
    let mut parts = BTreeSet::new();
    let mut open = vec![json_value::to_value(tasks).ok()?];
    for task in tasks {
        let paths = task.when.as_deref().map(names_in_expression).transpose().ok()?;
        parts.extend(parts_of(paths.into_iter().flatten())?);
    }
    while let Some(value) = open.pop() {
        match value {
            JsonValue::String(text) => parts.extend(parts_of(names_in_template(&text).ok()?)?),
            JsonValue::Array(items) => open.extend(items),
            JsonValue::Object(map) => open.extend(map.into_iter().map(|(_, value)| value)),
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => {}
        }
    }
    Some(parts)
}

/// The parts of the state among names; `None` when the state is named as a whole.
fn parts_of(paths: impl IntoIterator<Item = String>) -> Option<BTreeSet<String>> {
    let state = paths.into_iter().filter(|path| path == "state" || path.starts_with("state."));
    state
        .map(|path| {
            let part = path.split('.').nth(1).filter(|part| !is_template_method(part))?;
            Some(part.to_owned())
        })
        .collect()
}
