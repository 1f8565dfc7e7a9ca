//! Read-only views of a machine.

use std::sync::LazyLock;

use belljar_contract::{JsonMap, JsonValue};
use belljar_contract::{TaskStatus, WorkflowStatus};

use super::parts::{NodeEnd, NodePhase, ROOT, ScopeKind, TaskNode};
use super::{Machine, TaskView, WorkflowFiles};
use crate::command::Acknowledgement;
use crate::dag::{Action, Dag};
use crate::effect::{RollbackReport, TaskFailure, WorkflowDecision};

/// How many choices a refusal names.
pub(super) const SHOWN: usize = 20;

static NONE: LazyLock<JsonMap> = LazyLock::new(JsonMap::new);

impl Machine {
    /// The id of the workflow.
    pub fn flow(&self) -> &str {
        &self.flow
    }

    /// The status of the workflow as a whole.
    pub fn status(&self) -> WorkflowStatus {
        self.status
    }

    /// The number of the newest input, which is also that of the checkpoint after it.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The number of the newest event.
    pub fn last_event(&self) -> u64 {
        self.last_event
    }

    /// The branch the workflow is on: grows with every rollback.
    pub fn branch(&self) -> u32 {
        self.branch
    }

    /// The workflow as it is now, with all injected, replanned and modified tasks. Built on each
    /// call.
    pub fn dag(&self) -> Dag {
        let mut dag = Dag { name: self.name.clone(), ..Dag::default() };
        dag.description.clone_from(&self.description);
        let Some(root) = self.scopes.get(&ROOT) else { return dag };
        if let ScopeKind::Flow(home) = &root.kind {
            dag.inputs.clone_from(&home.inputs);
            dag.reducers.clone_from(&home.reducers);
            dag.state.clone_from(&home.state);
            dag.settings = home.settings.clone();
            dag.output.clone_from(&home.output);
        }
        let mut ids: Vec<_> = root.names.values().copied().collect();
        ids.sort_unstable();
        let nodes = ids.into_iter().filter_map(|id| self.node(id));
        dag.tasks = nodes.map(|(_, def)| (*def).clone()).collect();
        dag
    }

    /// The inputs given to the workflow, with its defaults.
    pub fn inputs(&self) -> &JsonMap {
        self.home(ROOT).map_or(&NONE, |home| &home.inputs)
    }

    /// The state of the workflow, by part.
    pub fn state(&self) -> &JsonMap {
        self.home(ROOT).map_or(&NONE, |home| &home.state)
    }

    /// The results of tasks that have ended, by id. Built on each call.
    pub fn results(&self) -> JsonMap {
        let Some(root) = self.scopes.get(&ROOT) else { return JsonMap::new() };
        let nodes = root.names.iter().filter_map(|(name, id)| Some((name, self.nodes.get(*id)?)));
        let ended = nodes.filter(|(_, node)| node.has_ended());
        ended.map(|(name, node)| (name.clone(), node.result.clone())).collect()
    }

    /// The output of the workflow; null until it has completed.
    pub fn output(&self) -> &JsonValue {
        &self.output
    }

    /// Why the workflow failed or was aborted.
    pub fn failure(&self) -> Option<&TaskFailure> {
        self.failure.as_ref()
    }

    /// Every task instance in the order of creation; of a loop, the last two rounds.
    pub fn tasks(&self) -> Vec<TaskView> {
        self.nodes.iter().filter_map(|node| self.view(node)).collect()
    }

    /// The task instance at a path.
    pub fn task(&self, instance: &str) -> Option<TaskView> {
        self.view(self.nodes.get(self.nodes.named(instance)?)?)
    }

    /// The result of a task instance that has ended.
    pub fn result_of(&self, instance: &str) -> Option<&JsonValue> {
        let node = self.nodes.get(self.nodes.named(instance)?)?;
        node.has_ended().then_some(&node.result)
    }

    fn view(&self, node: &TaskNode) -> Option<TaskView> {
        let def = self.def(node.def)?;
        let parent = self.scopes.get(&node.scope)?.node;
        Some(TaskView {
            instance: node.name.clone(),
            parent: parent.and_then(|id| Some(self.nodes.get(id)?.name.clone())),
            kind: kind(&def.action).to_owned(),
            status: status(node),
            attempt: node.attempt,
            started_ms: node.started_ms,
            ended_ms: node.ended_ms,
            failure: node.failure.clone(),
            depends_on: def.depends_on.clone(),
        })
    }

    /// Attempts under way: the path of the instance, the key of its work, and the attempt.
    pub fn under_way(&self) -> Vec<(String, String, u32)> {
        let running = self.running.iter().filter_map(|id| self.nodes.get(*id));
        let keyed = running.filter_map(|node| {
            Some((node.name.clone(), self.key(&node.name, node.work.as_ref()?), node.attempt))
        });
        keyed.collect()
    }

    /// Open decisions, oldest first.
    pub fn decisions(&self) -> Vec<WorkflowDecision> {
        self.decisions.values().map(|pending| pending.decision.clone()).collect()
    }

    /// The terms given by [`with_terms`](Self::with_terms).
    pub fn terms(&self) -> &JsonValue {
        &self.terms
    }

    /// The newest version of the workflow's files.
    pub fn files(&self) -> &WorkflowFiles {
        self.files.now()
    }

    /// A version of the files that a running task sees.
    pub fn files_at(&self, version: u64) -> Option<&WorkflowFiles> {
        self.files.at(version)
    }

    /// Timers that are set: id and time.
    pub fn timers(&self) -> Vec<(u64, u64)> {
        self.timers.iter().map(|(id, timer)| (*id, timer.at_ms)).collect()
    }

    /// Attempts under way: instance and attempt.
    pub fn running(&self) -> Vec<(String, u32)> {
        let performed = self.running.iter().filter(|id| !self.parked.contains_key(id));
        let nodes = performed.filter_map(|id| self.nodes.get(*id));
        let mut all: Vec<_> = nodes
            .map(|node| {
                let ahead = node.ahead.as_ref().map(|ahead| ahead.attempt);
                (node.name.clone(), ahead.unwrap_or(node.attempt))
            })
            .collect();
        all.extend(self.strays.iter().cloned());
        all.extend(self.undoing());
        all
    }

    /// Why there is no decision of this id to answer, with the decisions that are open.
    pub fn unknown_decision(&self, id: &str) -> String {
        let open: Vec<String> =
            self.decisions().iter().take(SHOWN).map(|one| one.id.clone()).collect();
        match open.is_empty() {
            true => format!("no decision {id} is open, and no other"),
            false => format!("no decision {id} is open; open decisions: {}", open.join(", ")),
        }
    }

    /// The report of the last rollback.
    pub fn last_rollback(&self) -> Option<&RollbackReport> {
        self.last_rollback.as_ref()
    }

    /// The answer to a command, by its id.
    pub fn acknowledgement(&self, command: &str) -> Option<&Acknowledgement> {
        self.commands.get(command)
    }
}

/// The state of a node, for people.
pub(crate) fn status(node: &TaskNode) -> TaskStatus {
    match node.phase {
        NodePhase::Waiting => TaskStatus::Waiting,
        NodePhase::Ready | NodePhase::Queued => TaskStatus::Ready,
        NodePhase::Running | NodePhase::Inside => TaskStatus::Running,
        NodePhase::Backoff => TaskStatus::Retrying,
        NodePhase::Deciding => TaskStatus::Deciding,
        NodePhase::Sleeping => TaskStatus::Sleeping,
        NodePhase::InDoubt => TaskStatus::InDoubt,
        NodePhase::Ended(NodeEnd::Completed) => TaskStatus::Completed,
        NodePhase::Ended(NodeEnd::Failed) => TaskStatus::Failed,
        NodePhase::Ended(NodeEnd::Continued) => TaskStatus::Continued,
        NodePhase::Ended(NodeEnd::Unmet | NodeEnd::Skipped) => TaskStatus::Skipped,
        NodePhase::Ended(NodeEnd::Cancelled) => TaskStatus::Cancelled,
    }
}

/// The type of a task, as in its file.
pub(crate) fn kind(action: &Action) -> &'static str {
    match action {
        Action::McpTool(_) => "mcp_tool",
        Action::CodeExecution(_) => "code_execution",
        Action::Sandbox(_) => "sandbox",
        Action::Approval { .. } => "approval",
        Action::Foreach(_) => "foreach",
        Action::Loop(_) => "loop",
        Action::Workflow { .. } => "workflow",
        Action::Wait(_) => "wait",
        Action::Pass { .. } => "pass",
    }
}
