//! Visits every task of a workflow, however deeply nested.

use std::collections::BTreeSet;

use belljar_contract::Language;
use belljar_workflow::{Action, Compensation, Dag, OnError, SandboxAction, Task};

/// How deep nested tasks are searched; `check` refuses deeper ones.
const DEPTH: usize = 32;

/// Something that a task needs.
pub(super) enum TaskNeed<'d> {
    /// A tool that it calls.
    Tool(&'d str),
    /// The language of its code; `None` for code in a sandbox that another task made.
    Code(Option<Language>),
}

/// Calls `look` for every need of the tasks, with the task's id.
pub(super) fn each<'d>(tasks: &'d [Task], look: &mut dyn FnMut(&'d str, TaskNeed<'d>)) {
    deep(tasks, look, 0);
}

/// The tools that a workflow names.
pub(super) fn tools(dag: &Dag) -> BTreeSet<String> {
    tools_of(&dag.tasks)
}

/// The tools that these tasks name.
pub(super) fn tools_of(tasks: &[Task]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each(tasks, &mut |_, need| {
        if let TaskNeed::Tool(name) = need {
            found.insert(name.to_owned());
        }
    });
    found
}

/// The first task with code in a language that `is_it` accepts.
pub(super) fn first_code(
    tasks: &[Task],
    is_it: impl Fn(Option<Language>) -> bool,
) -> Option<String> {
    let mut found = None;
    each(tasks, &mut |task, need| {
        if matches!(need, TaskNeed::Code(language) if is_it(language)) {
            found.get_or_insert_with(|| task.to_owned());
        }
    });
    found
}

fn deep<'d>(tasks: &'d [Task], look: &mut dyn FnMut(&'d str, TaskNeed<'d>), depth: usize) {
    if depth > DEPTH {
        return;
    }
    for task in tasks {
        one(task, look, depth);
    }
}

fn one<'d>(task: &'d Task, look: &mut dyn FnMut(&'d str, TaskNeed<'d>), depth: usize) {
    match &task.action {
        Action::McpTool(call) => look(&task.id, TaskNeed::Tool(&call.tool)),
        Action::CodeExecution(code) => look(&task.id, TaskNeed::Code(Some(code.language))),
        Action::Sandbox(SandboxAction::Create { language, .. }) => {
            look(&task.id, TaskNeed::Code(Some(*language)))
        }
        Action::Sandbox(_) => look(&task.id, TaskNeed::Code(None)),
        Action::Foreach(each) => deep(std::slice::from_ref(&*each.each), look, depth + 1),
        Action::Loop(rounds) => deep(&rounds.body, look, depth + 1),
        Action::Workflow { workflow, .. } => deep(&workflow.tasks, look, depth + 1),
        Action::Approval { .. } | Action::Wait(_) | Action::Pass { .. } => {}
    }
    match &task.compensate {
        Some(Compensation::Tool(call)) => look(&task.id, TaskNeed::Tool(&call.tool)),
        Some(Compensation::Code(code)) => look(&task.id, TaskNeed::Code(Some(code.language))),
        None => {}
    }
    if let OnError::Fallback(instead) = &task.on_error {
        deep(std::slice::from_ref(&**instead), look, depth + 1);
    }
}
