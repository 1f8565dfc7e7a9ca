//! The task graph of a workflow in the language of Graphviz.

use std::fmt::Write as _;

use belljar_contract::TaskStatus;
use belljar_workflow::Machine;

/// The current tasks and their dependencies.
pub(super) fn dot(machine: &Machine) -> String {
    let dag = machine.dag();
    let mut text = String::from("digraph workflow {\n  rankdir=LR;\n  node [shape=box];\n");
    let _ = writeln!(text, "  label={};", quoted(&dag.name));
    for task in &dag.tasks {
        let view = machine.task(&task.id);
        let (kind, status) = match &view {
            Some(view) => (view.kind.as_str(), view.status),
            None => ("", TaskStatus::Waiting),
        };
        let label = quoted(&format!("{}\n{kind}", task.id));
        let style = format!("style=filled, fillcolor={}", colour(status));
        let _ = writeln!(text, "  {} [label={label}, {style}];", quoted(&task.id));
        for before in &task.depends_on {
            let _ = writeln!(text, "  {} -> {};", quoted(before), quoted(&task.id));
        }
    }
    text.push_str("}\n");
    text
}

/// A quoted Graphviz string.
fn quoted(text: &str) -> String {
    let plain = |letter: char| match letter {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        letter if letter.is_control() => String::new(),
        letter => letter.to_string(),
    };
    format!("\"{}\"", text.chars().map(plain).collect::<String>())
}

fn colour(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Waiting | TaskStatus::Ready => "white",
        TaskStatus::Running | TaskStatus::Sleeping => "lightblue",
        TaskStatus::Retrying | TaskStatus::Deciding | TaskStatus::InDoubt => "khaki",
        TaskStatus::Completed => "palegreen",
        TaskStatus::Failed | TaskStatus::Continued => "lightcoral",
        TaskStatus::Skipped | TaskStatus::Cancelled => "lightgrey",
    }
}

#[cfg(test)]
mod tests {
    use belljar_contract::{JsonMap, JsonValue};
    use belljar_workflow::{Action, Dag, Machine, Task};

    #[test]
    fn f1_a_graph_names_tasks_and_what_they_depend_on() {
        let pass = || Action::Pass { value: JsonValue::Null };
        let mut second = Task::new("b", pass());
        second.depends_on = vec!["a".to_owned()];
        let tasks = vec![Task::new("a", pass()), second];
        let dag = Dag { name: "say \"hi\"".to_owned(), tasks, ..Dag::default() };
        let machine = Machine::begin("flow", dag, JsonMap::new()).expect("it is well formed");
        insta::assert_snapshot!(super::dot(&machine), @r#"
        digraph workflow {
          rankdir=LR;
          node [shape=box];
          label="say \"hi\"";
          "a" [label="a\npass", style=filled, fillcolor=white];
          "b" [label="b\npass", style=filled, fillcolor=white];
          "a" -> "b";
        }
        "#);
    }
}
