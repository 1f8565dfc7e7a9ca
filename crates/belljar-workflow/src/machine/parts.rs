//! What the machine is made of: task instances, and the scopes they live in.
//!
//! A container (foreach, loop, workflow, fallback) opens a scope and ends when it is empty. A scope
//! knows which of its nodes have not ended, so that nothing is ever searched for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::dag::{DagSettings, Reducer};
use crate::effect::{TaskFailure, TaskOutcome, TaskWork, WorkflowDecision};

/// The number of a node.
pub(crate) type NodeId = u32;
/// The number of a scope.
pub(crate) type ScopeId = u32;
/// The number of a task's definition.
pub(crate) type DefId = u32;
/// The scope of the workflow itself.
pub(crate) const ROOT: ScopeId = 0;

/// One task instance.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TaskNode {
    pub(crate) id: NodeId,
    /// Its path.
    pub(crate) name: String,
    pub(crate) def: DefId,
    pub(crate) scope: ScopeId,
    pub(crate) phase: NodePhase,
    /// Grows with every start.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) attempt: u32,
    /// Starts that count for `retry`.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) tries: u32,
    /// Dependencies that have not ended.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) waiting: u32,
    /// Dependencies that were left out in a way that spreads.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) unmet: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) dependants: Vec<NodeId>,
    /// The item of a foreach, and where it stood.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) item: Option<(usize, Value)>,
    /// The scope it opened.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) child: Option<ScopeId>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) timer: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) decision: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) result: Value,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) failure: Option<TaskFailure>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) started_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) ended_ms: Option<u64>,
    /// It is being stopped, and why.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) stop: Option<NodeStop>,
    /// The version of the files it sees.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) files: Option<u64>,
    /// What is performed, or is in doubt.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) work: Option<TaskWork>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) ahead: Option<SpeculativeRun>,
    /// The decision before it was taken.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) cleared: bool,
    /// It counts for the bound of its scope.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) counted: bool,
    /// Its fallback was begun.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) fell_back: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TaskNode {
    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, NodePhase::Ended(_))
    }

    /// Whether nothing of it has happened yet.
    pub(crate) fn is_fresh(&self) -> bool {
        // One that is decided about and was never started waits for the decision before it.
        let early = [NodePhase::Waiting, NodePhase::Ready, NodePhase::Queued, NodePhase::Deciding];
        early.contains(&self.phase) && self.attempt == 0
    }
}

/// Where a node is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodePhase {
    /// For dependencies.
    #[default]
    Waiting,
    /// To be looked at.
    Ready,
    /// For a slot.
    Queued,
    /// It is performed.
    Running,
    /// For its next attempt.
    Backoff,
    /// Its scope is open.
    Inside,
    /// For somebody.
    Deciding,
    /// For time.
    Sleeping,
    /// For somebody who knows.
    InDoubt,
    /// It has ended.
    Ended(NodeEnd),
}

/// How a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodeEnd {
    Completed,
    Failed,
    Continued,
    /// Left out by its own condition: what depends on nothing else is left out too.
    Unmet,
    /// Left out by command or by a jump.
    Skipped,
    Cancelled,
}

/// Why a node is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodeStop {
    Timeout,
    Skip,
    Scope,
}

/// What runs ahead of a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpeculativeRun {
    pub(crate) attempt: u32,
    pub(crate) key: String,
    pub(crate) files: Option<u64>,
    pub(crate) work: TaskWork,
    /// How it ended, if it has.
    pub(crate) outcome: Option<TaskOutcome>,
}

/// A set of nodes that ends when they have.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskScope {
    pub(crate) id: ScopeId,
    /// The container.
    pub(crate) node: Option<NodeId>,
    /// The scope whose state, inputs and settings hold here.
    pub(crate) home: ScopeId,
    pub(crate) kind: ScopeKind,
    /// Tasks by their own ids.
    pub(crate) names: BTreeMap<String, NodeId>,
    /// Nodes that have not ended.
    pub(crate) open: BTreeSet<NodeId>,
    /// How many may be under way at once, and are.
    pub(crate) limit: Option<usize>,
    pub(crate) busy: usize,
    /// Those that wait for that.
    pub(crate) room: BTreeSet<NodeId>,
    /// It is being stopped: nothing more starts in it.
    pub(crate) stopped: bool,
    /// What made it stop.
    pub(crate) failure: Option<TaskFailure>,
    /// Its end was dealt with.
    pub(crate) over: bool,
}

/// What kind of scope.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeKind {
    /// A workflow.
    Flow(Box<Home>),
    /// Items of a foreach.
    Each(ForeachProgress),
    /// A round of a loop.
    Round(u32),
    /// What is done in place of a task.
    Fallback,
}

/// What a workflow has of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Home {
    pub(crate) settings: DagSettings,
    pub(crate) inputs: Map<String, Value>,
    pub(crate) state: Map<String, Value>,
    pub(crate) reducers: BTreeMap<String, Reducer>,
    pub(crate) output: Option<Value>,
}

/// A foreach under way. Nodes are made as there is room for them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ForeachProgress {
    pub(crate) def: DefId,
    /// Items that have no node yet; null in place of those that have.
    pub(crate) items: Vec<Value>,
    pub(crate) next: usize,
    pub(crate) results: Vec<Value>,
    pub(crate) failures: Vec<(usize, TaskFailure)>,
    pub(crate) fail_fast: bool,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimerPurpose {
    /// An attempt or a container took too long.
    Timeout(NodeId),
    /// The next attempt.
    Retry(NodeId),
    /// A wait is over.
    Wake(NodeId),
    /// A decision took too long.
    Decision(u64),
    /// The workflow took too long.
    Whole,
}

/// A timer that is set.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Timer {
    pub(crate) at_ms: u64,
    pub(crate) what: TimerPurpose,
}

/// A decision that is open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PendingDecision {
    pub(crate) decision: WorkflowDecision,
    pub(crate) node: NodeId,
    pub(crate) timer: Option<u64>,
    /// The result that waits for it.
    pub(crate) held: Value,
}

/// Something that left a trace in the world.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SideEffect {
    pub(crate) instance: String,
    /// The input that told.
    pub(crate) at: u64,
    pub(crate) kind: SideEffectKind,
}

/// What can be done about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SideEffectKind {
    /// This undoes it.
    Undo(TaskWork),
    /// Nothing.
    Lasting,
    /// Its compensation cannot be rendered.
    Broken(TaskFailure),
    /// Nobody knows whether it happened.
    Doubt(Option<TaskFailure>),
    /// The workflow this one was forked from did it.
    Elsewhere,
}

/// Nodes, by number and by name. Written as a list.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeTable {
    list: BTreeMap<NodeId, TaskNode>,
    names: BTreeMap<String, NodeId>,
}

impl NodeTable {
    pub(crate) fn get(&self, id: NodeId) -> Option<&TaskNode> {
        self.list.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: NodeId) -> Option<&mut TaskNode> {
        self.list.get_mut(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn named(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    pub(crate) fn insert(&mut self, node: TaskNode) {
        self.names.insert(node.name.clone(), node.id);
        self.list.insert(node.id, node);
    }

    pub(crate) fn remove(&mut self, id: NodeId) -> Option<TaskNode> {
        let node = self.list.remove(&id)?;
        self.names.remove(&node.name);
        Some(node)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TaskNode> {
        self.list.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TaskNode> {
        self.list.values_mut()
    }
}

impl Serialize for NodeTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.list.values())
    }
}

impl<'de> Deserialize<'de> for NodeTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut nodes = Self::default();
        for node in Vec::<TaskNode>::deserialize(deserializer)? {
            nodes.insert(node);
        }
        Ok(nodes)
    }
}

/// Maps with numbers as keys, written as lists of pairs: as keys of JSON, numbers become text, and are
/// not always read back inside an [`MachineInput`](crate::MachineInput).
pub(crate) mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}
