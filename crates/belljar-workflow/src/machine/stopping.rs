//! Stopping tasks, and the end of scopes and of the workflow.

use belljar_contract::JsonValue;
use belljar_contract::WorkflowStatus;

use super::Machine;
use super::ending::timeout;
use super::parts::{NodeEnd, NodeId, NodePhase, NodeStop, ROOT, ScopeId};
use super::work::template_failure;
use crate::effect::{Effect, Finish, TaskFailure};
use crate::event::WorkflowEventKind;

impl Machine {
    /// Stops every open node of a scope.
    pub(super) fn stop_scope(&mut self, id: ScopeId, failure: Option<TaskFailure>) {
        let Some(scope) = self.scopes.get_mut(&id) else { return };
        if scope.stopped {
            return;
        }
        scope.stopped = true;
        scope.failure = failure;
        let open: Vec<NodeId> = scope.open.iter().copied().collect();
        if id == ROOT && matches!(self.status, WorkflowStatus::Running | WorkflowStatus::Paused) {
            self.status = WorkflowStatus::Stopping;
            self.ending = self.ending.or(Some(WorkflowStatus::Failed));
        }
        for node in open {
            self.stop(node, NodeStop::Scope);
        }
    }

    /// Stops a node: at once, or when its performer reports its end.
    pub(super) fn stop(&mut self, id: NodeId, why: NodeStop) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let (phase, child, attempt, instance) =
            (node.phase, node.child, node.attempt, node.name.clone());
        match phase {
            NodePhase::Ended(_) => return,
            NodePhase::Running if self.parked.contains_key(&id) => {
                self.stop_parked(id, why);
                return;
            }
            NodePhase::Running => {
                let asked = node.stop.replace(why).is_some();
                if !asked {
                    self.out.push(Effect::Cancel { instance, attempt });
                }
                return;
            }
            NodePhase::Inside => {
                node.stop = Some(why);
                if let Some(child) = child {
                    self.stop_scope(child, None);
                    self.end_if_empty(child);
                }
                return;
            }
            NodePhase::InDoubt => self.record_doubt(id, None),
            NodePhase::Waiting
            | NodePhase::Ready
            | NodePhase::Queued
            | NodePhase::Backoff
            | NodePhase::Deciding
            | NodePhase::Sleeping => {}
        }
        match why {
            NodeStop::Skip => self.skip(id, NodeEnd::Skipped, "command"),
            NodeStop::Scope => self.end(id, NodeEnd::Cancelled),
            NodeStop::Timeout => {
                let Some((_, def)) = self.node(id) else { return };
                self.fail_for_good(id, timeout(&def, &TaskFailure::default()));
            }
        }
    }

    /// The time limit of an attempt or a container has passed.
    pub(super) fn timed_out(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.timer = None;
            if node.stop.is_none() {
                self.stop(id, NodeStop::Timeout);
            }
        }
    }

    /// Handles the end of a scope that has no open nodes.
    pub(super) fn end_if_empty(&mut self, id: ScopeId) {
        let Some(scope) = self.scopes.get_mut(&id) else { return };
        if scope.over || !scope.open.is_empty() || self.status == WorkflowStatus::New {
            return;
        }
        if id == ROOT {
            return self.finish_if_stopped();
        }
        scope.over = true;
        let (container, failure) = (scope.node, scope.failure.take());
        let Some((node, def)) = container.and_then(|container| self.node(container)) else {
            return;
        };
        let (container, stop) = (node.id, node.stop);
        match (stop, failure) {
            (Some(NodeStop::Skip), _) => self.skip(container, NodeEnd::Skipped, "command"),
            (Some(NodeStop::Scope), _) => self.end(container, NodeEnd::Cancelled),
            (Some(NodeStop::Timeout), _) => {
                if let Some(node) = self.nodes.get_mut(container) {
                    node.stop = None;
                }
                self.fail_for_good(container, timeout(&def, &TaskFailure::default()));
            }
            (None, Some(failure)) => self.fail_for_good(container, failure),
            (None, None) => self.gather(container, id, &def),
        }
    }

    /// Continues after a stopped task has ended.
    pub(super) fn after_stopping(&mut self) {
        if self.status == WorkflowStatus::RollingBack {
            self.continue_rollback();
        } else {
            self.finish_if_stopped();
        }
    }

    /// Ends the workflow, if nothing is left to do.
    fn finish_if_stopped(&mut self) {
        let Some(root) = self.scopes.get_mut(&ROOT) else { return };
        let idle = self.running.is_empty() && self.strays.is_empty();
        if root.over || !root.open.is_empty() || !idle || self.status == WorkflowStatus::RollingBack
        {
            return;
        }
        root.over = true;
        let failure = root.failure.take();
        let status = match (self.ending.take(), &failure) {
            (Some(ending), _) => ending,
            (None, Some(_)) => WorkflowStatus::Failed,
            (None, None) => WorkflowStatus::Completed,
        };
        self.finish(status, failure);
    }

    fn finish(&mut self, status: WorkflowStatus, failure: Option<TaskFailure>) {
        let (mut status, mut failure, mut output) = (status, failure, JsonValue::Null);
        if status == WorkflowStatus::Completed {
            match self.output_of(ROOT) {
                Ok(value) => output = value,
                Err(error) => {
                    status = WorkflowStatus::Failed;
                    failure = Some(template_failure(&error));
                }
            }
        }
        let timers: Vec<u64> = self.timers.keys().copied().collect();
        for timer in timers {
            self.forget(Some(timer));
        }
        self.status = status;
        self.output = output.clone();
        self.failure.clone_from(&failure);
        self.worth_keeping = true;
        self.emit(WorkflowEventKind::WorkflowEnded { status, failure: failure.clone() });
        self.out.push(Effect::Finish(Finish { status, output, failure }));
    }

    /// The time limit of the workflow has passed.
    pub(super) fn took_too_long(&mut self) {
        let failure = TaskFailure::new("timeout", "the workflow took too long");
        self.stop_all(WorkflowStatus::Failed, failure);
    }

    /// Ends the workflow as soon as its running tasks have stopped.
    pub(super) fn stop_all(&mut self, ending: WorkflowStatus, failure: TaskFailure) {
        if !matches!(self.status, WorkflowStatus::Running | WorkflowStatus::Paused) {
            return;
        }
        self.ending = Some(ending);
        self.status = WorkflowStatus::Stopping;
        self.stop_scope(ROOT, Some(failure));
        self.finish_if_stopped();
    }
}
