//! The parts of the machine's state: task instances, and the scopes they are in.
//!
//! A container (foreach, loop, workflow, fallback) opens a scope and ends when the scope is empty.
//! A scope knows which of its nodes have not ended, so that nothing is ever searched for.

use std::collections::{BTreeMap, BTreeSet};

use belljar_contract::{JsonMap, JsonValue};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// One task instance and its progress.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TaskNode {
    pub(crate) id: NodeId,
    /// The path of the instance, unique in the workflow.
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
    /// How many dependencies have not ended.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) waiting: u32,
    /// How many dependencies were skipped by their condition.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) unmet: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) dependants: Vec<NodeId>,
    /// The index and item of a foreach.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) item: Option<(usize, JsonValue)>,
    /// The scope the container opened.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) child: Option<ScopeId>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) timer: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) decision: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) result: JsonValue,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) failure: Option<TaskFailure>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) started_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) ended_ms: Option<u64>,
    /// Set while the node is being stopped.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) stop: Option<NodeStop>,
    /// The version of the files it sees.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) files: Option<u64>,
    /// The work that is being performed, or is in doubt.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) work: Option<TaskWork>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) ahead: Option<SpeculativeRun>,
    /// The decision before the task was taken.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) cleared: bool,
    /// The node counts towards the limit of its scope.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) counted: bool,
    /// The fallback has begun.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) fell_back: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TaskNode {
    /// Whether the node has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, NodePhase::Ended(_))
    }

    /// Whether nothing of the node has happened yet.
    pub(crate) fn is_fresh(&self) -> bool {
        // A node in decision that was never started waits for the decision before it.
        let early = [NodePhase::Waiting, NodePhase::Ready, NodePhase::Queued, NodePhase::Deciding];
        early.contains(&self.phase) && self.attempt == 0
    }
}

/// The state of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodePhase {
    /// Waits for its dependencies.
    #[default]
    Waiting,
    /// Will be looked at before the input ends.
    Ready,
    /// Waits for a free slot.
    Queued,
    /// Its work is being performed.
    Running,
    /// Waits for its next attempt.
    Backoff,
    /// A container whose scope is open.
    Inside,
    /// Waits for a decision.
    Deciding,
    /// Waits for a time.
    Sleeping,
    /// Waits for a person to say whether it took effect.
    InDoubt,
    /// Ended; nothing of it changes any more.
    Ended(NodeEnd),
}

/// How a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodeEnd {
    Completed,
    Failed,
    Continued,
    /// Skipped by its own condition: tasks that depend on nothing else are skipped too.
    Unmet,
    /// Skipped by a command or a jump.
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

/// A run ahead of an open decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpeculativeRun {
    pub(crate) attempt: u32,
    pub(crate) key: String,
    pub(crate) files: Option<u64>,
    pub(crate) work: TaskWork,
    /// The outcome, once the run has ended.
    pub(crate) outcome: Option<TaskOutcome>,
}

/// A set of nodes that ends when all of them have.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskScope {
    pub(crate) id: ScopeId,
    /// The container that opened the scope; `None` for the workflow itself.
    pub(crate) node: Option<NodeId>,
    /// The scope whose state, inputs and settings apply here.
    pub(crate) home: ScopeId,
    pub(crate) kind: ScopeKind,
    /// Nodes by the ids of their tasks.
    pub(crate) names: BTreeMap<String, NodeId>,
    /// Nodes that have not ended.
    pub(crate) open: BTreeSet<NodeId>,
    /// How many nodes may be under way in parallel, and how many are.
    pub(crate) limit: Option<usize>,
    pub(crate) busy: usize,
    /// Nodes that wait for one of these places.
    pub(crate) room: BTreeSet<NodeId>,
    /// The scope is being stopped: nothing more starts in it.
    pub(crate) stopped: bool,
    /// The failure that stopped it.
    pub(crate) failure: Option<TaskFailure>,
    /// Its end was handled.
    pub(crate) over: bool,
}

/// The kinds of scopes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeKind {
    /// A workflow, with its state and inputs.
    Flow(Box<Home>),
    /// The items of a foreach.
    Each(ForeachProgress),
    /// A round of a loop, by its number.
    Round(u32),
    /// The task that runs in place of a failed one.
    Fallback,
}

/// The state, inputs and settings of a workflow.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Home {
    pub(crate) settings: DagSettings,
    pub(crate) inputs: JsonMap,
    pub(crate) state: JsonMap,
    pub(crate) reducers: BTreeMap<String, Reducer>,
    pub(crate) output: Option<JsonValue>,
}

/// The progress of a foreach. Nodes are made when there is a free place for them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ForeachProgress {
    pub(crate) def: DefId,
    /// Items that have no node yet; null in place of those that have one.
    pub(crate) items: Vec<JsonValue>,
    pub(crate) next: usize,
    pub(crate) results: Vec<JsonValue>,
    pub(crate) failures: Vec<(usize, TaskFailure)>,
    pub(crate) fail_fast: bool,
}

/// The purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimerPurpose {
    /// The time limit of an attempt or a container.
    Timeout(NodeId),
    /// The next attempt of a node.
    Retry(NodeId),
    /// The end of a wait.
    Wake(NodeId),
    /// The deadline of a decision.
    Decision(u64),
    /// The time limit of the workflow.
    Whole,
}

/// A timer that is set.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Timer {
    pub(crate) at_ms: u64,
    pub(crate) what: TimerPurpose,
}

/// A decision that waits for its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PendingDecision {
    pub(crate) decision: WorkflowDecision,
    pub(crate) node: NodeId,
    pub(crate) timer: Option<u64>,
    /// The result that the workflow uses once the answer is yes.
    pub(crate) held: JsonValue,
}

/// An effect outside the workflow, for a rollback.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SideEffect {
    pub(crate) instance: String,
    /// The number of the input that reported it.
    pub(crate) at: u64,
    pub(crate) kind: SideEffectKind,
}

/// How a rollback undoes the effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SideEffectKind {
    /// By performing this work.
    Undo(TaskWork),
    /// Not at all: the task has no compensation.
    Lasting,
    /// Not at all: the compensation cannot be rendered.
    Broken(TaskFailure),
    /// Not at all: whether the task took effect is unknown.
    Doubt(Option<TaskFailure>),
    /// Not at all: the workflow this one was forked from did it.
    Elsewhere,
}

/// Nodes by number and by path. Serialized as a list.
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

/// Maps with numbers as keys, serialized as lists of pairs: as keys of JSON, numbers become text,
/// which cannot always be read back inside a [`MachineInput`](crate::MachineInput).
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
