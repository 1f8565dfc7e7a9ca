//! Commands that a model may not send to a workflow: to decide for a person, or to bypass a person's decision.
//!
//! A decision that is not open yet is refused too: by the time the command is applied, it may be
//! open and a person's.

use belljar_server::WorkflowApiError;
use belljar_workflow::{
    Action, Dag, DagSettings, Decider, DecisionKind, DecisionPoints, Machine, OnError, Task,
    WorkflowCommand,
};

/// How deep nested tasks are searched; `check` refuses deeper ones.
const DEPTH: usize = 32;

/// Refuses a command that only a person may send.
pub(super) fn check(machine: &Machine, command: &WorkflowCommand) -> Result<(), WorkflowApiError> {
    match command {
        WorkflowCommand::Approve { decision, .. }
        | WorkflowCommand::Reject { decision, .. }
        | WorkflowCommand::Modify { decision, .. } => decides(machine, decision),
        WorkflowCommand::Resolve { task, .. } => Err(persons(
            machine,
            format!("only a person can say whether {task} happened"),
            &format!("resolve {task} --retry"),
        )),
        WorkflowCommand::Skip { task } => around(machine, "skip", task),
        WorkflowCommand::ModifyArgs { task, .. } => around(machine, "modify-args", task),
        WorkflowCommand::Replan { .. } => around(machine, "replan", "FILE"),
        // Added tasks may change what was decided about; a rollback may repeat it.
        WorkflowCommand::InjectTasks { .. } => around(machine, "inject-tasks", "FILE"),
        WorkflowCommand::RollBack { to } => around(machine, "rollback --to", &to.to_string()),
        WorkflowCommand::Abort { .. } | WorkflowCommand::Pause | WorkflowCommand::Continue => {
            Ok(())
        }
    }
}

fn decides(machine: &Machine, decision: &str) -> Result<(), WorkflowApiError> {
    let open = machine.decisions().into_iter().find(|one| one.id == decision);
    let Some(open) = open else {
        let why = machine.unknown_decision(decision);
        return Err(WorkflowApiError::BadCommand { why });
    };
    match open.by {
        Decider::Agent => Ok(()),
        Decider::Human if open.kind == DecisionKind::InDoubt => {
            let task = &open.instance;
            let why = format!("only a person can say whether {task} happened");
            Err(persons(machine, why, &format!("resolve {task} --retry")))
        }
        Decider::Human => {
            let why = format!("only a person can decide {decision}: {}", open.message);
            Err(persons(machine, why, &format!("approve {decision}")))
        }
    }
}

/// Refuses a change to a workflow with a person's decisions: it could bypass them.
fn around(machine: &Machine, what: &str, task: &str) -> Result<(), WorkflowApiError> {
    let is_open = machine.decisions().iter().any(|one| one.by == Decider::Human);
    if !is_open && !asks_a_person(&machine.dag(), 0) {
        return Ok(());
    }
    let why = "this workflow has decisions for a person, so only a person may change it".to_owned();
    Err(persons(machine, why, &format!("{what} {task}")))
}

fn persons(machine: &Machine, why: String, how: &str) -> WorkflowApiError {
    let hint = format!(
        "ask the user to run `belljar workflow command {} {how}` in the project's directory",
        machine.flow()
    );
    WorkflowApiError::NotYours { why, hint }
}

fn asks_a_person(dag: &Dag, depth: usize) -> bool {
    let DagSettings { decisions, decided_by, .. } = &dag.settings;
    let DecisionPoints { per_task, on_error, before, after } = decisions;
    let asks = *per_task || *on_error || !before.is_empty() || !after.is_empty();
    (asks && *decided_by == Decider::Human) || any(&dag.tasks, depth)
}

fn any(tasks: &[Task], depth: usize) -> bool {
    // Tasks too deep to search may ask a person.
    depth > DEPTH || tasks.iter().any(|task| one(task, depth))
}

fn one(task: &Task, depth: usize) -> bool {
    let itself = match &task.action {
        Action::Approval { by, .. } => *by != Some(Decider::Agent),
        Action::Foreach(each) => one(&each.each, depth + 1),
        Action::Loop(rounds) => any(&rounds.body, depth + 1),
        Action::Workflow { workflow, .. } => asks_a_person(workflow, depth + 1),
        Action::McpTool(_)
        | Action::CodeExecution(_)
        | Action::Sandbox(_)
        | Action::Wait(_)
        | Action::Pass { .. } => false,
    };
    let instead = match &task.on_error {
        OnError::Fallback(instead) => depth > DEPTH || one(instead, depth + 1),
        OnError::Fail | OnError::Continue => false,
    };
    itself || instead
}

#[cfg(test)]
mod tests;
