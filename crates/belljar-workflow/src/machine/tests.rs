//! The machine step by step, with a performer whose answers the test states.

mod bench;
mod bounds;
mod commands;
mod containers;
mod exact;
mod persons;
mod random;
mod recovery;
mod tasks;

use std::collections::VecDeque;

use belljar_contract::{JsonMap, JsonValue, exact_json};

use super::*;
use crate::effect::{OpenIntent, TaskOutcome, TaskStart};
use crate::event::WorkflowEventKind;
use crate::{DecisionKind, TaskFailure, WorkflowCommand};

/// A machine under test: keeps what came out.
pub(super) struct Rig {
    pub(super) machine: Machine,
    pub(super) now: u64,
    pub(super) started: VecDeque<TaskStart>,
    pub(super) cancelled: Vec<String>,
    pub(super) events: Vec<WorkflowEventKind>,
    pub(super) acks: Vec<crate::Acknowledgement>,
    pub(super) finish: Option<crate::Finish>,
    pub(super) commands: u32,
}

pub(super) fn dag(value: JsonValue) -> Dag {
    belljar_contract::json_value::from_value(value).unwrap()
}

pub(super) fn tool(id: &str, deps: &[&str]) -> JsonValue {
    exact_json!({"id": id, "type": "mcp_tool", "tool": "s:t", "depends_on": deps})
}

impl Rig {
    pub(super) fn new(value: JsonValue) -> Self {
        Self::with(value, exact_json!({}))
    }

    pub(super) fn with(value: JsonValue, inputs: JsonValue) -> Self {
        let JsonValue::Object(inputs) = inputs else { panic!("inputs are an object") };
        let machine = Machine::begin("w1", dag(value), inputs).unwrap();
        let mut rig = Self {
            machine,
            now: 1000,
            started: VecDeque::new(),
            cancelled: Vec::new(),
            events: Vec::new(),
            acks: Vec::new(),
            finish: None,
            commands: 0,
        };
        rig.give(InputKind::Begin);
        rig
    }

    pub(super) fn give(&mut self, what: InputKind) {
        let effects = self.machine.apply(MachineInput { now_ms: self.now, what }).unwrap();
        for effect in effects {
            match effect {
                Effect::Start(start) => self.started.push_back(start),
                Effect::Cancel { instance, .. } => self.cancelled.push(instance),
                Effect::Event(event) => self.events.push(event.happened),
                Effect::Acknowledge(ack) => self.acks.push(ack),
                Effect::Finish(finish) => self.finish = Some(finish),
                Effect::Timer { .. }
                | Effect::Forget { .. }
                | Effect::Ask(_)
                | Effect::Withdraw { .. }
                | Effect::Checkpoint { .. } => {}
            }
        }
    }

    /// Names of what was started and not yet answered.
    pub(super) fn names(&self) -> Vec<&str> {
        self.started.iter().map(|start| start.instance.as_str()).collect()
    }

    pub(super) fn take(&mut self, instance: &str) -> TaskStart {
        let at = self.started.iter().position(|start| start.instance == instance);
        let at = at.unwrap_or_else(|| panic!("{instance} was not started: {:?}", self.names()));
        self.started.remove(at).unwrap()
    }

    pub(super) fn answer(&mut self, instance: &str, outcome: TaskOutcome) {
        let start = self.take(instance);
        self.give(InputKind::Ended { instance: start.instance, attempt: start.attempt, outcome });
    }

    pub(super) fn done(&mut self, instance: &str, value: JsonValue) {
        self.answer(instance, TaskOutcome::done(value));
    }

    pub(super) fn fail(&mut self, instance: &str) {
        self.answer(instance, TaskOutcome::failed(TaskFailure::new("broken", "it broke")));
    }

    /// Answers all that is started, until nothing is.
    pub(super) fn run_out(&mut self, mut value: impl FnMut(&TaskStart) -> TaskOutcome) {
        while let Some(start) = self.started.pop_front() {
            let outcome = value(&start);
            self.give(InputKind::Ended {
                instance: start.instance,
                attempt: start.attempt,
                outcome,
            });
        }
    }

    /// Fires the next timer, at its time.
    pub(super) fn tick(&mut self) {
        let (timer, at) = self.machine.timers().into_iter().min_by_key(|(_, at)| *at).unwrap();
        self.now = self.now.max(at);
        self.give(InputKind::Fired { timer });
    }

    /// Gives a command; why it was refused.
    pub(super) fn command(&mut self, command: WorkflowCommand) -> Option<String> {
        self.command_by("me", command)
    }

    pub(super) fn command_by(&mut self, by: &str, command: WorkflowCommand) -> Option<String> {
        self.commands += 1;
        let id = format!("c{}", self.commands);
        self.give(InputKind::Command { id, by: by.to_owned(), command });
        self.acks.last().unwrap().refused.clone()
    }

    pub(super) fn decision(&self, kind: DecisionKind) -> String {
        let found = self.machine.decisions().into_iter().find(|decision| decision.kind == kind);
        found.unwrap_or_else(|| panic!("no {kind:?} is open")).id
    }

    pub(super) fn resume(&mut self, again: impl Fn(&str) -> crate::Repeatability) {
        let text = serde_json::to_string(&self.machine).unwrap();
        self.machine = belljar_contract::json_value::from_str(&text).unwrap();
        let running = self.machine.running();
        let open = running.into_iter().map(|(instance, attempt)| {
            let again = again(&instance);
            OpenIntent { instance, attempt, again }
        });
        let open = open.collect();
        self.started.clear();
        self.give(InputKind::Resumed { open });
    }

    pub(super) fn status(&self) -> WorkflowStatus {
        self.machine.status()
    }

    pub(super) fn output(&self) -> JsonValue {
        self.finish.clone().expect("it has ended").output
    }

    pub(super) fn task(&self, instance: &str) -> TaskStatus {
        self.machine.task(instance).unwrap_or_else(|| panic!("no {instance}")).status
    }

    pub(super) fn roll_back(&mut self, to: u64, base: &Machine) {
        self.roll_back_by("me", to, base);
    }

    pub(super) fn roll_back_by(&mut self, by: &str, to: u64, base: &Machine) -> Option<String> {
        self.commands += 1;
        let id = format!("c{}", self.commands);
        let base = Box::new(base.clone());
        self.give(InputKind::RollBack { id, by: by.to_owned(), to, base });
        self.acks.last().unwrap().refused.clone()
    }
}

pub(super) fn map(value: JsonValue) -> JsonMap {
    value.as_object().unwrap().clone()
}
