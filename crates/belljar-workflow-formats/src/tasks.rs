//! DAG files: `tasks` with dependencies, as Belljar writes them and as other tools do.

mod kinds;
mod order;

pub(super) use kinds::is_tool_name;

use std::collections::BTreeMap;

use belljar_contract::{JsonMap, JsonValue};

use super::expression::NameMap;
use super::fault::{Diagnostics, near, shortened};
use super::fields::{FieldReader, expected, milliseconds, number, text};
use super::tree::{FileNode, FileTree, Position};
use super::{FormatOptions, code};
use belljar_workflow::{
    Action, Backoff, Compensation, Dag, DagSettings, Decider, DecisionPoints, OnError, Reducer,
    Retry, Task,
};
use belljar_workflow::{bad_task_id, names_in_expression};

/// The most tasks in a file, nested ones included.
pub(super) const MAX_TASKS: usize = 10_000;

/// The spellings of a task's id.
const IDS: [&str; 3] = ["id", "taskId", "task_id"];

/// Fields that have no meaning for the machine.
const HARMLESS: [&str; 9] =
    ["name", "title", "description", "metadata", "version", "label", "tags", "comment", "$schema"];

/// Reads a DAG from a mapping with `tasks`, or from a bare list of tasks.
pub(super) fn read(
    root: &FileNode,
    options: &FormatOptions,
    notes: &mut Diagnostics<'_>,
) -> Option<Dag> {
    TaskReader::new(options, notes, Neighbours::None).any(root)
}

/// Reads tasks to add to a workflow: they may depend on existing tasks.
pub(super) fn read_more(
    root: &FileNode,
    options: &FormatOptions,
    notes: &mut Diagnostics<'_>,
) -> Option<Dag> {
    TaskReader::new(options, notes, Neighbours::Unknown).any(root)
}

/// Whether tasks may depend on tasks that are not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbours {
    None,
    Unknown,
}

/// Reads tasks and notes their faults.
struct TaskReader<'r, 'f> {
    options: &'r FormatOptions,
    notes: &'r mut Diagnostics<'f>,
    tasks: usize,
    /// The tasks that templates can refer to.
    names: NameMap,
    /// Applies to the list that is read next; lists inside its tasks have no unknown neighbours.
    neighbours: Neighbours,
}

impl<'r, 'f> TaskReader<'r, 'f> {
    fn new(
        options: &'r FormatOptions,
        notes: &'r mut Diagnostics<'f>,
        neighbours: Neighbours,
    ) -> Self {
        Self { options, notes, tasks: 0, names: NameMap::default(), neighbours }
    }
}

impl TaskReader<'_, '_> {
    fn any(&mut self, root: &FileNode) -> Option<Dag> {
        match &root.tree {
            FileTree::List(items) => Some(Dag { tasks: self.tasks(items), ..Dag::default() }),
            FileTree::Null
            | FileTree::Bool(_)
            | FileTree::Number(_)
            | FileTree::Text(_)
            | FileTree::Map(_) => self.dag(root),
        }
    }

    fn dag(&mut self, node: &FileNode) -> Option<Dag> {
        let mut fields = FieldReader::of(node, "a workflow", self.notes)?;
        code::self_enabled(&mut fields, self.notes);
        let name = fields.text(&["name", "id"], self.notes).unwrap_or_default();
        let description = fields.text(&["description", "intent", "goal"], self.notes);
        let inputs = fields.object(&["inputs"], self.notes).unwrap_or_default();
        let state = fields.object(&["state"], self.notes).unwrap_or_default();
        let reducers = fields.take(&["reducers"], self.notes);
        let reducers = reducers.map(|node| reducers_of(node, self.notes)).unwrap_or_default();
        let settings = fields.take(&["settings"], self.notes);
        let settings = settings.and_then(|node| self.settings(node)).unwrap_or_default();
        let items = fields.list(&["tasks"], self.notes).unwrap_or_default();
        let outer = std::mem::take(&mut self.names);
        self.names = NameMap::default().with_tasks(ids(items));
        let output = fields.take(&["output"], self.notes);
        let output = output.map(|node| self.values(node.json(), node.at));
        let arrows = fields.list(&["dependencies", "edges"], self.notes).unwrap_or_default();
        let arrows = arrows.iter().filter_map(|node| order::arrow(node, self.notes)).collect();
        let tasks = self.beside(items, arrows);
        self.names = outer;
        self.check_decisions(&settings.decisions, &tasks, node.at);
        fields.ignore(&["metadata", "version", "$schema", "created_at", "createdAt"]);
        fields.done(self.notes);
        Some(Dag { name, description, inputs, reducers, state, settings, tasks, output })
    }

    /// Reads a list of tasks with unique ids and dependencies among them.
    fn tasks(&mut self, items: &[FileNode]) -> Vec<Task> {
        self.beside(items, Vec::new())
    }

    fn beside(&mut self, items: &[FileNode], arrows: Vec<order::Arrow>) -> Vec<Task> {
        self.tasks += items.len();
        if self.tasks > MAX_TASKS {
            let at = items.first().map_or(Position::TOP, |item| item.at);
            self.notes.fault(at, format!("more than {MAX_TASKS} tasks"), "use `foreach`");
            return Vec::new();
        }
        let neighbours = std::mem::replace(&mut self.neighbours, Neighbours::None);
        let outer = self.names.clone();
        let mut known = ids(items);
        if neighbours == Neighbours::Unknown {
            known.extend(items.iter().flat_map(order::named));
        }
        self.names = outer.clone().with_tasks(known);
        let mut tasks = Vec::with_capacity(items.len());
        let mut places = Vec::with_capacity(items.len());
        for item in items {
            if let Some(task) = self.task(item, None) {
                tasks.push(task);
                places.push(item);
            }
        }
        self.names = outer;
        order::join(&mut tasks, arrows, self.notes);
        order::check(&tasks, &places, neighbours, self.notes);
        tasks
    }

    /// Reads one task; `unnamed` is its id when it has none.
    fn task(&mut self, node: &FileNode, unnamed: Option<&str>) -> Option<Task> {
        let mut fields = FieldReader::of(node, "a task", self.notes)?;
        let id = match (fields.text(&IDS, self.notes), unnamed) {
            (Some(id), _) => id,
            (None, Some(id)) => id.to_owned(),
            (None, None) => {
                self.notes.fault(node.at, "a task has no `id`", "add one");
                // Its other faults are reported as well.
                self.named(String::new(), node, fields);
                return None;
            }
        };
        if let Err(why) = fit_for_id(&id) {
            self.notes.fault(
                node.at,
                format!("`{}` is not a valid id: it {why}", shortened(&id)),
                "",
            );
        }
        let (options, count, names) = (self.options, self.tasks, self.names.clone());
        let (task, count) = self.notes.about(&id, |notes| {
            let mut inner = TaskReader {
                tasks: count,
                names,
                ..TaskReader::new(options, notes, Neighbours::None)
            };
            let task = inner.named(id.clone(), node, fields);
            (task, inner.tasks)
        });
        self.tasks = count;
        task
    }

    fn named(&mut self, id: String, node: &FileNode, mut fields: FieldReader<'_>) -> Option<Task> {
        let depends_on = fields.texts(&order::DEPENDS_ON, self.notes);
        let when = fields.take(&["when", "if"], self.notes).and_then(|n| condition(n, self.notes));
        let timeout_ms = self.timeout(&mut fields);
        let retry = fields.take(&["retry"], self.notes).and_then(|n| retry(n, self.notes));
        let on_error = fields.take(&["on_error", "onError"], self.notes);
        let on_error = on_error.and_then(|n| self.on_error(n)).unwrap_or_default();
        let idempotent = fields.flag(&["idempotent"], self.notes);
        let compensate = fields.take(&["compensate"], self.notes);
        let compensate = compensate.and_then(|n| self.compensation(n));
        let output = fields.object(&["output"], self.notes).unwrap_or_default();
        let output = self.map(output, node.at);
        let speculate = fields.flag(&["speculate"], self.notes).unwrap_or(false);
        let merge_result = fields.flag(&["merge_result"], self.notes).unwrap_or(false);
        let result_key = fields.text(&["result_key"], self.notes);
        let action = self.action(node, &mut fields);
        fields.ignore(&HARMLESS);
        fields.tolerate(
            &["side_effects", "sideEffects", "risk", "layer", "status"],
            "policy decides what a task may do",
            self.notes,
        );
        fields.done(self.notes);
        Some(Task {
            id,
            // Its own fault is reported already; tasks that depend on it are not at fault.
            action: action.unwrap_or(Action::Pass { value: JsonValue::Null }),
            depends_on: depends_on.into_iter().map(|(name, _)| name).collect(),
            when,
            timeout_ms,
            retry,
            on_error,
            idempotent,
            compensate,
            output,
            merge_result,
            result_key,
            speculate,
        })
    }

    /// Translates the templates and references of a value.
    fn values(&mut self, value: JsonValue, at: Position) -> JsonValue {
        let value = self.names.value(value);
        if let Some(text) = NameMap::left_as_text(&value) {
            let message =
                format!("`{}` is passed as plain text: no task has that name", shortened(&text));
            self.notes.warn(at, message, "write `{{ results.task }}` for the result of a task");
        }
        value
    }

    /// Translates the templates and references of a mapping.
    fn map(&mut self, map: JsonMap, at: Position) -> JsonMap {
        map.into_iter().map(|(key, value)| (key, self.values(value, at))).collect()
    }

    fn timeout(&mut self, fields: &mut FieldReader<'_>) -> Option<u64> {
        let exact = fields.number(&["timeout_ms", "timeoutMs"], 1..=u64::MAX, self.notes);
        let loose = fields.take(&["timeout"], self.notes);
        exact.or_else(|| loose.and_then(|node| duration(node, self.notes)))
    }

    fn on_error(&mut self, node: &FileNode) -> Option<OnError> {
        match &node.tree {
            FileTree::Text(word) if word == "fail" => Some(OnError::Fail),
            FileTree::Text(word) if word == "continue" => Some(OnError::Continue),
            FileTree::Map(_) => {
                let mut fields = FieldReader::of(node, "`on_error`", self.notes)?;
                let other = fields.take(&["fallback"], self.notes);
                fields.done(self.notes);
                let Some(other) = other else {
                    expected(node, "`fallback` with a task", self.notes);
                    return None;
                };
                self.task(other, Some("fallback")).map(|task| OnError::Fallback(Box::new(task)))
            }
            FileTree::Text(_)
            | FileTree::Null
            | FileTree::Bool(_)
            | FileTree::Number(_)
            | FileTree::List(_) => {
                expected(node, "`fail`, `continue` or `fallback: {task}`", self.notes);
                None
            }
        }
    }

    fn compensation(&mut self, node: &FileNode) -> Option<Compensation> {
        let inner = node.get("tool").filter(|tool| matches!(tool.tree, FileTree::Map(_)));
        let inner =
            inner.or_else(|| node.get("code").filter(|c| matches!(c.tree, FileTree::Map(_))));
        let node = inner.unwrap_or(node);
        let mut fields = FieldReader::of(node, "`compensate`", self.notes)?;
        let compensation = if fields.has("code") {
            Compensation::Code(Box::new(self.code(node.at, &mut fields)?))
        } else {
            Compensation::Tool(self.tool(node.at, &mut fields)?)
        };
        fields.ignore(&["type"]);
        fields.done(self.notes);
        Some(compensation)
    }

    fn settings(&mut self, node: &FileNode) -> Option<DagSettings> {
        let mut fields = FieldReader::of(node, "`settings`", self.notes)?;
        let usual = DagSettings::default();
        let concurrency = fields.number(
            &["concurrency", "max_concurrency", "maxConcurrency"],
            1..=10_000,
            self.notes,
        );
        let max_replans = fields.number(&["max_replans"], 0..=1_000, self.notes);
        let timeout_ms = self.timeout(&mut fields);
        let decisions = fields.take(&["decisions"], self.notes);
        let decisions = decisions.and_then(|n| decide(n, self.notes)).unwrap_or_default();
        let wait = fields.number(&["decision_timeout_ms"], 1..=u64::MAX, self.notes);
        let by = fields.take(&["decided_by"], self.notes).and_then(|n| asked(n, self.notes));
        let files = fields.flag(&["files"], self.notes).unwrap_or(false);
        let lenient = fields.flag(&["lenient"], self.notes).unwrap_or(false);
        let constants = fields.texts(&["constants"], self.notes);
        code::self_enabled(&mut fields, self.notes);
        fields.done(self.notes);
        Some(DagSettings {
            concurrency: concurrency.and_then(|n| n.try_into().ok()).unwrap_or(usual.concurrency),
            max_replans: max_replans.and_then(|n| n.try_into().ok()).unwrap_or(usual.max_replans),
            timeout_ms,
            decisions,
            decision_timeout_ms: wait,
            decided_by: by.unwrap_or(usual.decided_by),
            files,
            lenient,
            constants: constants.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// Checks that the tasks named by decisions exist.
    fn check_decisions(&mut self, decide: &DecisionPoints, tasks: &[Task], at: Position) {
        for name in decide.before.iter().chain(&decide.after) {
            if !tasks.iter().any(|task| task.id == *name) {
                let help = near(name, tasks.iter().map(|task| task.id.as_str()));
                self.notes.fault(
                    at,
                    format!("`decisions` names `{name}`, which is not a task"),
                    help,
                );
            }
        }
    }
}

/// The ids of tasks, as far as they can be read.
fn ids(items: &[FileNode]) -> Vec<String> {
    let id = |item: &FileNode| match &IDS.iter().find_map(|key| item.get(key))?.tree {
        FileTree::Text(id) => Some(id.clone()),
        FileTree::Null
        | FileTree::Bool(_)
        | FileTree::Number(_)
        | FileTree::List(_)
        | FileTree::Map(_) => None,
    };
    items.iter().filter_map(id).collect()
}

/// Why a text cannot be an id in a file: templates of the files quote ids.
pub(super) fn fit_for_id(id: &str) -> Result<(), &'static str> {
    let quote = id.contains(['"', '\'', '\\']);
    bad_task_id(id).or(quote.then_some("contains one of \" ' \\")).map_or(Ok(()), Err)
}

/// Reads a condition: an expression, true or false.
pub(super) fn condition(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<String> {
    match &node.tree {
        FileTree::Bool(value) => Some(value.to_string()),
        FileTree::Text(text) => {
            let expression = NameMap::default().expression(text);
            if let Err(error) = names_in_expression(&expression) {
                notes.fault(node.at, error.to_string(), "");
            }
            Some(expression)
        }
        FileTree::Null | FileTree::Number(_) | FileTree::List(_) | FileTree::Map(_) => {
            expected(node, "an expression", notes);
            None
        }
    }
}

/// Reads a duration: a number of milliseconds, or `500ms`, `30s`, `5m`, `2h`.
fn duration(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<u64> {
    match &node.tree {
        FileTree::Number(_) => {
            notes.warn(node.at, "a time without a unit is read as milliseconds", "write `30s`");
            number(node, 1..=u64::MAX, notes)
        }
        FileTree::Text(text) if let Some(time) = milliseconds(text) => Some(time),
        FileTree::Null
        | FileTree::Bool(_)
        | FileTree::Text(_)
        | FileTree::List(_)
        | FileTree::Map(_) => {
            expected(node, "a time such as `500ms`, `30s`, `5m`", notes);
            None
        }
    }
}

/// Reads `retry`: attempts and delays; a number alone is the number of attempts.
pub(super) fn retry(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<Retry> {
    let attempts = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    if matches!(node.tree, FileTree::Number(_)) {
        let count = number(node, 1..=100, notes)?;
        return Some(Retry { attempts: attempts(count), ..Retry::default() });
    }
    let mut fields = FieldReader::of(node, "`retry`", notes)?;
    let usual = Retry::default();
    let total = fields.number(&["attempts", "max_attempts", "maxAttempts"], 1..=100, notes);
    let more = fields.number(&["max_retries", "maxRetries"], 0..=99, notes).map(|n| n + 1);
    let backoff = fields.take(&["backoff"], notes).and_then(|n| backoff(n, notes));
    let even = fields.flag(&["even_if_not_idempotent"], notes).unwrap_or(false);
    fields.done(notes);
    Some(Retry {
        attempts: total.or(more).map_or(usual.attempts, attempts),
        backoff: backoff.unwrap_or_default(),
        even_if_not_idempotent: even,
    })
}

fn backoff(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<Backoff> {
    let mut fields = FieldReader::of(node, "`backoff`", notes)?;
    let usual = Backoff::default();
    let first = fields.number(&["first_ms"], 0..=u64::MAX, notes);
    let max = fields.number(&["max_ms"], 0..=u64::MAX, notes);
    let factor = fields.take(&["factor"], notes).and_then(|node| {
        let factor = node.json().as_f64().filter(|factor| (1.0..=100.0).contains(factor));
        if factor.is_none() {
            expected(node, "a number from 1 to 100", notes);
        }
        factor
    });
    fields.done(notes);
    Some(Backoff {
        first_ms: first.unwrap_or(usual.first_ms),
        factor: factor.unwrap_or(usual.factor),
        max_ms: max.unwrap_or(usual.max_ms),
    })
}

fn decide(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<DecisionPoints> {
    let mut fields = FieldReader::of(node, "`decisions`", notes)?;
    let names = |list: Vec<(String, Position)>| list.into_iter().map(|(name, _)| name).collect();
    let decide = DecisionPoints {
        per_task: fields.flag(&["per_task"], notes).unwrap_or(false),
        on_error: fields.flag(&["on_error"], notes).unwrap_or(false),
        before: names(fields.texts(&["before"], notes)),
        after: names(fields.texts(&["after"], notes)),
    };
    fields.done(notes);
    Some(decide)
}

fn asked(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<Decider> {
    match text(node, notes)?.as_str() {
        "human" => Some(Decider::Human),
        "agent" => Some(Decider::Agent),
        _ => {
            expected(node, "`human` or `agent`", notes);
            None
        }
    }
}

/// Reads `reducers`: for each part of the state, how values are combined.
pub(super) fn reducers_of(
    node: &FileNode,
    notes: &mut Diagnostics<'_>,
) -> BTreeMap<String, Reducer> {
    let FileTree::Map(entries) = &node.tree else {
        expected(node, "a mapping", notes);
        return BTreeMap::new();
    };
    let known = |entry: &super::tree::TreeEntry, notes: &mut Diagnostics<'_>| {
        Some((entry.key.clone(), reducer(&entry.value, notes)?))
    };
    entries.iter().filter_map(|entry| known(entry, notes)).collect()
}

/// Reads one reducer by its name.
pub(super) fn reducer(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<Reducer> {
    match text(node, notes)?.as_str() {
        "last" | "replace" | "overwrite" => Some(Reducer::Last),
        "append" | "extend" => Some(Reducer::Append),
        "merge" => Some(Reducer::Merge),
        "sum" | "add" => Some(Reducer::Sum),
        "union" | "set_union" => Some(Reducer::Union),
        other => {
            let help = near(other, ["last", "append", "merge", "sum", "union"]);
            notes.fault(node.at, format!("unknown reducer `{}`", shortened(other)), help);
            None
        }
    }
}
