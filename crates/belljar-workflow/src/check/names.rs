//! The names that the templates of a task may use, as far as they are known before it runs.

use std::collections::BTreeSet;
use std::rc::Rc;

use belljar_contract::JsonValue;

use super::Checker;
use super::order::DependencyOrder;
use crate::dag::{Action, CONTEXT, Dag, OnError, Task};
use crate::template::{
    is_function, is_template_method, names_in_expression, names_in_template, near,
};

/// The parts of a workflow's state that something sets.
#[derive(Default)]
pub(super) struct StateNames {
    state: BTreeSet<String>,
    /// Some result is put into the state as it is: it may set any part.
    open: bool,
}

impl StateNames {
    pub(super) fn of(dag: &Dag) -> Self {
        let mut state: BTreeSet<String> = dag.state.keys().cloned().collect();
        state.extend(dag.reducers.keys().cloned());
        let mut open = false;
        let mut tasks: Vec<&Task> = dag.tasks.iter().collect();
        while let Some(task) = tasks.pop() {
            state.extend(task.output.keys().cloned());
            open |= task.merge_result;
            match &task.action {
                Action::Foreach(foreach) => tasks.push(&foreach.each),
                Action::Loop(rounds) => tasks.extend(&rounds.body),
                // Its `state` is merged into that part.
                Action::CodeExecution(_) | Action::Sandbox(_) => {
                    state.insert(CONTEXT.to_owned());
                }
                Action::McpTool(_)
                | Action::Approval { .. }
                | Action::Workflow { .. }
                | Action::Wait(_)
                | Action::Pass { .. } => {}
            }
            if let OnError::Fallback(fallback) = &task.on_error {
                tasks.push(fallback);
            }
        }
        Self { state, open }
    }

    /// Whether something may set a part of the state.
    fn sets(&self, part: &str) -> bool {
        self.open || self.state.contains(part)
    }
}

/// The names that are visible to the templates of one task.
#[derive(Clone)]
pub(super) struct VisibleNames<'a> {
    pub(super) known: &'a StateNames,
    pub(super) path: &'a str,
    /// Tasks that have ended by then, apart from those before this one in its own list.
    pub(super) results: Rc<BTreeSet<&'a str>>,
    /// The list that the task is in, and its id.
    pub(super) order: Option<(&'a DependencyOrder<'a>, &'a str)>,
    /// The ids of all tasks in the list and around it.
    pub(super) siblings: Rc<BTreeSet<&'a str>>,
    /// Further names: `item`, `index`, `loop`, `error`, `result`, `args`.
    pub(super) more: &'a [&'a str],
    pub(super) item: bool,
    pub(super) round: bool,
    pub(super) error: bool,
}

impl Default for VisibleNames<'_> {
    fn default() -> Self {
        const NONE: &StateNames = &StateNames { state: BTreeSet::new(), open: false };
        Self {
            known: NONE,
            path: "",
            results: Rc::default(),
            order: None,
            siblings: Rc::default(),
            more: &[],
            item: false,
            round: false,
            error: false,
        }
    }
}

impl<'a> VisibleNames<'a> {
    /// Whether a task has ended by then.
    fn sees(&self, id: &str) -> bool {
        let before = self.order.is_some_and(|(order, own)| order.comes_before(id, own));
        before || self.results.contains(id)
    }

    /// All tasks that have ended by then, for the tasks inside this one.
    pub(super) fn all(&self) -> Rc<BTreeSet<&'a str>> {
        let Some((order, own)) = self.order else { return Rc::clone(&self.results) };
        Rc::new(self.results.iter().copied().chain(order.before(own)).collect())
    }

    fn deps(&self) -> BTreeSet<&'a str> {
        self.order.map(|(order, own)| order.direct(own)).unwrap_or_default()
    }

    fn roots(&self) -> Vec<String> {
        let mut roots = vec!["state", "inputs", "results", "tasks", "deps"];
        roots.extend(self.item.then_some(["item", "index"]).into_iter().flatten());
        roots.extend(self.round.then_some("loop"));
        roots.extend(self.error.then_some("error"));
        roots.extend(self.more);
        roots.into_iter().map(str::to_owned).collect()
    }
}

impl Checker<'_> {
    /// Checks every template in a value.
    pub(super) fn templates(&mut self, value: &JsonValue, sight: &VisibleNames<'_>, part: &str) {
        match value {
            JsonValue::String(text) => self.text(text, sight, part),
            JsonValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.templates(item, sight, &format!("{part}[{index}]"));
                }
            }
            JsonValue::Object(map) => {
                for (key, value) in map {
                    self.templates(value, sight, &format!("{part}.{key}"));
                }
            }
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => {}
        }
    }

    pub(super) fn text(&mut self, text: &str, sight: &VisibleNames<'_>, part: &str) {
        match names_in_template(text) {
            Ok(paths) => self.names(&paths, text, sight, part),
            Err(error) => self.fault(sight.path, part, error.to_string(), Vec::new()),
        }
    }

    pub(super) fn condition(&mut self, text: &str, sight: &VisibleNames<'_>, part: &str) {
        match names_in_expression(text) {
            Ok(paths) => self.names(&paths, text, sight, part),
            Err(error) => self.fault(sight.path, part, error.to_string(), Vec::new()),
        }
    }

    fn names(
        &mut self,
        paths: &BTreeSet<String>,
        text: &str,
        sight: &VisibleNames<'_>,
        part: &str,
    ) {
        // A template that uses `default` or `defined` expects that a value may be missing.
        let careful = text.contains("default") || text.contains("defined");
        for path in paths {
            let mut steps = path.split('.');
            let (root, key) = (steps.next().unwrap_or_default(), steps.next());
            let roots = sight.roots();
            if !roots.iter().any(|known| known == root) {
                if !is_function(root) && !careful {
                    let near = near(root, &roots);
                    self.fault(sight.path, part, format!("unknown name {root}"), near);
                }
                continue;
            }
            let Some(key) = key else { continue };
            match root {
                "results" | "tasks" => self.result(root, key, sight, part),
                "deps" if !sight.deps().contains(key) && !is_template_method(key) => {
                    let what = format!("deps.{key}: the task does not depend on {key}");
                    self.fault(sight.path, part, what, nearest("deps", key, &sight.deps()));
                }
                "state" if !careful && !sight.known.sets(key) && !is_template_method(key) => {
                    let keys = sight.known.state.iter().map(String::as_str).collect();
                    let what = format!("unknown name state.{key}: nothing sets it");
                    self.fault(sight.path, part, what, nearest("state", key, &keys));
                }
                _ => {}
            }
        }
    }

    fn result(&mut self, root: &str, key: &str, sight: &VisibleNames<'_>, part: &str) {
        if sight.sees(key) || is_template_method(key) {
            return;
        }
        if sight.siblings.contains(key) {
            let what =
                format!("{root}.{key}: add {key} to `depends_on`; it may not have ended by then");
            return self.fault(sight.path, part, what, Vec::new());
        }
        let near = nearest(root, key, &sight.siblings);
        self.fault(sight.path, part, format!("unknown name {root}.{key}"), near);
    }
}

fn nearest(root: &str, key: &str, names: &BTreeSet<&str>) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    near(key, &names).into_iter().map(|name| format!("{root}.{name}")).collect()
}
