//! `while_loop` and `dynamic_parallel`.

use serde_json::{Map, Value, json};

use super::super::fields::Fields;
use super::super::tree::{Node, Tree};
use super::step::Steps;
use super::{START, pass, task};
use crate::dag::{Action, AtLimit, Dag, Foreach, Loop, Task};

impl Steps<'_, '_> {
    /// The fields of a construct: its own mapping, or beside `type` in the node.
    fn inner<'t, T>(
        &mut self,
        name: &'static str,
        fields: &mut Fields<'t>,
        read: impl FnOnce(&mut Self, &mut Fields<'t>) -> T,
    ) -> Option<T> {
        match fields.take(&[name], self.notes) {
            None => Some(read(self, fields)),
            Some(node) => {
                let mut inner = Fields::of(node, name, self.notes)?;
                let done = read(self, &mut inner);
                inner.done(self.notes);
                Some(done)
            }
        }
    }

    /// Steps repeated while a condition holds.
    pub(super) fn while_loop(&mut self, node: &Node, fields: &mut Fields<'_>) -> Option<Loop> {
        let at = node.at;
        self.inner("while_loop", fields, |steps, fields| {
            let test = fields.take(&["condition", "while"], steps.notes);
            let test = test.and_then(|node| steps.expression(node));
            let rounds = fields.number(&["max_iterations", "max_rounds"], 1..=100_000, steps.notes);
            let body = fields.list(&["body", "steps"], steps.notes);
            let empty = body.is_none_or(<[Node]>::is_empty);
            let body = body.map(|items| steps.sequence(items)).unwrap_or_default();
            if test.is_none() || empty {
                let help = "write both, and `max_iterations`";
                steps.notes.fault(at, "a while_loop needs `condition` and `body`", help);
                return None;
            }
            if rounds.is_none() {
                steps.notes.warn(at, "`max_iterations` is missing: 100 is taken", "say it");
            }
            let max_rounds = rounds.and_then(|n| n.try_into().ok()).unwrap_or(100);
            let goto = Vec::new();
            Some(Loop { condition: test, max_rounds, at_limit: AtLimit::End, body, goto })
        })?
    }

    /// An action or steps for each item of a list.
    pub(super) fn dynamic_parallel(
        &mut self,
        node: &Node,
        fields: &mut Fields<'_>,
    ) -> Option<Foreach> {
        self.inner("dynamic_parallel", fields, |steps, fields| steps.fan_out(node, fields))?
    }

    fn fan_out(&mut self, node: &Node, fields: &mut Fields<'_>) -> Option<Foreach> {
        let items = fields.take(&["items"], self.notes);
        let item = fields.text(&["item_var"], self.notes).unwrap_or_else(|| "item".to_owned());
        let index = fields.text(&["index_var"], self.notes).unwrap_or_else(|| "index".to_owned());
        let mut at_once = fields.number(&["max_concurrency"], 1..=10_000, self.notes);
        let mut fail_fast = fields.flag(&["fail_fast"], self.notes);
        if let Some(node) = fields.take(&["parallel_config"], self.notes) {
            let mut inner = Fields::of(node, "`parallel_config`", self.notes)?;
            at_once = at_once.or(inner.number(&["max_concurrency"], 1..=10_000, self.notes));
            fail_fast = fail_fast.or(inner.flag(&["fail_fast"], self.notes));
            inner.tolerate(&["strategy", "timeout"], "branches are tasks", self.notes);
            inner.done(self.notes);
        }
        let action = fields.take(&["action"], self.notes);
        let steps = fields.list(&["steps"], self.notes);
        let elsewhere = fields.has("subgraph");
        if elsewhere {
            fields.ignore(&["input"]);
        }
        fields.refuse(&["subgraph"], "other files are not followed: write `steps`", self.notes);
        let items = items.map(|node| match &node.tree {
            // `items: state.urls` means the same as `"{{ state.urls }}"`.
            Tree::Text(text) if !text.contains("{{") => {
                json!(format!("{{{{ {} }}}}", self.names.expression(text)))
            }
            Tree::Text(_)
            | Tree::Null
            | Tree::Bool(_)
            | Tree::Number(_)
            | Tree::List(_)
            | Tree::Map(_) => self.templates(node),
        });
        let each = match (action, steps) {
            (Some(action), None) => self.each_action(action, &item, &index),
            (None, Some(list)) => Some(self.each_steps(list, &item, &index)),
            (None, None) if elsewhere => None,
            _ => {
                let help = "write `action` or `steps`";
                self.notes.fault(node.at, "dynamic_parallel needs one thing to do", help);
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
            fail_fast: fail_fast.unwrap_or(false),
        })
    }

    /// One action for each item. Code of a node reads the item from the state, so it gets its own.
    fn each_action(&mut self, action: &Node, item: &str, index: &str) -> Option<Task> {
        if action.get("uses").is_none() {
            return Some(self.each_steps(std::slice::from_ref(action), item, index));
        }
        let before = self.names.clone();
        self.names = before.clone().with(item, "item").with(index, "index");
        let fields = Fields::of(action, "an action", self.notes);
        let each = fields.and_then(|mut fields| {
            let name = fields.text(&["name"], self.notes).unwrap_or_else(|| "each".to_owned());
            self.task(&name, action, fields)
        });
        self.names = before;
        // What an action gives is collected; branches do not write to the shared state.
        each.map(|each| Task { output: Map::new(), merge_result: false, ..each })
    }

    /// Steps over a copy of the state, in which the item is; the result is that copy in the end.
    fn each_steps(&mut self, list: &[Node], item: &str, index: &str) -> Task {
        let before = self.names.clone();
        let inside = |name: &str| format!("state.{name}");
        self.names = before.clone().with(item, &inside(item)).with(index, &inside(index));
        let mut steps = self.sequence(list);
        self.names = before;
        let mut start = task(START, pass(json!("{{ inputs.state }}")));
        start.merge_result = true;
        start.output.insert(item.to_owned(), json!("{{ inputs.item }}"));
        start.output.insert(index.to_owned(), json!("{{ inputs.index }}"));
        if let Some(first) = steps.first_mut() {
            first.depends_on = vec![START.to_owned()];
        }
        let dag = Dag {
            name: "each".into(),
            reducers: self.reducers.clone(),
            tasks: std::iter::once(start).chain(steps).collect(),
            output: Some(json!("{{ state }}")),
            ..Dag::default()
        };
        let names = ["state", "item", "index"];
        let inputs: Map<String, Value> =
            names.iter().map(|n| ((*n).to_owned(), json!(format!("{{{{ {n} }}}}")))).collect();
        task("each", Action::Workflow { workflow: Box::new(dag), inputs })
    }
}
