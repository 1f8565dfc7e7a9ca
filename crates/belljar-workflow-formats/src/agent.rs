//! YAML agents: nodes over one state, in the order written unless `goto` or `edges` say otherwise.
//!
//! Each node becomes a task. A choice between nodes becomes a `pass` task that records the route
//! taken, so that a later change of the state cannot take both routes. Nodes that lead back to each
//! other become one loop; each of its rounds runs one node ([`region`]).
//!
//! Differences from the frameworks such agents were written for:
//! - Inputs go into the state (`__start__`); the result is the state.
//! - Parallel branches share the state. In `parallel_results`, each branch has the state that it
//!   would have alone ([`branches`]). A `dynamic_parallel` has a state for each item ([`repeat`]).
//! - Changes that Python code makes to `state` count, except removed keys; names that code without
//!   `return` leaves behind do not.
//! - When no rule of a `goto` holds, the next node follows. In a file with `edges` that are not
//!   parallel no node follows by its place: a node without an edge ends its branch.
//! - `while_loop` ends without an error after `max_iterations`; a loop made by `goto` fails after
//!   1,000 nodes.
//! - Actions that are not `code.*` are MCP tools. Secrets, other files and agents are refused.

mod action;
mod branches;
mod code_node;
mod graph;
mod region;
mod repeat;
mod routes;
mod step;

use belljar_contract::{JsonValue, exact_json};

use super::expression::{NameMap, uses};
use super::fault::{Diagnostics, near, shortened};
use super::fields::{FieldReader, expected};
use super::tasks::reducer;
use super::tree::{FileNode, FileTree, Position};
use super::{FormatOptions, code};
use action::CodeSettings;
use belljar_workflow::{Action, Dag, DagSettings, Decider, Reducer, Task};
use belljar_workflow::{check_fits, reducer_of};
use routes::{InterruptPoint, Spot};
use step::Steps;

/// The task that puts the inputs of an agent into its state.
const START: &str = "__start__";

/// The first of several steps, when some of them may be skipped.
const BEGIN: &str = "__begin__";

/// The target that ends an agent.
const END: &str = "__end__";

/// The most parts of a state with a reducer: each branch of a `dynamic_parallel` has them all.
const MAX_REDUCERS: usize = 200;

/// Sections of other agent frameworks that have no meaning here.
const FOREIGN: [&str; 22] = [
    "secrets",
    "observability",
    "memory",
    "ltm",
    "llm",
    "models",
    "cache",
    "checkpoint",
    "checkpointer",
    "opik",
    "logging",
    "rate_limiters",
    "firebase",
    "data",
    "session",
    "tracing",
    "test",
    "tests",
    "requirements",
    "validation_constraints",
    "extraction_schema",
    "endpoint",
];

/// Reads an agent file into a workflow.
pub(super) fn read(
    root: &FileNode,
    options: &FormatOptions,
    notes: &mut Diagnostics<'_>,
) -> Option<Dag> {
    let mut fields = FieldReader::of(root, "an agent", notes)?;
    code::self_enabled(&mut fields, notes);
    let mut dag = Dag {
        name: fields.text(&["name"], notes).unwrap_or_default(),
        description: fields.text(&["description"], notes),
        output: Some(exact_json!("{{ state }}")),
        ..Dag::default()
    };
    if let Some(node) = fields.take(&["state_schema"], notes) {
        state_schema(node, &mut dag, notes);
    }
    dag.state.extend(fields.object(&["initial_state", "state"], notes).unwrap_or_default());
    for (part, value) in &dag.state {
        if check_fits(&dag.state, reducer_of(&dag.reducers, part), part, value).is_err() {
            dag.reducers.entry(part.clone()).or_insert(Reducer::Last);
        }
    }
    let variables = fields.object(&["variables"], notes);
    let mut names = NameMap::default();
    if let Some(variables) = variables {
        dag.state.insert("variables".into(), JsonValue::Object(variables));
        names = names.with("variables", "state.variables");
    }
    let settings = fields.take(&["settings"], notes);
    let shown = settings.filter(|_| mentions(root, "settings"));
    if let Some(values) = shown.filter(|node| !from_environment(node)) {
        dag.state.insert("settings".into(), values.json());
        names = names.with("settings", "state.settings");
    }
    let code = settings.and_then(|node| code_settings(node, shown.is_some(), notes));
    let code = code.unwrap_or_default();
    let config = fields.take(&["config"], notes);
    let nodes = fields.list(&["nodes"], notes).unwrap_or_default();
    let edges = fields.list(&["edges"], notes).unwrap_or_default();
    fields.refuse(
        &["imports", "extends", "include"],
        "other files are not read: copy the parts you need into this file, or call them as MCP tools",
        notes,
    );
    fields.ignore(&["version", "metadata", "author", "tags", "$schema", "license", "id"]);
    fields.tolerate(&FOREIGN, "it belongs to another framework", notes);
    fields.done(notes);

    if dag.reducers.len() > MAX_REDUCERS {
        notes.fault(root.at, format!("more than {MAX_REDUCERS} reducers"), "declare fewer");
        return None;
    }
    let constants = constants(&names);
    let mut steps = Steps { options, notes, code: &code, names, reducers: &dag.reducers };
    let spots = steps.nodes(nodes, root.at);
    let spots = routes::find_routes(spots, edges, &mut steps);
    if let Some(config) = config {
        dag.settings = settings_of(config, &spots, notes).unwrap_or_default();
    }
    interrupts(&spots, &mut dag.settings);
    dag.settings.lenient = true;
    dag.settings.constants = constants;
    dag.tasks = graph::tasks(spots, notes);
    Some(dag)
}

/// Applies the interruptions that nodes ask for themselves.
fn interrupts(spots: &[Spot], settings: &mut DagSettings) {
    for spot in spots {
        let decisions = &mut settings.decisions;
        let list = match spot.interrupt {
            Some(InterruptPoint::Before) => &mut decisions.before,
            Some(InterruptPoint::After) => &mut decisions.after,
            None => continue,
        };
        if !list.contains(&spot.task.id) {
            list.push(spot.task.id.clone());
        }
        settings.decided_by = Decider::Human;
    }
}

/// The parts of the state that the file itself sets, and that templates read by their own names.
fn constants(names: &NameMap) -> Vec<String> {
    let known = ["settings", "variables"].into_iter().filter(|name| names.has(name));
    known.map(str::to_owned).collect()
}

fn start() -> Task {
    Task { merge_result: true, ..task(START, pass(exact_json!("{{ inputs }}"))) }
}

fn task(id: &str, action: Action) -> Task {
    Task::new(id, action)
}

/// The id of a node's task: `end` is reserved in loops.
fn task_name(node: &str) -> &str {
    if node == "end" { "end_" } else { node }
}

fn pass(value: JsonValue) -> Action {
    Action::Pass { value }
}

/// `state_schema`: a type for each key, or a mapping with `type`, `default` and `reducer`.
fn state_schema(node: &FileNode, dag: &mut Dag, notes: &mut Diagnostics<'_>) {
    let FileTree::Map(entries) = &node.tree else {
        expected(node, "a mapping of names to types", notes);
        return;
    };
    for entry in entries {
        // A declared part is replaced, whatever its name, unless it declares another reducer.
        if reducer_of(&dag.reducers, &entry.key) != Reducer::Last {
            dag.reducers.insert(entry.key.clone(), Reducer::Last);
        }
        match &entry.value.tree {
            FileTree::Map(_) => {
                if let Some(default) = entry.value.get("default") {
                    dag.state.insert(entry.key.clone(), default.json());
                }
                if let Some(node) = entry.value.get("reducer") {
                    dag.reducers.extend(reducer(node, notes).map(|how| (entry.key.clone(), how)));
                }
            }
            FileTree::Null | FileTree::Text(_) | FileTree::List(_) => {}
            FileTree::Bool(_) | FileTree::Number(_) => {
                expected(&entry.value, "the name of a type", notes);
            }
        }
    }
}

/// Whether a template in the file uses a name at its root.
fn mentions(node: &FileNode, name: &str) -> bool {
    match &node.tree {
        FileTree::Text(text) => uses(text, name),
        FileTree::List(items) => items.iter().any(|item| mentions(item, name)),
        FileTree::Map(entries) => entries.iter().any(|entry| mentions(&entry.value, name)),
        FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) => false,
    }
}

/// Whether a value refers to the environment, which no file may see.
fn from_environment(node: &FileNode) -> bool {
    match &node.tree {
        FileTree::Text(text) => text.contains("${"),
        FileTree::List(items) => items.iter().any(from_environment),
        FileTree::Map(entries) => entries.iter().any(|entry| from_environment(&entry.value)),
        FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) => false,
    }
}

/// Reads `settings`: only `code` has a meaning here, unless templates read the others.
fn code_settings(
    node: &FileNode,
    is_read: bool,
    notes: &mut Diagnostics<'_>,
) -> Option<CodeSettings> {
    let FileTree::Map(entries) = &node.tree else {
        expected(node, "`settings`: a mapping", notes);
        return None;
    };
    let mut settings = None;
    for entry in entries {
        if entry.key == "code" {
            settings = CodeSettings::read(&entry.value, notes);
        } else if !is_read {
            let why = "only `settings.code` has an effect";
            notes.warn(entry.at, format!("`{}` has no effect", shortened(&entry.key)), why);
        }
    }
    settings
}

/// Reads `config`: where to stop for a decision, and how many tasks run in parallel.
fn settings_of(
    node: &FileNode,
    spots: &[Spot],
    notes: &mut Diagnostics<'_>,
) -> Option<DagSettings> {
    let mut fields = FieldReader::of(node, "`config`", notes)?;
    let mut settings = DagSettings::default();
    let before = fields.texts(&["interrupt_before"], notes);
    let after = fields.texts(&["interrupt_after"], notes);
    for (name, at) in before.iter().chain(&after) {
        known(name, *at, spots, notes);
    }
    if !before.is_empty() || !after.is_empty() {
        settings.decided_by = Decider::Human;
    }
    let names = |list: Vec<(String, Position)>| {
        list.into_iter().map(|(name, _)| task_name(&name).to_owned()).collect()
    };
    settings.decisions.before = names(before);
    settings.decisions.after = names(after);
    let workers = fields.number(&["max_workers", "max_concurrency"], 1..=10_000, notes);
    if let Some(workers) = workers.and_then(|n| n.try_into().ok()) {
        settings.concurrency = workers;
    }
    fields.ignore(&["raise_exceptions", "strict_mode"]);
    fields.tolerate(
        &["timeout", "max_iterations", "checkpoint", "checkpoint_dir", "debug", "parallel"],
        "only `interrupt_before`, `interrupt_after` and `max_workers` have an effect in `config`",
        notes,
    );
    fields.done(notes);
    Some(settings)
}

fn known(name: &str, at: Position, spots: &[Spot], notes: &mut Diagnostics<'_>) {
    if !spots.iter().any(|spot| spot.task.id == task_name(name)) {
        let help = near(name, spots.iter().map(|spot| spot.task.id.as_str()));
        notes.fault(at, format!("`{}` is not a node", shortened(name)), help);
    }
}
