//! Resuming after a crash: tasks under way are known only from their intents.

use std::collections::{BTreeMap, BTreeSet};

use belljar_contract::WorkflowStatus;

use super::Machine;
use super::parts::{NodeId, NodePhase, NodeStop};
use crate::dag::{Action, Task};
use crate::effect::{Effect, OpenIntent, Repeatability, TaskFailure};
use crate::event::WorkflowEventKind;

impl Machine {
    /// Sets the id and time of creation: a fork has the state of another workflow at a checkpoint,
    /// and keys of its own.
    pub(crate) fn adopt(&mut self, flow: &str, made_ms: i64, forked_at: Option<u64>) {
        // A fork may have the id of one of its former ancestors.
        if self.flow != flow || forked_at.is_some() {
            flow.clone_into(&mut self.flow);
            self.made_ms = made_ms;
        }
        self.forked_at = forked_at.unwrap_or_default();
    }

    /// A host has taken over. Repeatable tasks are started again under their keys, at once or after
    /// a pause; others are in doubt; timers and decisions are announced again.
    pub(super) fn resumed(&mut self, open: &[OpenIntent]) {
        if self.status.is_over() {
            return;
        }
        self.emit(WorkflowEventKind::WorkflowResumed);
        let by_attempt: BTreeMap<(&str, u32), Repeatability> =
            open.iter().map(|open| ((open.instance.as_str(), open.attempt), open.again)).collect();
        let again = |instance: &str, attempt: u32| {
            by_attempt.get(&(instance, attempt)).copied().unwrap_or(Repeatability::Unknown)
        };
        self.strays.clear();
        self.announce_timers_and_decisions();
        if self.rollback.is_some() {
            return self.resume_rollback(again);
        }
        let running: Vec<NodeId> = self.running.iter().copied().collect();
        for id in running {
            let Some(node) = self.nodes.get(id) else { continue };
            let by_intent = again(&node.name, node.attempt);
            // A parked node has no intent; whether it may be repeated was recorded when it was parked.
            let again = self.parked.remove(&id).unwrap_or(by_intent);
            self.take_up(id, again);
        }
        self.cancel_only_what_runs();
        self.after_stopping();
    }

    /// A resumed task may stop others before their turn: those must not run, so only running ones
    /// are cancelled.
    fn cancel_only_what_runs(&mut self) {
        let started: BTreeSet<(String, u32)> = self
            .out
            .iter()
            .filter_map(|effect| {
                let Effect::Start(start) = effect else { return None };
                Some((start.instance.clone(), start.attempt))
            })
            .collect();
        self.out.retain(|effect| {
            let Effect::Cancel { instance, attempt } = effect else { return true };
            started.contains(&(instance.clone(), *attempt))
        });
        // Their host is gone, so no outcome will come.
        self.strays.retain(|stray| started.contains(stray));
    }

    /// Announces open timers and decisions again.
    pub(super) fn announce_timers_and_decisions(&mut self) {
        for (timer, set) in &self.timers {
            self.out.push(Effect::Timer { timer: *timer, at_ms: set.at_ms });
        }
        for pending in self.decisions.values() {
            self.out.push(Effect::Ask(pending.decision.clone()));
        }
    }

    fn take_up(&mut self, id: NodeId, again: Repeatability) {
        let Some((node, def)) = self.node(id) else { return };
        if node.ahead.is_some() {
            self.running.remove(&id);
            return self.drop_ahead(id);
        }
        let harmless = is_harmless(&def, again);
        let stopping = node.stop.is_some();
        let timer = self.nodes.get_mut(id).and_then(|node| node.timer.take());
        self.forget(timer);
        if stopping {
            self.end_stopped(id, again);
        } else if again == Repeatability::NotBegun && self.status == WorkflowStatus::Paused {
            // Commands may still change the task, or replan it away.
            self.running.remove(&id);
            self.take_back_start(id);
            self.enqueue(id);
        } else if harmless && self.status == WorkflowStatus::Paused {
            self.parked.insert(id, again);
        } else if harmless {
            self.send(id, again != Repeatability::NotBegun);
        } else {
            self.running.remove(&id);
            self.release_files(id);
            self.set_phase(id, NodePhase::InDoubt);
            self.ask_whether_it_happened(id);
        }
    }

    /// Undoes a start that was certainly not performed. A node that was never started before has
    /// not begun.
    pub(super) fn take_back_start(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let (timer, seen, ahead) = (node.timer.take(), node.files.take(), node.ahead.take());
        node.attempt = node.attempt.saturating_sub(1);
        if ahead.is_none() {
            node.tries = node.tries.saturating_sub(1);
        }
        if node.attempt == 0 {
            node.started_ms = None;
        }
        node.work = None;
        if let Some(seen) = seen.or(ahead.and_then(|ahead| ahead.files)) {
            self.files.release(seen);
        }
        self.timers.retain(|id, _| Some(*id) != timer);
    }

    /// Ends a node that is being stopped and is not performed any more.
    fn end_stopped(&mut self, id: NodeId, again: Repeatability) {
        let Some((_, def)) = self.node(id) else { return };
        let own_journal = matches!(def.action, Action::CodeExecution(_));
        let harmless = is_harmless(&def, again);
        self.running.remove(&id);
        self.release_files(id);
        let failure = TaskFailure {
            may_have_acted: again != Repeatability::NotBegun,
            ..TaskFailure::new("cancelled", "the host stopped while the task was being cancelled")
        };
        self.attempt_failed(id, failure, harmless && !own_journal);
    }

    /// Stops a parked node; returns whether it was parked.
    pub(super) fn stop_parked(&mut self, id: NodeId, why: NodeStop) -> bool {
        let Some(again) = self.parked.remove(&id) else { return false };
        if let Some(node) = self.nodes.get_mut(id) {
            node.stop = Some(why);
        }
        self.end_stopped(id, again);
        true
    }

    /// Resumes parked nodes at the end of a pause.
    pub(super) fn unpark(&mut self) {
        for (id, again) in std::mem::take(&mut self.parked) {
            self.send(id, again != Repeatability::NotBegun);
        }
    }

    fn release_files(&mut self, id: NodeId) {
        let seen = self.nodes.get_mut(id).and_then(|node| node.files.take());
        if let Some(seen) = seen {
            self.files.release(seen);
        }
    }
}

/// Whether a task whose host went away may be performed again.
fn is_harmless(def: &Task, again: Repeatability) -> bool {
    let own_journal = matches!(def.action, Action::CodeExecution(_));
    match (again, def.idempotent) {
        (Repeatability::NotBegun, _) | (_, Some(true)) => true,
        (Repeatability::Harmless, declared) => declared != Some(false) || own_journal,
        (Repeatability::Unknown, _) => own_journal,
    }
}
