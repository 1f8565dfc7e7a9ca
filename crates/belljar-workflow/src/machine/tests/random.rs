//! Random workflows, random answers, random commands, crashes and rollbacks: what must always hold.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::effect::{Repeatability, TaskEnding};
use crate::{DoubtResolution, TaskWork};

/// A workflow made of random numbers; task `t<i>` depends on earlier ones only.
fn workflow(seeds: &[u32], concurrency: usize, habits: u32) -> JsonValue {
    let tasks: Vec<JsonValue> = seeds.iter().enumerate().map(|(i, seed)| task(i, *seed)).collect();
    let by = if habits & 1 == 0 { "agent" } else { "human" };
    exact_json!({
        "settings": {
            "concurrency": concurrency, "decided_by": by,
            "decision_timeout_ms": if habits & 2 == 0 { Some(500) } else { None },
            "decisions": {"per_task": habits % 7 == 3, "on_error": habits & 4 == 4,
                "before": if habits & 8 == 8 { vec!["t0"] } else { vec![] }},
        },
        "reducers": {"log": "append"}, "tasks": tasks
    })
}

fn task(index: usize, seed: u32) -> JsonValue {
    let deps: Vec<String> =
        (0..index).filter(|dep| seed >> (dep % 16) & 3 == 1).map(|dep| format!("t{dep}")).collect();
    let call = exact_json!({"id": "x", "type": "mcp_tool", "tool": "s:t"});
    let mut task = match seed >> 8 & 15 {
        0 => exact_json!({"type": "pass", "value": "{{ deps }}"}),
        1 => exact_json!({"type": "approval", "message": "?"}),
        2 => exact_json!({"type": "wait", "wait_ms": 30}),
        3 | 4 => {
            exact_json!({"type": "foreach", "items": "{{ range(5) }}", "at_once": 1 + seed % 3, "fail_fast": seed & 1 == 0, "do": call})
        }
        5 => {
            exact_json!({"type": "loop", "while": "loop.iteration < 4", "body": [tool("p", &[]), tool("q", &["p"])], "goto": [{"if": "loop.iteration == 1", "to": "q"}]})
        }
        6 => {
            exact_json!({"type": "workflow", "workflow": {"settings": {"concurrency": 2}, "tasks": [tool("p", &[]), tool("q", &["p"]), tool("r", &[])]}})
        }
        7 => {
            exact_json!({"type": "code_execution", "language": "python", "code": "1", "files": true})
        }
        _ => exact_json!({"type": "mcp_tool", "tool": "s:t"}),
    };
    let performs = matches!(task["type"].as_str(), Some("mcp_tool" | "code_execution"));
    let fields = task.as_object_mut().unwrap();
    fields.insert("id".into(), exact_json!(format!("t{index}")));
    fields.insert("depends_on".into(), exact_json!(deps));
    match seed >> 12 & 7 {
        0 => fields.insert("on_error".into(), exact_json!("continue")),
        1 => fields.insert("on_error".into(), exact_json!({"fallback": call})),
        2 => fields
            .insert("when".into(), exact_json!(if seed & 1 == 0 { "false" } else { "1 == 1" })),
        3 => fields.insert("timeout_ms".into(), exact_json!(40)),
        _ => None,
    };
    if performs {
        if seed >> 15 & 1 == 1 {
            fields.insert("compensate".into(), exact_json!({"tool": {"tool": "s:undo"}}));
        }
        if seed >> 16 & 3 == 1 {
            fields.insert("idempotent".into(), exact_json!(true));
            fields.insert("retry".into(), exact_json!({"attempts": 2}));
        }
        fields.insert("speculate".into(), exact_json!(seed >> 18 & 1 == 1));
        fields.insert("output".into(), exact_json!({"log": "{{ [result] }}"}));
    }
    task
}

/// A driver that checks everything it sees.
struct World {
    machine: Machine,
    first: Machine,
    inputs: Vec<MachineInput>,
    effects: Vec<String>,
    now: u64,
    open: BTreeMap<(String, u32), TaskStart>,
    seen: BTreeSet<(u32, String, u32)>,
    /// Tasks that a pause keeps from going on after a crash.
    parked: BTreeSet<(String, u32)>,
    last_event: u64,
    concurrency: usize,
    bases: Vec<Machine>,
    /// Tasks that ended well and can be undone, in that order.
    undoable: Vec<String>,
    undo_at: usize,
}

impl World {
    fn new(dag_value: JsonValue, concurrency: usize) -> Self {
        let machine = Machine::begin("w", dag(dag_value), JsonMap::new()).unwrap();
        let first = machine.clone();
        let mut world = Self {
            machine,
            first,
            inputs: Vec::new(),
            effects: Vec::new(),
            now: 0,
            open: BTreeMap::new(),
            seen: BTreeSet::new(),
            parked: BTreeSet::new(),
            last_event: 0,
            concurrency,
            bases: Vec::new(),
            undoable: Vec::new(),
            undo_at: usize::MAX,
        };
        world.give(InputKind::Begin);
        world
    }

    fn give(&mut self, what: InputKind) {
        let mut before = self.machine.status();
        if matches!(what, InputKind::RollBack { .. }) {
            before = WorkflowStatus::RollingBack;
        }
        let resumed = matches!(what, InputKind::Resumed { .. });
        let input = MachineInput { now_ms: self.now, what };
        self.inputs.push(input.clone());
        let effects = self.machine.apply(input).unwrap();
        self.effects.push(serde_json::to_string(&effects).unwrap());
        for effect in effects {
            match effect {
                Effect::Start(start) => self.started(start, before, resumed),
                Effect::Event(event) => {
                    assert_eq!(event.seq, self.last_event + 1, "events have no gap");
                    self.last_event = event.seq;
                    if let WorkflowEventKind::SpeculationAdopted { task } = event.happened {
                        self.adopted(task);
                    }
                }
                Effect::Checkpoint { at } => {
                    assert_eq!(at, self.machine.taken());
                    self.bases.push(self.machine.clone());
                }
                Effect::Finish(_) => assert!(!before.is_over(), "it ends once"),
                Effect::Cancel { instance, attempt } => {
                    assert!(
                        self.open.contains_key(&(instance, attempt)),
                        "only what runs is cancelled"
                    );
                }
                Effect::Timer { .. }
                | Effect::Forget { .. }
                | Effect::Ask(_)
                | Effect::Withdraw { .. }
                | Effect::Acknowledge(_) => {}
            }
        }
        self.check();
    }

    fn started(&mut self, start: TaskStart, before: WorkflowStatus, resumed: bool) {
        let undo = start.instance.ends_with("~undo");
        assert!(undo || before != WorkflowStatus::Stopping, "nothing starts after an abort");
        assert!(undo || self.machine.status() != WorkflowStatus::Paused || resumed);
        if undo {
            let instance = start.instance.trim_end_matches("~undo");
            let limit = self.undo_at.min(self.undoable.len());
            let at = self.undoable[..limit].iter().rposition(|name| name == instance);
            if !(resumed && self.undoable.get(self.undo_at).is_some_and(|name| name == instance)) {
                self.undo_at = at.expect("undone in reverse of ending");
            }
        } else {
            let id = (self.machine.branch(), start.instance.clone(), start.attempt);
            let parked = self.parked.remove(&(start.instance.clone(), start.attempt));
            let is_new = self.seen.insert(id);
            assert!(is_new || resumed || parked, "{} started twice", start.instance);
            if !start.speculative {
                self.dependencies_ended(&start.instance);
            }
        }
        self.open.insert((start.instance.clone(), start.attempt), start);
    }

    fn dependencies_ended(&self, instance: &str) {
        let Some(view) = self.machine.task(instance) else { return };
        let prefix = instance.rfind('/').map_or("", |at| &instance[..=at]);
        for dep in &view.depends_on {
            let dep = self.machine.task(&format!("{prefix}{dep}")).expect("it is there");
            use TaskStatus::*;
            assert!(
                matches!(dep.status, Completed | Failed | Continued | Skipped | Cancelled),
                "{instance} started before {} had ended",
                dep.instance
            );
        }
    }

    fn check(&self) {
        assert!(self.open.len() <= self.concurrency, "more than {} run", self.concurrency);
        let open: BTreeSet<(String, u32)> = self.open.keys().cloned().collect();
        let running: BTreeSet<(String, u32)> = self.machine.running().into_iter().collect();
        assert_eq!(open, running, "the machine knows what runs");
        assert!(!self.machine.status().is_over() || open.is_empty());
        for view in self.machine.tasks() {
            if view.kind != "foreach" || view.status != TaskStatus::Completed {
                continue;
            }
            let Some(JsonValue::Array(list)) = self.machine.result_of(&view.instance) else {
                continue;
            };
            for (index, value) in list.iter().enumerate() {
                assert!(
                    value.is_null() || *value == exact_json!(format!("{}[{index}]", view.instance))
                );
            }
        }
    }

    fn answer(&mut self, pick: u32, well: bool) {
        let Some(key) = self.open.keys().nth(pick as usize % self.open.len().max(1)).cloned()
        else {
            return;
        };
        let start = self.open.remove(&key).unwrap();
        let (instance, attempt) = key;
        let mut outcome = TaskOutcome::done(exact_json!(instance));
        if !well {
            let failure =
                TaskFailure { may_have_acted: pick & 1 == 1, ..TaskFailure::new("broken", "") };
            outcome = TaskOutcome::failed(failure);
        } else if matches!(start.work, TaskWork::CodeExecution(_)) {
            let entry = crate::FileEntry::Directory { mode: pick };
            outcome.files.insert(format!("f{}", pick % 3), Some(entry));
        }
        let done = matches!(outcome.ending, TaskEnding::Done { .. });
        if done && !start.speculative && !instance.ends_with("~undo") {
            self.undoable.push(instance.clone());
        }
        self.give(InputKind::Ended { instance, attempt, outcome });
    }

    /// A task that ran ahead counts from now on, or from its end if it still runs.
    fn adopted(&mut self, task: String) {
        let mut open = self.open.values_mut();
        match open.find(|start| start.instance == task && start.speculative) {
            Some(start) => start.speculative = false,
            None => self.undoable.push(task),
        }
    }

    fn tick(&mut self) {
        let next = self.machine.timers().into_iter().min_by_key(|(id, at)| (*at, *id));
        let Some((timer, at)) = next else { return };
        self.now = self.now.max(at);
        self.give(InputKind::Fired { timer });
    }

    fn command(&mut self, id: u32, command: WorkflowCommand) {
        self.give(InputKind::Command { id: format!("c{id}"), by: "me".into(), command });
    }

    fn random_command(&mut self, id: u32, pick: u32) {
        let tasks = self.machine.tasks();
        let task = tasks
            .get(pick as usize / 16 % (tasks.len() + 1))
            .map_or("nobody".to_owned(), |task| task.instance.clone());
        let decisions = self.machine.decisions();
        let decision = decisions.first().map_or("d0".to_owned(), |decision| decision.id.clone());
        let fresh =
            belljar_contract::json_value::from_value(tool(&format!("new{}", id % 5), &["t0"]))
                .unwrap();
        let command = match pick % 12 {
            0 if pick.is_multiple_of(5) => WorkflowCommand::Abort { reason: None },
            0 | 1 => WorkflowCommand::Pause,
            2 | 3 => WorkflowCommand::Continue,
            4 => WorkflowCommand::InjectTasks { tasks: vec![fresh] },
            5 => WorkflowCommand::Replan { tasks: vec![fresh], reason: None },
            6 => WorkflowCommand::Skip { task },
            7 => WorkflowCommand::ModifyArgs { task, arguments: map(exact_json!({"k": 1})) },
            8 => WorkflowCommand::Approve { decision, value: None },
            9 => WorkflowCommand::Reject { decision, reason: None },
            10 => WorkflowCommand::Modify {
                decision,
                arguments: Some(map(exact_json!({"k": 2}))),
                value: None,
            },
            _ => WorkflowCommand::Resolve { task, how: DoubtResolution::Retry },
        };
        self.command(id, command);
    }

    /// The host dies, and another takes over from what was written.
    fn crash(&mut self, pick: u32) {
        let text = serde_json::to_string(&self.machine).unwrap();
        self.machine = belljar_contract::json_value::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&self.machine).unwrap(), text);
        let under_way: Vec<(String, u32)> = self.open.keys().cloned().collect();
        let open =
            std::mem::take(&mut self.open).into_keys().map(|(instance, attempt)| OpenIntent {
                again: [Repeatability::Unknown, Repeatability::Harmless, Repeatability::NotBegun]
                    [(pick as usize + instance.len()) % 3],
                instance,
                attempt,
            });
        let open = open.collect();
        self.give(InputKind::Resumed { open });
        if self.machine.status() == WorkflowStatus::Paused {
            // Tasks that are not begun again wait for the end of the pause.
            self.parked.extend(under_way.into_iter().filter(|key| !self.open.contains_key(key)));
        }
    }

    fn roll_back(&mut self, id: u32, pick: u32) {
        if self.machine.status() == WorkflowStatus::RollingBack || self.bases.is_empty() {
            return;
        }
        let base = self.bases[pick as usize % self.bases.len()].clone();
        self.undo_at = usize::MAX;
        let to = base.taken();
        let what = InputKind::RollBack {
            id: format!("r{id}"),
            by: "me".into(),
            to,
            base: Box::new(base.clone()),
        };
        self.give(what);
        for round in 0..10_000 {
            if self.machine.status() != WorkflowStatus::RollingBack {
                break;
            }
            if pick & 64 == 64 && round == 2 {
                self.crash(pick);
            } else {
                self.answer(round, round % 5 != 3);
            }
        }
        assert_ne!(self.machine.status(), WorkflowStatus::RollingBack, "going back ends");
        assert_eq!(self.machine.state(), base.state());
        assert_eq!(self.machine.files(), base.files());
        // Checkpoints of the branch that was left are gone.
        self.bases.retain(|kept| kept.taken() <= to || kept.branch() == self.machine.branch());
    }

    fn step(&mut self, number: u32, step: u32) {
        let pick = step >> 8;
        match step % 32 {
            0..=13 => self.answer(pick, true),
            14..=17 => self.answer(pick, false),
            18..=21 => self.tick(),
            22..=27 => self.random_command(number, pick),
            28 => self.random_command(number / 2, pick),
            29 | 30 => self.crash(pick),
            _ => self.roll_back(number, pick),
        }
    }

    /// Answers everything until the workflow has ended.
    fn run_out(&mut self) {
        for round in 0..20_000_u32 {
            if self.machine.status().is_over() {
                return;
            }
            if self.machine.status() == WorkflowStatus::Paused {
                self.command(1_000_000 + round, WorkflowCommand::Continue);
            } else if !self.open.is_empty() {
                self.answer(round, true);
            } else if let Some(decision) = self.machine.decisions().into_iter().next() {
                let id = 1_000_000 + round;
                let how = DoubtResolution::Fail { reason: None };
                match decision.kind {
                    DecisionKind::InDoubt => {
                        self.command(id, WorkflowCommand::Resolve { task: decision.instance, how });
                    }
                    DecisionKind::Approval
                    | DecisionKind::Before
                    | DecisionKind::After
                    | DecisionKind::OnError => {
                        self.command(
                            id,
                            WorkflowCommand::Approve { decision: decision.id, value: None },
                        );
                    }
                }
            } else {
                assert!(
                    !self.machine.timers().is_empty(),
                    "it waits for nothing: {:#?}",
                    self.machine.tasks()
                );
                self.tick();
            }
        }
        panic!("it does not end: {:?}", self.machine.tasks());
    }

    /// The same inputs give the same bytes.
    fn replay(mut self) {
        let inputs = serde_json::to_string(&self.inputs).unwrap();
        let inputs: Vec<MachineInput> = belljar_contract::json_value::from_str(&inputs).unwrap();
        for (input, effects) in inputs.into_iter().zip(self.effects) {
            let again = self.first.apply(input).unwrap();
            assert_eq!(serde_json::to_string(&again).unwrap(), effects);
        }
        let (left, right) =
            (serde_json::to_string(&self.first), serde_json::to_string(&self.machine));
        assert_eq!(left.unwrap(), right.unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f3_whatever_happens_the_machine_keeps_its_promises(
        seeds in prop::collection::vec(any::<u32>(), 1..9),
        concurrency in 1_usize..5,
        habits in any::<u32>(),
        steps in prop::collection::vec(any::<u32>(), 0..60),
    ) {
        let mut world = World::new(workflow(&seeds, concurrency, habits), concurrency);
        for (number, step) in steps.into_iter().enumerate() {
            world.step(u32::try_from(number).unwrap(), step);
        }
        world.run_out();
        // After the end, every command is refused and nothing happens.
        for pick in 0..12 {
            world.random_command(2_000_000 + pick, pick + 60);
        }
        prop_assert!(world.machine.status().is_over() && world.open.is_empty());
        world.replay();
    }
}

/// A task that ran ahead of a decision is dropped when another task fails at the moment of taking over.
#[test]
fn f7_what_ran_ahead_is_not_waited_for_after_a_crash() {
    let seeds = [300783360, 14186240, 8390436, 4147361536, 155623765, 959760148];
    let steps = [2922469408_u32, 3864768, 3683443776, 786600178, 700763837];
    let mut world = World::new(workflow(&seeds, 2, 644466400), 2);
    for (number, step) in (0..).zip(steps) {
        world.step(number, step);
    }
    world.run_out();
}
