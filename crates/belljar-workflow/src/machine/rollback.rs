//! Going back to a checkpoint.
//!
//! First what runs is stopped. Then what ended after the checkpoint is undone, last first, one at a
//! time, each an effect with an intent of its own. Then the machine becomes what it was, paused, on a
//! branch of its own; its numbers go on.

use serde::{Deserialize, Serialize};

use super::Machine;
use super::parts::{NodeId, SideEffect, SideEffectKind};
use crate::command::is_agent;
use crate::dag::Action;
use crate::effect::{
    Effect, NotUndone, Repeatability, RollbackReport, TaskEnding, TaskFailure, TaskOutcome,
    TaskStart, TaskWork, WhyNot, WorkflowStatus,
};
use crate::event::WorkflowEventKind;

/// A rollback under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rollback {
    to: u64,
    base: Box<Machine>,
    /// What is to be undone, the next one last. Nothing while something is still being stopped.
    todo: Option<Vec<SideEffect>>,
    /// What is being undone, and by what.
    current: Option<(String, TaskWork)>,
    report: RollbackReport,
    /// Whether a person has to continue it afterwards, and alone gives up on what it undoes.
    #[serde(default)]
    held: bool,
}

impl Machine {
    /// Begins to go back.
    pub(super) fn roll_back(&mut self, id: String, by: &str, to: u64, base: Box<Self>) {
        if self.answered_before(&id) {
            return;
        }
        let may = self.may_go_back(to, base.status);
        if let Err(reason) = may.and_then(|()| self.is_free_to_go_back(by, to, &base)) {
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
        // Going back lifts no pause of a person.
        let held = self.held || base.held || !is_agent(by);
        let rollback = Rollback { to, base, todo: None, current: None, report, held };
        self.rollback = Some(Box::new(rollback));
        self.go_on_rolling_back();
    }

    fn may_go_back(&self, to: u64, base: WorkflowStatus) -> Result<(), String> {
        if self.status == WorkflowStatus::RollingBack {
            return Err("the workflow is rolling back".to_owned());
        }
        if matches!(base, WorkflowStatus::New | WorkflowStatus::RollingBack) {
            return Err(format!("{to} is no checkpoint"));
        }
        if self.is_abandoned(to) {
            return Err(format!("checkpoint {to} is on a branch that was rolled back"));
        }
        Ok(())
    }

    /// Whether a checkpoint was gone back over, or is being so. What was done there has been undone: its
    /// state would claim what is not so.
    pub fn is_abandoned(&self, checkpoint: u64) -> bool {
        let is_over = |(from, until): &(u64, u64)| (from + 1..=*until).contains(&checkpoint);
        self.abandoned.iter().any(is_over)
            || self.rollback.as_ref().is_some_and(|rollback| checkpoint > rollback.to)
    }

    fn cancel_running(&mut self) {
        // What is parked is performed by nobody: it is as if its host had gone away now.
        for (id, again) in std::mem::take(&mut self.parked) {
            self.running.remove(&id);
            self.doubt_unless_harmless(id, again);
        }
        let running: Vec<NodeId> = self.running.iter().copied().collect();
        for id in running {
            let Some(node) = self.nodes.get_mut(id) else { continue };
            // Whatever it gives now, nothing follows from it.
            let asked = node.stop.replace(super::parts::NodeStop::Scope).is_some();
            if node.ahead.is_some() {
                self.drop_ahead(id);
            } else if !asked {
                let cancel = Effect::Cancel { instance: node.name.clone(), attempt: node.attempt };
                self.out.push(cancel);
            }
        }
    }

    /// Once nothing runs, undoes one after the other, and is back at the end.
    pub(super) fn go_on_rolling_back(&mut self) {
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
            self.tell(WorkflowEventKind::RollbackStarted { to, compensations });
        }
        while rollback.current.is_none() {
            let Some(trace) = rollback.todo.as_mut().and_then(Vec::pop) else {
                return self.rolled_back(*rollback);
            };
            let left = |why, failure| NotUndone { instance: trace.instance.clone(), why, failure };
            match trace.kind {
                SideEffectKind::Undo(work) => rollback.current = Some((trace.instance, work)),
                // It is there for the other, who may undo it.
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
    pub(super) fn goes_back_for_a_person(&self) -> bool {
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
                // One with a compensation and a sandbox to take back is undone once.
                if rollback.report.undone.last() != Some(&instance) {
                    rollback.report.undone.push(instance.clone());
                }
                self.tell(WorkflowEventKind::TaskUndone { task: instance });
            }
        }
        self.go_on_rolling_back();
    }

    /// Gives up on the compensation that is being performed.
    pub(super) fn skip_undo(&mut self, task: &str) -> Result<(), String> {
        match self.undoing() {
            Some((instance, attempt)) if instance == task => {
                self.out.push(Effect::Cancel { instance, attempt });
                Ok(())
            }
            _ => Err("the workflow is rolling back".to_owned()),
        }
    }

    /// A host took over in the middle: what cannot be repeated is reported as in doubt.
    pub(super) fn resume_rollback(&mut self, again: impl Fn(&str, u32) -> Repeatability) {
        let running: Vec<NodeId> = std::mem::take(&mut self.running).into_iter().collect();
        for id in running {
            let Some(node) = self.nodes.get(id) else { continue };
            let told = again(&node.name, node.attempt);
            self.doubt_unless_harmless(id, told);
        }
        let Some((instance, attempt)) = self.undoing() else {
            return self.go_on_rolling_back();
        };
        match again(&instance, attempt) {
            Repeatability::NotBegun => self.send_undo(false),
            Repeatability::Harmless => self.send_undo(true),
            Repeatability::Unknown => self.undo_settled(Some((WhyNot::InDoubt, None))),
        }
    }

    /// What was under way and cannot be known any more is reported.
    fn doubt_unless_harmless(&mut self, id: NodeId, again: Repeatability) {
        let Some((node, def)) = self.node(id) else { return };
        let harmless = again == Repeatability::NotBegun
            || (again == Repeatability::Harmless
                && !matches!(def.action, Action::CodeExecution(_)));
        if !harmless && node.ahead.is_none() {
            self.leave_doubt(id, None);
        }
    }

    /// Becomes what it was, with numbers that go on.
    fn rolled_back(&mut self, rollback: Rollback) {
        let mut base = *rollback.base;
        let later = self.now_ms.saturating_sub(base.now_ms);
        base.renumber(self.next_timer, self.next_decision, later);
        base.branch = self.branch + 1;
        base.taken = self.taken;
        base.told = self.told;
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
        self.tell(WorkflowEventKind::RolledBack { report: rollback.report });
        self.ask_and_wait_anew();
        self.after_stopping();
    }

    /// Gives timers and decisions numbers that were never used, and the time they had left.
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

    /// What ran at the checkpoint has to run again, or has been stopped.
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
        // Only now: the end of one may stop others, which must not be taken to be running.
        for id in stopped {
            self.attempt_failed(id, TaskFailure::new("cancelled", "rolled back"), true);
        }
    }
}
