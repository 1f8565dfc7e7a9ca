//! Checks of a workflow before anything runs.
//!
//! All faults are listed, each with its task and part. Faults that only show at run time (the
//! inputs given, the shape of a result) are left to the errors of templates.

mod inputs;
mod names;
mod order;
mod task;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use belljar_contract::JsonValue;

use crate::bounds::{STATE_BYTES, unwritable};
use crate::dag::{Dag, Reducer, Task};
use crate::state::reducer_of;
use crate::template::near;
pub(crate) use inputs::check_inputs;
use names::{StateNames, VisibleNames};
use order::DependencyOrder;

/// All faults of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DagFaults(pub Vec<DagFault>);

impl DagFaults {
    /// A fault that is in no task.
    pub(crate) fn of_the_whole(part: &str, what: String) -> Self {
        Self(vec![DagFault { task: None, part: part.to_owned(), what, near: Vec::new() }])
    }
}

impl fmt::Display for DagFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

/// One fault of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DagFault {
    /// The path of the task, as in `outer/inner`; `None` when the fault is in the workflow itself.
    pub task: Option<String>,
    /// The part of the task: `depends_on`, `when`, `arguments.url`.
    pub part: String,
    /// The fault in words, for people.
    pub what: String,
    /// Similar names that exist, when a name is unknown.
    pub near: Vec<String>,
}

impl fmt::Display for DagFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.task {
            Some(task) => write!(f, "task {task}, {}: {}", self.part, self.what)?,
            None => write!(f, "{}: {}", self.part, self.what)?,
        }
        if self.near.is_empty() {
            return Ok(());
        }
        write!(f, " (did you mean {}?)", self.near.join(" or "))
    }
}

/// Looks a tool up by its name; when it is unknown, gives similar names.
pub type ToolLookup<'a> = &'a dyn Fn(&str) -> Result<(), Vec<String>>;

/// How deeply containers may be nested.
const DEPTH: usize = 16;
/// The most tasks a workflow may have, as written.
const TASKS: usize = 20_000;
/// The most tasks that may run in parallel.
const AT_ONCE: usize = 10_000;

/// Finds all faults of a workflow. Without `tools`, names of tools are not checked.
pub fn check(dag: &Dag, tools: Option<ToolLookup<'_>>) -> Result<(), DagFaults> {
    let mut checker = Checker { faults: Vec::new(), tools, seen: 0 };
    checker.workflow(dag, "", 0);
    if !checker.faults.is_empty() {
        return Err(DagFaults(checker.faults));
    }
    match unwritable(dag, STATE_BYTES) {
        Some(what) => Err(DagFaults::of_the_whole("workflow", what)),
        None => Ok(()),
    }
}

/// Collects faults while it walks a workflow.
struct Checker<'a> {
    faults: Vec<DagFault>,
    tools: Option<ToolLookup<'a>>,
    seen: usize,
}

impl Checker<'_> {
    fn fault(&mut self, task: &str, part: &str, what: impl Into<String>, near: Vec<String>) {
        let task = (!task.is_empty()).then(|| task.to_owned());
        self.faults.push(DagFault { task, part: part.to_owned(), what: what.into(), near });
    }

    fn workflow(&mut self, dag: &Dag, path: &str, depth: usize) {
        self.settings(dag, path);
        self.state(dag, path);
        let known = StateNames::of(dag);
        let sight = VisibleNames { known: &known, path, ..VisibleNames::default() };
        self.list(&dag.tasks, &sight, depth);
        let all: BTreeSet<&str> = dag.tasks.iter().map(|task| task.id.as_str()).collect();
        if let Some(output) = &dag.output {
            let sight = VisibleNames { results: Rc::new(all), ..sight };
            self.templates(output, &sight, "output");
        }
    }

    fn settings(&mut self, dag: &Dag, path: &str) {
        let settings = &dag.settings;
        if !(1..=AT_ONCE).contains(&settings.concurrency) {
            let what = format!("{} is not between 1 and {AT_ONCE}", settings.concurrency);
            self.fault(path, "settings.concurrency", what, Vec::new());
        }
        if settings.timeout_ms == Some(0) || settings.decision_timeout_ms == Some(0) {
            self.fault(path, "settings", "a timeout must be greater than 0", Vec::new());
        }
        let mut ids = Vec::new();
        collect_ids(&dag.tasks, &mut ids, 0);
        let decisions = &settings.decisions;
        for (part, listed) in [("before", &decisions.before), ("after", &decisions.after)] {
            for id in listed.iter().filter(|id| !ids.contains(id)) {
                let what = format!("there is no task {id}");
                self.fault(path, &format!("settings.decisions.{part}"), what, near(id, &ids));
            }
        }
    }

    fn state(&mut self, dag: &Dag, path: &str) {
        for (part, value) in &dag.state {
            let fits = match (reducer_of(&dag.reducers, part), value) {
                (Reducer::Last, _) | (_, JsonValue::Null) => true,
                (Reducer::Append | Reducer::Union, value) => value.is_array(),
                (Reducer::Merge, value) => value.is_object(),
                (Reducer::Sum, value) => value.is_number(),
            };
            if !fits {
                let what = "the initial value does not fit the reducer";
                self.fault(path, &format!("state.{part}"), what, Vec::new());
            }
        }
    }

    /// Checks tasks of one list.
    fn list(&mut self, tasks: &[Task], sight: &VisibleNames<'_>, depth: usize) {
        self.seen += tasks.len();
        if depth > DEPTH || self.seen > TASKS {
            let what =
                format!("nested more than {DEPTH} containers deep, or more than {TASKS} tasks");
            return self.fault(sight.path, "tasks", what, Vec::new());
        }
        let order = DependencyOrder::of(tasks);
        let mut ids = BTreeSet::new();
        for task in tasks {
            let path = join(sight.path, &task.id);
            if let Some(what) = bad_id(&task.id) {
                self.fault(&path, "id", what, Vec::new());
            }
            if !ids.insert(task.id.as_str()) {
                self.fault(&path, "id", "another task has this id", Vec::new());
            }
            self.dependencies(task, &path, &order);
        }
        if let Some(cycle) = order.cycle() {
            let what = format!("dependency cycle: {}", cycle.join(" → "));
            let first = cycle.first().copied().unwrap_or_default();
            self.fault(&join(sight.path, first), "depends_on", what, Vec::new());
        }
        let siblings = Rc::new(sight.siblings.iter().copied().chain(ids).collect());
        for task in tasks {
            let path = join(sight.path, &task.id);
            let sight = VisibleNames {
                path: &path,
                results: Rc::clone(&sight.results),
                siblings: Rc::clone(&siblings),
                order: Some((&order, &task.id)),
                ..*sight
            };
            self.task(task, &sight, depth);
        }
    }

    fn dependencies(&mut self, task: &Task, path: &str, order: &DependencyOrder<'_>) {
        for dep in &task.depends_on {
            if dep == &task.id {
                self.fault(path, "depends_on", "the task depends on itself", Vec::new());
            } else if !order.has(dep) {
                let near = near(dep, &order.names());
                self.fault(path, "depends_on", format!("there is no task {dep}"), near);
            }
        }
    }
}

/// The fault of an id.
fn bad_id(id: &str) -> Option<String> {
    let reserved = || "`end` is reserved: a jump to it ends a loop".to_owned();
    let fault = bad_task_id(id).map(|why| format!("the id {why}"));
    fault.or_else(|| (id == "end").then(reserved))
}

/// Why a text cannot be the id of a task: some characters are reserved for the paths of instances.
pub fn bad_task_id(id: &str) -> Option<&'static str> {
    if id.is_empty() {
        return Some("is empty");
    }
    if id.len() > 128 {
        return Some("is longer than 128 bytes");
    }
    let taken = |letter: char| letter.is_control() || "/[]#~{}".contains(letter);
    let is_odd = id.contains(taken) || id.trim() != id;
    is_odd.then_some("contains one of / [ ] # ~ { } or begins or ends with a space")
}

fn join(path: &str, id: &str) -> String {
    if path.is_empty() { id.to_owned() } else { format!("{path}/{id}") }
}

/// The ids that a workflow's decisions may name: those of its own tasks and of tasks in its loops.
fn collect_ids(tasks: &[Task], ids: &mut Vec<String>, depth: usize) {
    for task in tasks {
        ids.push(task.id.clone());
        if let crate::dag::Action::Loop(rounds) = &task.action
            && depth < DEPTH
        {
            collect_ids(&rounds.body, ids, depth + 1);
        }
    }
}
