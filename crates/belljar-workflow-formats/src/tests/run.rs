//! Files that are read, checked and run on the real machine, with a performer that answers from a
//! table.

mod elsewhere;
mod examples;
mod nodes;
mod walk;

use std::collections::VecDeque;

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonMap, JsonValue, exact_json, json_value};

use super::good;
use belljar_workflow::ResultShape;
use belljar_workflow::{Dag, Machine, TaskFailure, WorkflowCommand};
use belljar_workflow::{Effect, InputKind, MachineInput, TaskOutcome, TaskStart, TaskWork};

/// How many inputs a run may take.
const MOST: usize = 20_000;

/// The outcome of a run.
struct TestRun {
    /// The ids of the performed tasks, in order.
    order: Vec<String>,
    /// The decisions that were asked for, by task.
    asked: Vec<String>,
    status: WorkflowStatus,
    state: JsonMap,
    output: JsonValue,
    failure: Option<TaskFailure>,
}

impl TestRun {
    fn order(&self) -> String {
        self.order.join(" ")
    }

    /// One part of the state in the end.
    fn state(&self, part: &str) -> JsonValue {
        self.state.get(part).cloned().unwrap_or_default()
    }

    /// That it went well.
    fn ok(self) -> Self {
        assert_eq!(
            (self.status, &self.failure),
            (WorkflowStatus::Completed, &None),
            "{:?}",
            self.order
        );
        self
    }

    fn why(&self) -> String {
        self.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default()
    }
}

/// Reads an agent and runs it: `table` gives what a task answers to what it is given.
fn run(text: &str, inputs: JsonValue, table: impl FnMut(&str, &JsonValue) -> JsonValue) -> TestRun {
    run_dag(good(text).dag, inputs, table)
}

fn run_dag(
    dag: Dag,
    inputs: JsonValue,
    mut table: impl FnMut(&str, &JsonValue) -> JsonValue,
) -> TestRun {
    perform(dag, inputs, |id, given| Ok(table(id, given)))
}

fn perform(
    dag: Dag,
    inputs: JsonValue,
    table: impl FnMut(&str, &JsonValue) -> Result<JsonValue, TaskFailure>,
) -> TestRun {
    answered(dag, inputs, None, table)
}

/// The same; every decision is approved with this.
fn answered(
    dag: Dag,
    inputs: JsonValue,
    value: Option<JsonValue>,
    mut table: impl FnMut(&str, &JsonValue) -> Result<JsonValue, TaskFailure>,
) -> TestRun {
    let JsonValue::Object(inputs) = inputs else { panic!("inputs are an object") };
    let mut machine = Machine::begin("w", dag, inputs).unwrap_or_else(|faults| panic!("{faults}"));
    let mut started: VecDeque<TaskStart> = VecDeque::new();
    let (mut order, mut asked, mut now_ms) = (Vec::new(), Vec::new(), 1_000);
    let mut next = Some(InputKind::Begin);
    for number in 0..MOST {
        let Some(what) = next.take() else { break };
        for effect in machine.apply(MachineInput { now_ms, what }).expect("taken") {
            match effect {
                Effect::Start(start) => started.push_back(start),
                Effect::Ask(decision) => asked.push(task_of(&decision.instance)),
                Effect::Cancel { .. }
                | Effect::Timer { .. }
                | Effect::Forget { .. }
                | Effect::Withdraw { .. }
                | Effect::Event(_)
                | Effect::Acknowledge(_)
                | Effect::Checkpoint { .. }
                | Effect::Finish(_) => {}
            }
        }
        if number < 50 {
            // Whatever it is in the middle of, it can be written and read.
            let text = serde_json::to_string(&machine).expect("JSON");
            machine = serde_json::from_str(&text).expect("a machine");
        }
        next = if let Some(start) = started.pop_front() {
            let id = task_of(&start.instance);
            let outcome = match table(&id, &given(&start.work)) {
                Ok(value) => TaskOutcome::done(value),
                Err(failure) => TaskOutcome::failed(failure),
            };
            order.push(id);
            Some(InputKind::Ended { instance: start.instance, attempt: start.attempt, outcome })
        } else if let Some(decision) = machine.decisions().first() {
            let (by, id) = ("me".to_owned(), format!("c{number}"));
            let command =
                WorkflowCommand::Approve { decision: decision.id.clone(), value: value.clone() };
            Some(InputKind::Command { id, by, command })
        } else {
            let timer = machine.timers().into_iter().min_by_key(|(_, at)| *at);
            timer.map(|(timer, at)| {
                now_ms = at.max(now_ms);
                InputKind::Fired { timer }
            })
        };
    }
    TestRun {
        order,
        asked,
        status: machine.status(),
        state: machine.state().clone(),
        output: machine.output().clone(),
        failure: machine.failure().cloned(),
    }
}

/// The input of a task: arguments of a tool, the state of a node, the context of other code.
fn given(work: &TaskWork) -> JsonValue {
    match work {
        TaskWork::McpTool(call) => JsonValue::Object(call.arguments.clone()),
        TaskWork::CodeExecution(code) if code.shape == ResultShape::Node => {
            let mut given = code.context.get("state").cloned().unwrap_or_default();
            let results = code.context.get("parallel_results").cloned();
            if let (Some(map), Some(results)) = (given.as_object_mut(), results) {
                map.insert("parallel_results".to_owned(), results);
            }
            given
        }
        TaskWork::CodeExecution(code) => exact_json!({"code": code.code, "context": code.context}),
        TaskWork::Sandbox { action } => json_value::to_value(action).expect("JSON"),
        TaskWork::RestoreSandbox { sandbox_id, .. } => exact_json!(sandbox_id),
    }
}

/// The id of an instance's task: `write__loop#2/write` is `write`.
fn task_of(instance: &str) -> String {
    let last = instance.rsplit('/').next().unwrap_or_default();
    last.split(['[', '#', '~']).next().unwrap_or_default().to_owned()
}
