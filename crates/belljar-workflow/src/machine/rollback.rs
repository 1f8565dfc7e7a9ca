//! Rollback to a checkpoint.
//!
//! First the running tasks are stopped. Then the tasks that ended after the checkpoint are undone,
//! last first, one at a time, each as an effect with an intent of its own. Then the machine takes
//! the state of the checkpoint, paused and on a new branch; its numbers continue.

use belljar_contract::WorkflowStatus;
use serde::{Deserialize, Serialize};

use super::Machine;
use super::parts::{NodeId, SideEffect, SideEffectKind};
use crate::command::is_agent;
use crate::dag::Action;
use crate::effect::{
    Effect, NotUndone, Repeatability, RollbackReport, TaskEnding, TaskFailure, TaskOutcome,
    TaskStart, TaskWork, WhyNot,
};
use crate::event::WorkflowEventKind;

/// A rollback under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rollback {
    to: u64,
    base: Box<Machine>,
    /// The effects that remain to be undone, the next one last. `None` while tasks are still being stopped.
    todo: Option<Vec<SideEffect>>,
    /// The instance that is being undone, and its compensation.
    current: Option<(String, TaskWork)>,
    report: RollbackReport,
    /// Whether a person asked for it: then only a person may continue the workflow or skip a
    /// compensation.
    #[serde(default)]
    held: bool,
}

impl Machine {
    /// Begins a rollback, or refuses the command.
    pub(super) fn roll_back(&mut self, id: String, by: &str, to: u64, base: Box<Self>) {
        if self.answered_before(&id) {
            return;
        }
        let may = self.may_go_back(to, base.status);
        if let Err(reason) = may.and_then(|()| self.check_rollback_permission(by, to, &base)) {
            return self.acknowledge(id, Some(reason));
        }
        self.acknowledge(id, None);
        self.status = WorkflowStatus::RollingBack;
        let timers: Vec<u64> = self.timers.keys().copied().collect();
        for timer in timers {
            self.forget(Some(timer));
        }
        let asked: Vec<NodeId> = self.decisions.values().map(|pending| pending.node).collect();
        for node in asked {
            self.withdraw(node);
        }
        self.cancel_running();
        let report = RollbackReport { to, branch: self.branch + 1, ..RollbackReport::default() };
        // A rollback does not lift the pause of a person.
        let held = self.held || base.held || !is_agent(by);
        let rollback = Rollback { to, base, todo: None, current: None, report, held };
        self.rollback = Some(Box::new(rollback));
        self.continue_rollback();
    }

    fn may_go_back(&self, to: u64, base: WorkflowStatus) -> Result<(), String> {
        if self.status == WorkflowStatus::RollingBack {
            return Err("the workflow is rolling back".to_owned());
        }
        if matches!(base, WorkflowStatus::New | WorkflowStatus::RollingBack) {
            return Err(format!("there is no checkpoint {to}"));
        }
        if self.is_abandoned(to) {
            return Err(format!("checkpoint {to} is on a branch that was rolled back"));
        }
        Ok(())
    }

    /// Whether a checkpoint was rolled back, or is being so. Its tasks have been undone, so its
    /// state would claim effects that do not exist.
    pub fn is_abandoned(&self, checkpoint: u64) -> bool {
        let is_over = |(from, until): &(u64, u64)| (from + 1..=*until).contains(&checkpoint);
        self.abandoned.iter().any(is_over)
            || self.rollback.as_ref().is_some_and(|rollback| checkpoint > rollback.to)
    }

    fn cancel_running(&mut self) {
        // Parked nodes are not performed: treat them as if their host had gone away now.
        for (id, again) in std::mem::take(&mut self.parked) {
            self.running.remove(&id);
            self.doubt_unless_harmless(id, again);
        }
        let running: Vec<NodeId> = self.running.iter().copied().collect();
        for id in running {
            let Some(node) = self.nodes.get_mut(id) else { continue };
            // Its outcome no longer matters.
            let asked = node.stop.replace(super::parts::NodeStop::Scope).is_some();
            if node.ahead.is_some() {
                self.drop_ahead(id);
            } else if !asked {
                let cancel = Effect::Cancel { instance: node.name.clone(), attempt: node.attempt };
                self.out.push(cancel);
            }
        }
    }

    /// Once nothing runs, performs the next compensation, or completes the rollback.
    pub(super) fn continue_rollback(&mut self) {
        if !self.running.is_empty() || !self.strays.is_empty() {
            return;
        }
        let Some(mut rollback) = self.rollback.take() else { return };
        if rollback.todo.is_none() {
            let (to, compensations) = (rollback.to, self.undoable(rollback.to));
            let at = self.traces.partition_point(|trace| trace.at <= to);
            let mut todo = self.traces.split_off(at);
            for trace in todo.iter_mut().filter(|trace| trace.at <= self.forked_at) {
                trace.kind = SideEffectKind::Elsewhere;
            }
            rollback.todo = Some(todo);
            self.emit(WorkflowEventKind::RollbackStarted { to, compensations });
        }
        while rollback.current.is_none() {
            let Some(trace) = rollback.todo.as_mut().and_then(Vec::pop) else {
                return self.rolled_back(*rollback);
            };
            let left = |why, failure| NotUndone { instance: trace.instance.clone(), why, failure };
            match trace.kind {
                SideEffectKind::Undo(work) => rollback.current = Some((trace.instance, work)),
                // The effect belongs to the parent workflow, which may undo it.
                SideEffectKind::Elsewhere => {
                    rollback.report.not_undone.push(left(WhyNot::DoneBeforeFork, None));
                }
                SideEffectKind::Lasting => {
                    rollback.report.not_undone.push(left(WhyNot::NoCompensation, None));
                }
                SideEffectKind::Broken(failure) => {
                    rollback.report.not_undone.push(left(WhyNot::Failed, Some(failure)));
                }
                SideEffectKind::Doubt(failure) => {
                    rollback.report.not_undone.push(left(WhyNot::InDoubt, failure));
                }
            }
        }
        self.rollback = Some(rollback);
        self.send_undo(false);
    }

    fn undoable(&self, to: u64) -> Vec<String> {
        let to = to.max(self.forked_at);
        let after = self.traces.iter().rev().take_while(|trace| trace.at > to);
        let undo = after.filter(|trace| matches!(trace.kind, SideEffectKind::Undo(_)));
        undo.map(|trace| trace.instance.clone()).collect()
    }

    fn send_undo(&mut self, again: bool) {
        let current = self.rollback.as_ref().and_then(|rollback| rollback.current.clone());
        let Some((instance, work)) = current else { return };
        let instance = format!("{instance}~undo");
        self.out.push(Effect::Start(TaskStart {
            key: self.key(&instance, &work),
            instance,
            attempt: 1,
            work,
            idempotent: None,
            speculative: false,
            again,
            timeout_ms: None,
            files: None,
        }));
    }

    /// Whether a person asked for the rollback under way.
    pub(super) fn is_rollback_by_person(&self) -> bool {
        self.rollback.as_ref().is_some_and(|rollback| rollback.held)
    }

    /// The compensation that is being performed.
    pub(super) fn undoing(&self) -> Option<(String, u32)> {
        let (instance, _) = self.rollback.as_ref()?.current.as_ref()?;
        Some((format!("{instance}~undo"), 1))
    }

    /// A compensation has ended.
    pub(super) fn undo_ended(&mut self, outcome: TaskOutcome) {
        let failed = match outcome.ending {
            TaskEnding::Done { .. } => None,
            TaskEnding::Failed { failure } => Some((WhyNot::Failed, Some(failure))),
        };
        self.undo_settled(failed);
    }

    fn undo_settled(&mut self, failed: Option<(WhyNot, Option<TaskFailure>)>) {
        let Some(rollback) = &mut self.rollback else { return };
        let Some((instance, _)) = rollback.current.take() else { return };
        match failed {
            Some((why, failure)) => {
                rollback.report.not_undone.push(NotUndone { instance, why, failure });
            }
            None => {
                // A task with a compensation and a session to restore is reported as undone once.
                if rollback.report.undone.last() != Some(&instance) {
                    rollback.report.undone.push(instance.clone());
                }
                self.emit(WorkflowEventKind::TaskUndone { task: instance });
            }
        }
        self.continue_rollback();
    }

    /// Skips the compensation that is being performed.
    pub(super) fn skip_undo(&mut self, task: &str) -> Result<(), String> {
        match self.undoing() {
            Some((instance, attempt)) if instance == task => {
                self.out.push(Effect::Cancel { instance, attempt });
                Ok(())
            }
            _ => Err("the workflow is rolling back".to_owned()),
        }
    }

    /// A host has taken over during a rollback: a compensation that cannot be repeated is reported
    /// as in doubt.
    pub(super) fn resume_rollback(&mut self, again: impl Fn(&str, u32) -> Repeatability) {
        let running: Vec<NodeId> = std::mem::take(&mut self.running).into_iter().collect();
        for id in running {
            let Some(node) = self.nodes.get(id) else { continue };
            let again = again(&node.name, node.attempt);
            self.doubt_unless_harmless(id, again);
        }
        let Some((instance, attempt)) = self.undoing() else {
            return self.continue_rollback();
        };
        match again(&instance, attempt) {
            Repeatability::NotBegun => self.send_undo(false),
            Repeatability::Harmless => self.send_undo(true),
            Repeatability::Unknown => self.undo_settled(Some((WhyNot::InDoubt, None))),
        }
    }

    /// Reports a task under way whose effect is unknown.
    fn doubt_unless_harmless(&mut self, id: NodeId, again: Repeatability) {
        let Some((node, def)) = self.node(id) else { return };
        let harmless = again == Repeatability::NotBegun
            || (again == Repeatability::Harmless
                && !matches!(def.action, Action::CodeExecution(_)));
        if !harmless && node.ahead.is_none() {
            self.record_doubt(id, None);
        }
    }

    /// Takes the state of the checkpoint, with numbers that continue.
    fn rolled_back(&mut self, rollback: Rollback) {
        let mut base = *rollback.base;
        let later = self.now_ms.saturating_sub(base.now_ms);
        base.renumber(self.next_timer, self.next_decision, later);
        base.branch = self.branch + 1;
        base.taken = self.taken;
        base.last_event = self.last_event;
        base.now_ms = self.now_ms;
        base.commands = std::mem::take(&mut self.commands);
        base.abandoned = std::mem::take(&mut self.abandoned);
        // The state after this input is the first of the new branch.
        base.abandoned.push((rollback.to, self.taken.saturating_sub(1)));
        base.forked_at = self.forked_at;
        base.last_rollback = Some(rollback.report.clone());
        base.out = std::mem::take(&mut self.out);
        base.strays.clear();
        base.rollback = None;
        base.held = rollback.held;
        if !base.status.is_over() && base.status != WorkflowStatus::Stopping {
            base.status = WorkflowStatus::Paused;
        }
        *self = base;
        self.start_over();
        self.worth_keeping = true;
        self.emit(WorkflowEventKind::RolledBack { report: rollback.report });
        self.announce_timers_and_decisions();
        self.after_stopping();
    }

    /// Gives timers and decisions fresh numbers, and the time they had left.
    fn renumber(&mut self, timers: u64, decisions: u64, later: u64) {
        let timer_of = |old: u64| old + timers;
        let decision_of = |old: u64| old + decisions;
        for node in self.nodes.iter_mut() {
            node.timer = node.timer.map(timer_of);
            node.decision = node.decision.map(decision_of);
        }
        for (id, mut timer) in std::mem::take(&mut self.timers) {
            timer.at_ms = timer.at_ms.saturating_add(later);
            if let super::parts::TimerPurpose::Decision(decision) = &mut timer.what {
                *decision = decision_of(*decision);
            }
            self.timers.insert(timer_of(id), timer);
        }
        for (id, mut pending) in std::mem::take(&mut self.decisions) {
            let id = decision_of(id);
            pending.timer = pending.timer.map(timer_of);
            pending.decision.id = format!("d{id}");
            let deadline = pending.decision.deadline_ms;
            pending.decision.deadline_ms = deadline.map(|at| at.saturating_add(later));
            self.decisions.insert(id, pending);
        }
        self.next_timer += timers;
        self.next_decision += decisions;
    }

    /// Restarts the tasks that ran at the checkpoint, or ends those that were being stopped.
    fn start_over(&mut self) {
        let running: Vec<NodeId> = std::mem::take(&mut self.running).into_iter().collect();
        self.parked.clear();
        let mut stopped = Vec::new();
        for id in running {
            let Some(node) = self.nodes.get(id) else { continue };
            let (is_stopping, is_ahead) = (node.stop.is_some(), node.ahead.is_some());
            if is_stopping {
                stopped.push(id);
            }
            self.take_back_start(id);
            if !is_stopping && !is_ahead {
                self.enqueue(id);
            }
        }
        // Only now: the end of one node may stop others, which must not count as running.
        for id in stopped {
            self.attempt_failed(id, TaskFailure::new("cancelled", "rolled back"), true);
        }
    }
}
