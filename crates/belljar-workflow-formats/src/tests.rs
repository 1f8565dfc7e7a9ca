//! Reading of workflow files, construct by construct.

mod agents;
mod dags;
mod engines;
mod examples;
mod faults;
mod hostile;
mod routes;
mod run;
mod tables;

use super::{CodeExecution, FormatOptions, ParsedWorkflow, read};
use belljar_workflow::{Dag, Task};

/// Reads a file that is right, with code allowed.
fn good(text: &str) -> ParsedWorkflow {
    match read("flow.yaml", text, &FormatOptions { code: CodeExecution::WithShell }) {
        Ok(read) => read,
        Err(faults) => {
            let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
            panic!("{}", all.join("\n"))
        }
    }
}

/// The faults of a file, a line for each.
fn faults(text: &str) -> String {
    told(read("flow.yaml", text, &FormatOptions { code: CodeExecution::WithShell }))
}

fn told(read: Result<ParsedWorkflow, Vec<super::FileFault>>) -> String {
    let faults = read.map(|read| read.dag).expect_err("must be refused");
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn warnings(read: &ParsedWorkflow) -> String {
    read.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn task<'d>(dag: &'d Dag, id: &str) -> &'d Task {
    let ids: Vec<&str> = dag.tasks.iter().map(|task| task.id.as_str()).collect();
    match dag.tasks.iter().find(|task| task.id == id) {
        Some(task) => task,
        None => panic!("no task {id} among {ids:?}"),
    }
}

fn ids(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}
