//! Running ahead of a decision.
//!
//! A task that waits only for an open decision may run as if the answer were yes, if it only reads.
//! Its result is held. When the task's turn comes, its work is rendered again: if it is the same,
//! the result is used, otherwise it is dropped.

use belljar_contract::JsonValue;
use belljar_contract::WorkflowStatus;

use super::Machine;
use super::names::NameLookup;
use super::parts::{NodeId, NodePhase, SpeculativeRun};
use crate::dag::Action;
use crate::effect::{Effect, TaskEnding, TaskOutcome};
use crate::event::WorkflowEventKind;
use crate::template::holds;

impl Machine {
    /// Runs the dependants of a node ahead, as if the node had this result.
    pub(super) fn run_dependants_ahead(&mut self, id: NodeId, value: &JsonValue) {
        let Some(node) = self.nodes.get(id) else { return };
        for dependant in node.dependants.clone() {
            let alone = self.nodes.get(dependant).is_some_and(|node| node.waiting == 1);
            if alone {
                self.run_ahead(dependant, Some((id, value)));
            }
        }
    }

    /// Runs a node ahead, if it may.
    pub(super) fn run_ahead(&mut self, id: NodeId, assume: Option<(NodeId, &JsonValue)>) {
        let Some((node, def)) = self.node(id) else { return };
        let right_kind = matches!(def.action, Action::CodeExecution(_) | Action::McpTool(_));
        let free = self.has_slot() && self.status == WorkflowStatus::Running;
        if !def.speculate || !right_kind || !free || node.attempt > 0 {
            return;
        }
        let place = NameLookup { assume, ..NameLookup::of(self, node) };
        let wanted = def.when.as_deref().is_none_or(|when| holds(when, &place).unwrap_or(false));
        let Ok(Some(work)) = self.work_of(node, &def, assume) else { return };
        if !wanted {
            return;
        }
        let key = self.key(&node.name, &work);
        let files = self.wants_files(node, &work).then(|| self.files.hold());
        let now = self.now_ms;
        let Some(node) = self.nodes.get_mut(id) else { return };
        node.attempt += 1;
        node.started_ms = Some(now);
        let attempt = node.attempt;
        node.ahead =
            Some(SpeculativeRun { attempt, key, files, work: work.clone(), outcome: None });
        self.running.insert(id);
        self.send_ahead(id, &work, files);
    }

    /// Stores the outcome of a run that ended before its decision.
    pub(super) fn speculation_ended(&mut self, id: NodeId, outcome: TaskOutcome) {
        self.running.remove(&id);
        if matches!(outcome.ending, TaskEnding::Failed { .. }) {
            return self.drop_ahead(id);
        }
        if let Some(ahead) = self.nodes.get_mut(id).and_then(|node| node.ahead.as_mut()) {
            ahead.outcome = Some(outcome);
        }
    }

    /// Uses a run ahead of a node whose turn has come, if its work is still the same.
    pub(super) fn adopt_ahead(&mut self, id: NodeId) -> bool {
        let Some((node, def)) = self.node(id) else { return false };
        let Some(ahead) = &node.ahead else { return false };
        let same_work = self
            .work_of(node, &def, None)
            .ok()
            .flatten()
            .is_some_and(|work| self.key(&node.name, &work) == ahead.key);
        let same_files = ahead.files.is_none_or(|files| files == self.files.version());
        if !same_work || !same_files {
            self.drop_ahead(id);
            return false;
        }
        let Some(node) = self.nodes.get_mut(id) else { return false };
        let Some(ahead) = node.ahead.take() else { return false };
        node.tries += 1;
        node.phase = NodePhase::Running;
        node.files = ahead.files;
        node.work = Some(ahead.work);
        let task = node.name.clone();
        self.emit(WorkflowEventKind::SpeculationAdopted { task });
        if let Some(outcome) = ahead.outcome {
            self.take_outcome(id, outcome);
        }
        true
    }

    /// Drops the run ahead of a node.
    pub(super) fn drop_ahead(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let Some(ahead) = node.ahead.take() else { return };
        let task = node.name.clone();
        if let Some(files) = ahead.files {
            self.files.release(files);
        }
        if self.running.remove(&id) {
            self.strays.insert((task.clone(), ahead.attempt));
            self.out.push(Effect::Cancel { instance: task.clone(), attempt: ahead.attempt });
        }
        self.emit(WorkflowEventKind::SpeculationDropped { task });
    }
}
