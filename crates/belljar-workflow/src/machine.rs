//! The machine of a workflow: inputs in, effects out, nothing else.
//!
//! It has no clock, no randomness and no I/O. Its effects depend on its state and the input alone,
//! so a journal of inputs is enough to rebuild it. Ready tasks, free slots and open nodes are kept
//! in sets, so that an input never searches the whole graph.
//!
//! Rules it keeps. A task starts when its dependencies have ended, whatever else runs. A dependency
//! skipped by its own condition counts as ended, with null as its result; a task whose dependencies
//! were all skipped so is skipped too. A task skipped by a command or a jump holds no other task
//! back. A task that was stopped has ended only when its performer says so.

mod commands;
mod decide;
mod emit;
mod ending;
mod expand;
mod files;
mod names;
mod parts;
mod permissions;
mod plan;
mod resume;
mod rollback;
mod schedule;
mod size;
mod speculate;
mod stopping;

#[cfg(test)]
mod tests;
mod view;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use belljar_contract::{JsonMap, JsonValue};
use belljar_contract::{TaskStatus, WorkflowStatus};
use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::check::DagFaults;
use crate::command::Acknowledgement;
use crate::dag::{Dag, Task};
use crate::effect::{Effect, InputKind, MachineInput, Repeatability, RollbackReport, TaskFailure};
use crate::event::WorkflowEventKind;
use parts::{
    DefId, Home, NodeId, NodeTable, PendingDecision, ROOT, ScopeId, ScopeKind, SideEffect,
    TaskNode, TaskScope, Timer, TimerPurpose,
};
use rollback::Rollback;

/// A workflow and its whole state. Its JSON is the snapshot that the store holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    flow: String,
    /// When the workflow was created. An id may be used again once its workflow is forgotten; this
    /// keeps the keys of the two apart. 0 in snapshots of earlier versions.
    #[serde(default)]
    made_ms: i64,
    name: String,
    description: Option<String>,
    status: WorkflowStatus,
    /// The status the workflow will have once its running tasks have stopped.
    ending: Option<WorkflowStatus>,
    failure: Option<TaskFailure>,
    output: JsonValue,
    branch: u32,
    /// The number of the newest input.
    taken: u64,
    /// The number of the newest event; `told` in every snapshot that was ever stored.
    #[serde(rename = "told")]
    last_event: u64,
    /// The time of the newest input.
    now_ms: u64,
    defs: Vec<Arc<Task>>,
    nodes: NodeTable,
    next_node: NodeId,
    #[serde(with = "parts::pairs")]
    scopes: BTreeMap<ScopeId, TaskScope>,
    next_scope: ScopeId,
    /// Nodes to look at next, and nodes that wait for a slot.
    ready: BTreeSet<NodeId>,
    queue: BTreeSet<NodeId>,
    /// Nodes that are being performed.
    running: BTreeSet<NodeId>,
    /// Of these, nodes whose host went away while the workflow was paused: they resume with the
    /// workflow.
    #[serde(default, with = "parts::pairs")]
    parked: BTreeMap<NodeId, Repeatability>,
    /// Dropped speculative runs that have not ended yet.
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
    /// The permissions from the creator of the workflow. Only the performer reads them.
    #[serde(default)]
    terms: JsonValue,
    /// Effects outside the workflow, oldest first, for a rollback.
    traces: Vec<SideEffect>,
    rollback: Option<Box<Rollback>>,
    /// A person paused the workflow: no agent may continue it.
    #[serde(default)]
    held: bool,
    /// Bytes added to the state since they were last counted.
    #[serde(default)]
    grown: usize,
    /// Answers of persons, oldest first.
    #[serde(default)]
    answers: Vec<permissions::PersonAnswer>,
    last_rollback: Option<RollbackReport>,
    /// The number of the last input of the parent workflow; 0 unless this is a fork.
    #[serde(default)]
    forked_at: u64,
    /// Ranges of inputs that were rolled back: after the first number, up to the second.
    abandoned: Vec<(u64, u64)>,
    #[serde(skip)]
    out: Vec<Effect>,
    #[serde(skip)]
    worth_keeping: bool,
}

/// Why an input was refused. The machine is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputRefusal {
    /// The machine did not start that attempt, or has its outcome already.
    #[error("attempt {attempt} of {instance} is not under way")]
    NotWaiting {
        /// The instance in the input.
        instance: String,
        /// The attempt in the input.
        attempt: u32,
    },
    /// `Begin` has to be the first input and comes once.
    #[error("`begin` must be the first input, and comes once")]
    OutOfOrder,
    /// The machine given for a rollback is not this workflow at that checkpoint.
    #[error("the state given for the rollback is not this workflow at checkpoint {to}")]
    WrongBase {
        /// The number of the checkpoint in the command.
        to: u64,
    },
    /// The command is nested too deeply or is too large.
    #[error("the command is refused: {why}")]
    Unfit {
        /// Which limit it exceeds.
        why: String,
    },
}

impl Machine {
    /// A workflow that has not begun: apply [`InputKind::Begin`] first.
    ///
    /// `inputs` override the workflow's defaults. Faults are those of [`check`](crate::check()) and
    /// inputs that the workflow does not declare; names of tools are not checked here.
    pub fn begin(flow: &str, dag: Dag, inputs: JsonMap) -> Result<Self, DagFaults> {
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

    /// The same workflow with a time of creation.
    #[must_use]
    pub fn made_at(mut self, now_ms: i64) -> Self {
        self.made_ms = now_ms;
        self
    }

    /// The same workflow with initial files.
    #[must_use]
    pub fn with_files(mut self, files: WorkflowFiles) -> Self {
        self.files = files::FileVersions::of(files);
        self
    }

    /// The same workflow with terms: what it is allowed, in a form only the performer reads. No
    /// command changes them.
    #[must_use]
    pub fn with_terms(mut self, terms: JsonValue) -> Self {
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
            output: JsonValue::Null,
            branch: 0,
            taken: 0,
            last_event: 0,
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
            terms: JsonValue::Null,
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

    /// Applies one input. A refused input changes nothing and need not be journalled.
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
        self.start_ready();
        self.mark_checkpoint();
        Ok(std::mem::take(&mut self.out))
    }

    /// Whether an input can be applied at all.
    fn admit(&self, what: &InputKind) -> Result<(), InputRefusal> {
        let begins = matches!(what, InputKind::Begin);
        if begins != (self.status == WorkflowStatus::New) {
            return Err(InputRefusal::OutOfOrder);
        }
        match what {
            InputKind::Ended { instance, attempt, .. }
                if !self.is_waiting_for(instance, *attempt) =>
            {
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
        self.emit(WorkflowEventKind::WorkflowStarted { name: self.name.clone() });
        // The beginning is a checkpoint too.
        self.worth_keeping = true;
        if let Some(ms) = self.home(ROOT).and_then(|home| home.settings.timeout_ms) {
            self.set_timer(ms, TimerPurpose::Whole);
        }
        self.end_if_empty(ROOT);
    }

    /// The state, inputs and settings that apply in a scope.
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

    /// A node and its definition.
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
    /// The path of the container around it.
    pub parent: Option<String>,
    /// The type of the task, as in its file.
    pub kind: String,
    /// The state of the instance.
    pub status: TaskStatus,
    /// The newest attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// When its newest attempt began.
    pub started_ms: Option<u64>,
    /// When the instance ended, whatever way.
    pub ended_ms: Option<u64>,
    /// The failure of its last attempt.
    pub failure: Option<crate::effect::TaskFailure>,
    /// The ids of the tasks it depends on.
    pub depends_on: Vec<String>,
}
