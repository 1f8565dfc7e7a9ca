//! Checks the tasks of one list: unique ids, dependencies that exist, no cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::Neighbours;
use crate::fault::{Diagnostics, near, shortened};
use crate::fields::FieldReader;
use crate::tree::{FileNode, FileTree, Position};
use belljar_workflow::Task;

/// The spellings of a task's list of dependencies.
pub(super) const DEPENDS_ON: [&str; 4] = ["depends_on", "dependsOn", "dependencies", "deps"];

/// A dependency written beside the tasks: `{from, to}`.
pub(super) struct Arrow {
    from: String,
    to: String,
    at: Position,
}

/// Reads one dependency `{from, to}`.
pub(super) fn arrow(node: &FileNode, notes: &mut Diagnostics<'_>) -> Option<Arrow> {
    let mut fields = FieldReader::of(node, "a dependency", notes)?;
    let from = fields.text(&["from"], notes);
    let to = fields.text(&["to"], notes);
    fields.done(notes);
    let (Some(from), Some(to)) = (from, to) else {
        notes.fault(node.at, "a dependency needs `from` and `to`", "");
        return None;
    };
    Some(Arrow { from, to, at: node.at })
}

/// Adds the dependencies that are written beside the tasks.
pub(super) fn join(tasks: &mut [Task], arrows: Vec<Arrow>, notes: &mut Diagnostics<'_>) {
    for arrow in arrows {
        match tasks.iter_mut().find(|task| task.id == arrow.to) {
            Some(task) if task.depends_on.contains(&arrow.from) => {}
            Some(task) => task.depends_on.push(arrow.from),
            None if notes.full() => return,
            None => {
                let help = near(&arrow.to, tasks.iter().map(|task| task.id.as_str()));
                let message = format!("`{}` is not a task", shortened(&arrow.to));
                notes.fault(arrow.at, message, help);
            }
        }
    }
}

/// The dependencies of a task, as far as they can be read.
pub(super) fn named(task: &FileNode) -> Vec<String> {
    let text = |node: &FileNode| match &node.tree {
        FileTree::Text(name) => Some(name.clone()),
        FileTree::Null
        | FileTree::Bool(_)
        | FileTree::Number(_)
        | FileTree::List(_)
        | FileTree::Map(_) => None,
    };
    match DEPENDS_ON.iter().find_map(|key| task.get(key)) {
        Some(FileNode { tree: FileTree::List(items), .. }) => {
            items.iter().filter_map(text).collect()
        }
        Some(one) => text(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// Checks tasks; `places` are their nodes in the same order. Dependencies on unknown neighbours are
/// checked when the tasks are added.
pub(super) fn check(
    tasks: &[Task],
    places: &[&FileNode],
    neighbours: Neighbours,
    notes: &mut Diagnostics<'_>,
) {
    let mut known: BTreeMap<&str, Position> = BTreeMap::new();
    for (task, node) in tasks.iter().zip(places) {
        let at = node.get("id").map_or(node.at, |id| id.at);
        if let Some(first) = known.insert(&task.id, at) {
            let message = format!("two tasks are called `{}`", shortened(&task.id));
            notes.fault(at, message, format!("the other is on line {}", first.line));
        }
    }
    for (task, node) in tasks.iter().zip(places) {
        for name in &task.depends_on {
            let is_missing = neighbours == Neighbours::None && !known.contains_key(name.as_str());
            if is_missing && !notes.full() {
                let help = near(name, known.keys().copied());
                let message = format!("depends on `{}`, which is not a task", shortened(name));
                notes.about(&task.id, |notes| notes.fault(place(node, name), message, help));
            }
        }
    }
    // When two tasks share an id, their dependencies are ambiguous.
    if known.len() == tasks.len() {
        find_cycle(tasks, places, notes);
    }
}

/// The position of a dependency in the file.
fn place(node: &FileNode, name: &str) -> Position {
    let list = DEPENDS_ON.iter().find_map(|key| node.get(key));
    list.map_or(node.at, |list| match &list.tree {
        FileTree::List(items) => items
            .iter()
            .find(|item| matches!(&item.tree, FileTree::Text(text) if text == name))
            .map_or(list.at, |item| item.at),
        FileTree::Null
        | FileTree::Bool(_)
        | FileTree::Number(_)
        | FileTree::Text(_)
        | FileTree::Map(_) => list.at,
    })
}

/// Finds a cycle: removes tasks without open dependencies until none is left.
fn find_cycle(tasks: &[Task], places: &[&FileNode], notes: &mut Diagnostics<'_>) {
    let ids: BTreeSet<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let mut waits: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wakes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for task in tasks {
        let own: BTreeSet<&str> = task.depends_on.iter().map(String::as_str).collect();
        let own: Vec<&str> = own.intersection(&ids).copied().collect();
        waits.insert(&task.id, own.len());
        for name in own {
            wakes.entry(name).or_default().push(&task.id);
        }
    }
    let mut ready: Vec<&str> = waits.iter().filter(|(_, n)| **n == 0).map(|(id, _)| *id).collect();
    while let Some(id) = ready.pop() {
        waits.remove(id);
        for next in wakes.get(id).into_iter().flatten() {
            if let Some(count) = waits.get_mut(next) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.push(next);
                }
            }
        }
    }
    let Some(first) = tasks.iter().position(|task| waits.contains_key(task.id.as_str())) else {
        return;
    };
    let path = walk(tasks, first, &waits);
    let on_it = tasks.iter().zip(places).find(|(task, _)| path.first() == Some(&task.id.as_str()));
    if let Some((task, node)) = on_it {
        let shown = if path.len() > 12 { path.split_at(12).0 } else { &path };
        let more = if path.len() > 12 { " → …" } else { "" };
        let message = format!("dependency cycle: {}{more}", shown.join(" → "));
        notes.about(&task.id, |notes| {
            notes.fault(node.at, message, "remove one of these dependencies, or use `loop`");
        });
    }
}

/// Follows dependencies until a task comes again: that part is the cycle.
fn walk<'t>(tasks: &'t [Task], first: usize, left: &BTreeMap<&str, usize>) -> Vec<&'t str> {
    let by_id: BTreeMap<&str, &Task> = tasks.iter().map(|task| (task.id.as_str(), task)).collect();
    let mut path: Vec<&str> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut at = tasks.get(first);
    while let Some(task) = at {
        let from = places.insert(&task.id, path.len());
        path.push(&task.id);
        if let Some(from) = from {
            return path.split_off(from);
        }
        let next = task.depends_on.iter().find(|name| left.contains_key(name.as_str()));
        at = next.and_then(|name| by_id.get(name.as_str()).copied());
    }
    path
}
