//! The machine of a workflow: inputs in, effects out, nothing else.
//!
//! It has no clock, no randomness and no I/O. What it does depends on its state and the input alone,
//! so a journal of inputs is enough to have it again. An input touches what it changes and no more:
//! ready tasks, free slots and what a scope waits for are kept, never searched for.
//!
//! Rules it keeps. A task starts when its dependencies have ended, whatever else runs. A dependency
//! that was left out by its own condition counts as ended, with null as its result; a task all of
//! whose dependencies were left out so is left out too. Left out by command or by a jump, it holds
//! nobody back. What was stopped has ended only when its performer says so.

mod commands;
mod decide;
mod ending;
mod expand;
mod files;
mod names;
mod parts;
mod persons;
mod plan;
mod resume;
mod rollback;
mod schedule;
mod size;
mod speculate;
mod stopping;
mod tell;
#[cfg(test)]
mod tests;
mod view;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bounds;
use crate::check::DagFaults;
use crate::command::Acknowledgement;
use crate::dag::{Dag, Task};
use crate::effect::{
    Effect, InputKind, MachineInput, Repeatability, RollbackReport, TaskFailure, WorkflowStatus,
};
use crate::event::WorkflowEventKind;
use parts::{
    DefId, Home, NodeId, NodeTable, PendingDecision, ROOT, ScopeId, ScopeKind, SideEffect,
    TaskNode, TaskScope, Timer, TimerPurpose,
};
use rollback::Rollback;

/// A workflow under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    flow: String,
    /// When it was made: an id may be used again once its workflow is forgotten, and what the two do
    /// is not the same. 0 for one that an earlier version made.
    #[serde(default)]
    made_ms: i64,
    name: String,
    description: Option<String>,
    status: WorkflowStatus,
    /// How it will end, once it has stopped.
    ending: Option<WorkflowStatus>,
    failure: Option<TaskFailure>,
    output: Value,
    branch: u32,
    /// Inputs taken, and events told.
    taken: u64,
    told: u64,
    /// The time of the newest input.
    now_ms: u64,
    defs: Vec<Arc<Task>>,
    nodes: NodeTable,
    next_node: NodeId,
    #[serde(with = "parts::pairs")]
    scopes: BTreeMap<ScopeId, TaskScope>,
    next_scope: ScopeId,
    /// To be looked at, and for a slot.
    ready: BTreeSet<NodeId>,
    queue: BTreeSet<NodeId>,
    /// What is performed.
    running: BTreeSet<NodeId>,
    /// Of these, what was under way when its host went away, while the workflow was paused: it goes
    /// on when the workflow does.
    #[serde(default, with = "parts::pairs")]
    parked: BTreeMap<NodeId, Repeatability>,
    /// What ran ahead in vain and has not ended yet.
    strays: BTreeSet<(String, u32)>,
    #[serde(with = "parts::pairs")]
    timers: BTreeMap<u64, Timer>,
    next_timer: u64,
    #[serde(with = "parts::pairs")]
    decisions: BTreeMap<u64, PendingDecision>,
    next_decision: u64,
    commands: BTreeMap<String, Acknowledgement>,
    replans: u32,
    files: files::FileVersions,
    /// What whoever made it allowed it; nothing here looks at that.
    #[serde(default)]
    terms: Value,
    /// What was done in the world, oldest first.
    traces: Vec<SideEffect>,
    rollback: Option<Box<Rollback>>,
    /// A person paused it: no agent continues it.
    #[serde(default)]
    held: bool,
    /// Bytes that came to the state since they were last counted.
    #[serde(default)]
    grown: usize,
    /// Answers that persons gave, oldest first.
    #[serde(default)]
    answers: Vec<persons::PersonAnswer>,
    last_rollback: Option<RollbackReport>,
    /// What came with the inputs up to this one, the workflow it was forked from did.
    #[serde(default)]
    forked_at: u64,
    /// Inputs that were gone back over: after the first, up to the second.
    abandoned: Vec<(u64, u64)>,
    #[serde(skip)]
    out: Vec<Effect>,
    #[serde(skip)]
    worth_keeping: bool,
}

/// Why an input was not taken. The machine is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputRefusal {
    /// It never asked for that, or has had its answer.
    #[error("nothing waits for attempt {attempt} of {instance}")]
    NotWaiting {
        /// Which instance.
        instance: String,
        /// Which attempt.
        attempt: u32,
    },
    /// `Begin` comes first, and once.
    #[error("a workflow begins once, and first")]
    OutOfOrder,
    /// The machine given for a rollback is not this workflow at that checkpoint.
    #[error("that is not this workflow at checkpoint {to}")]
    WrongBase {
        /// Which checkpoint.
        to: u64,
    },
    /// A command that is too deep or too large to be kept.
    #[error("the command cannot be taken: {why}")]
    Unfit {
        /// Why.
        why: String,
    },
}

impl Machine {
    /// A workflow that has not begun: apply [`InputKind::Begin`] first.
    ///
    /// `inputs` are put over those the workflow has by default. Faults are those of
    /// [`check`](crate::check()), and inputs that the workflow does not have; tools are not looked at
    /// here.
    pub fn begin(flow: &str, dag: Dag, inputs: Map<String, Value>) -> Result<Self, DagFaults> {
        crate::check::check(&dag, None)?;
        crate::check::check_inputs(&dag, &inputs)?;
        if let Some(what) = bounds::unwritable(&inputs, bounds::STATE_BYTES) {
            return Err(DagFaults::of_the_whole("inputs", what));
        }
        let mut all = dag.inputs;
        all.extend(inputs);
        let home = Home {
            settings: dag.settings,
            inputs: all,
            state: dag.state,
            reducers: dag.reducers,
            output: dag.output,
        };
        let mut machine = Self::empty(flow, dag.name, dag.description);
        machine.open_scope(None, ScopeKind::Flow(Box::new(home)));
        machine.add_tasks(ROOT, dag.tasks);
        machine.out.clear();
        Ok(machine)
    }

    /// The same, made at this time.
    #[must_use]
    pub fn made_at(mut self, now_ms: i64) -> Self {
        self.made_ms = now_ms;
        self
    }

    /// The same with files that are there from the beginning.
    #[must_use]
    pub fn with_files(mut self, files: WorkflowFiles) -> Self {
        self.files = files::FileVersions::of(files);
        self
    }

    /// The same with what it is allowed, in its performer's words. No command changes it.
    #[must_use]
    pub fn with_terms(mut self, terms: Value) -> Self {
        self.terms = terms;
        self
    }

    fn empty(flow: &str, name: String, description: Option<String>) -> Self {
        Self {
            flow: flow.to_owned(),
            made_ms: 0,
            name,
            description,
            status: WorkflowStatus::New,
            ending: None,
            failure: None,
            output: Value::Null,
            branch: 0,
            taken: 0,
            told: 0,
            now_ms: 0,
            defs: Vec::new(),
            nodes: NodeTable::default(),
            next_node: 0,
            scopes: BTreeMap::new(),
            next_scope: ROOT,
            ready: BTreeSet::new(),
            queue: BTreeSet::new(),
            running: BTreeSet::new(),
            parked: BTreeMap::new(),
            strays: BTreeSet::new(),
            timers: BTreeMap::new(),
            next_timer: 1,
            decisions: BTreeMap::new(),
            next_decision: 1,
            commands: BTreeMap::new(),
            replans: 0,
            files: files::FileVersions::default(),
            terms: Value::Null,
            traces: Vec::new(),
            rollback: None,
            held: false,
            grown: 0,
            answers: Vec::new(),
            last_rollback: None,
            forked_at: 0,
            abandoned: Vec::new(),
            out: Vec::new(),
            worth_keeping: false,
        }
    }

    /// Takes one input. On refusal nothing has changed and nothing needs to be journalled.
    pub fn apply(&mut self, input: MachineInput) -> Result<Vec<Effect>, InputRefusal> {
        let input = bounds::bounded(input);
        self.admit(&input.what)?;
        self.taken += 1;
        // A clock that went back must not make anything last longer.
        self.now_ms = self.now_ms.max(input.now_ms);
        match input.what {
            InputKind::Begin => self.started(),
            InputKind::Ended { instance, attempt, outcome } => {
                self.ended(&instance, attempt, outcome)
            }
            InputKind::Fired { timer } => self.fired(timer),
            InputKind::Command { id, by, command } => self.commanded(id, &by, command),
            InputKind::Resumed { open } => self.resumed(&open),
            InputKind::RollBack { id, by, to, base } => self.roll_back(id, &by, to, base),
        }
        self.settle();
        self.keep();
        Ok(std::mem::take(&mut self.out))
    }

    /// Whether an input can be taken at all.
    fn admit(&self, what: &InputKind) -> Result<(), InputRefusal> {
        let begins = matches!(what, InputKind::Begin);
        if begins != (self.status == WorkflowStatus::New) {
            return Err(InputRefusal::OutOfOrder);
        }
        match what {
            InputKind::Ended { instance, attempt, .. } if !self.awaits(instance, *attempt) => {
                Err(InputRefusal::NotWaiting { instance: instance.clone(), attempt: *attempt })
            }
            InputKind::RollBack { to, base, .. } if base.flow != self.flow || base.taken != *to => {
                Err(InputRefusal::WrongBase { to: *to })
            }
            InputKind::Command { command, .. } => {
                let unfit = bounds::unwritable(command, bounds::VALUE_BYTES);
                unfit.map_or(Ok(()), |why| Err(InputRefusal::Unfit { why }))
            }
            InputKind::Begin
            | InputKind::Ended { .. }
            | InputKind::Fired { .. }
            | InputKind::Resumed { .. }
            | InputKind::RollBack { .. } => Ok(()),
        }
    }

    fn started(&mut self) {
        self.status = WorkflowStatus::Running;
        self.tell(WorkflowEventKind::WorkflowStarted { name: self.name.clone() });
        // The beginning can be gone back to.
        self.worth_keeping = true;
        if let Some(ms) = self.home(ROOT).and_then(|home| home.settings.timeout_ms) {
            self.set_timer(ms, TimerPurpose::Whole);
        }
        self.end_if_empty(ROOT);
    }

    /// The state, inputs and settings that hold in a scope.
    fn home(&self, scope: ScopeId) -> Option<&Home> {
        match &self.scopes.get(&self.scopes.get(&scope)?.home)?.kind {
            ScopeKind::Flow(home) => Some(home),
            ScopeKind::Each(_) | ScopeKind::Round(_) | ScopeKind::Fallback => None,
        }
    }

    fn home_mut(&mut self, scope: ScopeId) -> Option<&mut Home> {
        let home = self.scopes.get(&scope)?.home;
        match &mut self.scopes.get_mut(&home)?.kind {
            ScopeKind::Flow(home) => Some(home),
            ScopeKind::Each(_) | ScopeKind::Round(_) | ScopeKind::Fallback => None,
        }
    }

    fn def(&self, id: DefId) -> Option<&Arc<Task>> {
        self.defs.get(usize::try_from(id).ok()?)
    }

    /// A node with its definition.
    fn node(&self, id: NodeId) -> Option<(&TaskNode, Arc<Task>)> {
        let node = self.nodes.get(id)?;
        Some((node, Arc::clone(self.def(node.def)?)))
    }
}

/// A workflow's files: path to entry.
pub type WorkflowFiles = std::collections::BTreeMap<String, crate::effect::FileEntry>;

/// One task instance, for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its path: `fetch`, `each[3]`, `sub/fetch`, `again#2/step`.
    pub instance: String,
    /// The container it is part of.
    pub parent: Option<String>,
    /// Which kind.
    pub kind: String,
    /// Where it is.
    pub status: TaskStatus,
    /// The newest attempt.
    pub attempt: u32,
    /// When its newest attempt began.
    pub started_ms: Option<u64>,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// Why it failed.
    pub failure: Option<crate::effect::TaskFailure>,
    /// What it depends on.
    pub depends_on: Vec<String>,
}

/// Where a task instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// For what it depends on.
    Waiting,
    /// For its turn.
    Ready,
    /// It is performed, or its parts are.
    Running,
    /// For its next attempt.
    Retrying,
    /// For somebody.
    Deciding,
    /// For time.
    Sleeping,
    /// For somebody who knows whether it happened.
    InDoubt,
    /// It ended well.
    Completed,
    /// It failed.
    Failed,
    /// It failed, and the workflow goes on.
    Continued,
    /// It was left out.
    Skipped,
    /// It was stopped, or never began.
    Cancelled,
}
