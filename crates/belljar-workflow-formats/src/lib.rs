//! Workflow files: YAML agents, and DAGs in YAML or JSON, all read into one [`Dag`].
//!
//! Reading needs no catalogue of tools and runs nothing. It reports many faults at once, each with
//! its line; where a file is read differently than its author may have meant, it gives a
//! [`Warning`]. Work and memory are limited by the length of the text.
//!
//! There are two formats. A file with `nodes` is an agent ([`Format::Agent`]): its nodes run in the
//! order written unless `goto` or `edges` say otherwise. A file with `tasks` is a DAG
//! ([`Format::Dag`]): a task runs as soon as its dependencies have ended.
//!
//! A file may hold code only when the caller allows it with [`CodeExecution`], and bash only when
//! that allows it too. This is the operator's choice: a file that says `enable_code_execution:
//! true` or `enable_shell: true` about itself gets a warning that this has no effect.

mod agent;
mod code;
mod expression;
mod fault;
mod fields;
mod scalar;
mod tasks;
#[cfg(test)]
mod tests;
mod tree;

pub use code::{CODE_SWITCH, SHELL_SWITCH};
pub use fault::{FileFault, Warning};

use belljar_workflow::{Dag, Task};
use fault::Diagnostics;
use tree::{FileNode, FileTree, Position};

/// The operator's permission for code in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatOptions {
    /// Whether a file may hold code, and which.
    pub code: CodeExecution,
}

/// Whether a file may hold code: the operator's `enable_code_execution` and `enable_shell`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeExecution {
    /// Code in a file is a fault.
    #[default]
    Off,
    /// Python, TypeScript and JavaScript become code tasks, each in a cell of its own.
    On,
    /// Bash is allowed as well.
    WithShell,
}

impl CodeExecution {
    /// Combines the operator's two switches: without code there is no shell.
    pub fn of(is_enabled: bool, has_shell: bool) -> Self {
        match (is_enabled, has_shell) {
            (false, _) => Self::Off,
            (true, false) => Self::On,
            (true, true) => Self::WithShell,
        }
    }
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Nodes that run one after another, or along their routes.
    Agent,
    /// Tasks that run when their dependencies have ended.
    Dag,
}

/// A workflow file that was read without faults.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedWorkflow {
    /// The workflow in the file.
    pub dag: Dag,
    /// The format of the file.
    pub format: Format,
    /// Where the author may have meant something else, in the order of the file.
    pub warnings: Vec<Warning>,
}

/// Reads a workflow file. `name` is only used in messages.
///
/// # Errors
///
/// All faults, in the order of the file.
pub fn read(
    name: &str,
    text: &str,
    options: &FormatOptions,
) -> Result<ParsedWorkflow, Vec<FileFault>> {
    match read_in_part(name, text, options) {
        (Some(read), faults) if faults.is_empty() => Ok(read),
        (_, faults) => Err(faults),
    }
}

/// Reads a workflow file with all its faults, and as much of the workflow as can be read. A task with a
/// fault is there and passes nothing on, so that the other tasks can be checked; a workflow with faults
/// must not run.
pub fn read_in_part(
    name: &str,
    text: &str,
    options: &FormatOptions,
) -> (Option<ParsedWorkflow>, Vec<FileFault>) {
    let mut notes = Diagnostics::new(name);
    let read = tree::parse(text, &mut notes).and_then(|root| dispatch(&root, options, &mut notes));
    let (faults, warnings) = notes.end();
    (read.map(|(dag, format)| ParsedWorkflow { dag, format, warnings }), faults)
}

/// Reads tasks to add to a workflow: a list of them, or a mapping with `tasks`. They may depend on
/// existing tasks; that is checked when they are added.
///
/// # Errors
///
/// All faults, in the order of the text.
pub fn read_tasks(
    name: &str,
    text: &str,
    options: &FormatOptions,
) -> Result<Vec<Task>, Vec<FileFault>> {
    let mut notes = Diagnostics::new(name);
    let read = tree::parse(text, &mut notes).and_then(|root| {
        if root.get("nodes").is_some() && root.get("tasks").is_none() {
            notes.fault(
                root.at,
                "expected tasks, found the nodes of an agent",
                "write a list of tasks",
            );
            return None;
        }
        tasks::read_more(&root, options, &mut notes)
    });
    let failed = notes.any();
    let (faults, _) = notes.end();
    match read {
        Some(dag) if !failed => Ok(dag.tasks),
        Some(_) | None => Err(faults),
    }
}

fn dispatch(
    root: &FileNode,
    options: &FormatOptions,
    notes: &mut Diagnostics<'_>,
) -> Option<(Dag, Format)> {
    if root.get("nodes").is_some() && root.get("tasks").is_none() {
        return agent::read(root, options, notes).map(|dag| (dag, Format::Agent));
    }
    let wrapped = ["workflow", "dag"]
        .into_iter()
        .filter_map(|key| root.get(key))
        .find(|inner| inner.get("tasks").is_some() && root.get("tasks").is_none());
    let inner = wrapped.unwrap_or(root);
    let bare_list = matches!(&inner.tree, FileTree::List(_));
    if bare_list || inner.get("tasks").is_some() {
        return tasks::read(inner, options, notes).map(|dag| (dag, Format::Dag));
    }
    let at = if matches!(root.tree, FileTree::Map(_)) { root.at } else { Position::TOP };
    notes.fault(
        at,
        "not a workflow: the file has neither `nodes` nor `tasks`",
        "write `nodes:` for an agent or `tasks:` for a DAG",
    );
    None
}
