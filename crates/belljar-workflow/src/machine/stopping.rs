//! How things are stopped, and how scopes and the workflow end.

use serde_json::Value;

use super::Machine;
use super::ending::timeout;
use super::parts::{End, NodeId, Phase, ROOT, ScopeId, Stop};
use super::work::template_failure;
use crate::effect::{Effect, Failure, Finish, Status};
use crate::event::Happened;

impl Machine {
    /// Stops all that has not ended in a scope.
    pub(super) fn stop_scope(&mut self, id: ScopeId, failure: Option<Failure>) {
        let Some(scope) = self.scopes.get_mut(&id) else { return };
        if scope.stopped {
            return;
        }
        scope.stopped = true;
        scope.failure = failure;
        let open: Vec<NodeId> = scope.open.iter().copied().collect();
        if id == ROOT && matches!(self.status, Status::Running | Status::Paused) {
            self.status = Status::Stopping;
            self.ending = self.ending.or(Some(Status::Failed));
        }
        for node in open {
            self.stop(node, Stop::Scope);
        }
    }

    /// Stops a node: at once, or when its performer says it has.
    pub(super) fn stop(&mut self, id: NodeId, why: Stop) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let (phase, child, attempt, instance) =
            (node.phase, node.child, node.attempt, node.name.clone());
        match phase {
            Phase::Ended(_) => return,
            Phase::Running if self.parked.contains_key(&id) => {
                self.stop_parked(id, why);
                return;
            }
            Phase::Running => {
                let asked = node.stop.replace(why).is_some();
                if !asked {
                    self.out.push(Effect::Cancel { instance, attempt });
                }
                return;
            }
            Phase::Inside => {
                node.stop = Some(why);
                if let Some(child) = child {
                    self.stop_scope(child, None);
                    self.end_if_empty(child);
                }
                return;
            }
            Phase::InDoubt => self.leave_doubt(id, None),
            Phase::Waiting
            | Phase::Ready
            | Phase::Queued
            | Phase::Backoff
            | Phase::Deciding
            | Phase::Sleeping => {}
        }
        match why {
            Stop::Skip => self.skip(id, End::Skipped, "command"),
            Stop::Scope => self.end(id, End::Cancelled),
            Stop::Timeout => {
                let Some((_, def)) = self.node(id) else { return };
                self.fail_for_good(id, timeout(&def, &Failure::default()));
            }
        }
    }

    /// An attempt, or a container, took too long.
    pub(super) fn timed_out(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.timer = None;
            if node.stop.is_none() {
                self.stop(id, Stop::Timeout);
            }
        }
    }

    /// Deals with the end of a scope that has nothing open any more.
    pub(super) fn end_if_empty(&mut self, id: ScopeId) {
        let Some(scope) = self.scopes.get_mut(&id) else { return };
        if scope.over || !scope.open.is_empty() || self.status == Status::New {
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
            (Some(Stop::Skip), _) => self.skip(container, End::Skipped, "command"),
            (Some(Stop::Scope), _) => self.end(container, End::Cancelled),
            (Some(Stop::Timeout), _) => {
                if let Some(node) = self.nodes.get_mut(container) {
                    node.stop = None;
                }
                self.fail_for_good(container, timeout(&def, &Failure::default()));
            }
            (None, Some(failure)) => self.fail_for_good(container, failure),
            (None, None) => self.gather(container, id, &def),
        }
    }

    /// After something that was being stopped has ended.
    pub(super) fn after_stopping(&mut self) {
        if self.status == Status::RollingBack {
            self.go_on_rolling_back();
        } else {
            self.finish_if_stopped();
        }
    }

    /// Ends the workflow, if nothing is left to do.
    fn finish_if_stopped(&mut self) {
        let Some(root) = self.scopes.get_mut(&ROOT) else { return };
        let idle = self.running.is_empty() && self.strays.is_empty();
        if root.over || !root.open.is_empty() || !idle || self.status == Status::RollingBack {
            return;
        }
        root.over = true;
        let failure = root.failure.take();
        let status = match (self.ending.take(), &failure) {
            (Some(ending), _) => ending,
            (None, Some(_)) => Status::Failed,
            (None, None) => Status::Completed,
        };
        self.finish(status, failure);
    }

    fn finish(&mut self, status: Status, failure: Option<Failure>) {
        let (mut status, mut failure, mut output) = (status, failure, Value::Null);
        if status == Status::Completed {
            match self.output_of(ROOT) {
                Ok(value) => output = value,
                Err(error) => {
                    status = Status::Failed;
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
        self.tell(Happened::WorkflowEnded { status, failure: failure.clone() });
        self.out.push(Effect::Finish(Finish { status, output, failure }));
    }

    /// The whole took too long.
    pub(super) fn took_too_long(&mut self) {
        let failure = Failure::new("timeout", "the workflow took too long");
        self.stop_all(Status::Failed, failure);
    }

    /// Ends the workflow as soon as what runs has stopped.
    pub(super) fn stop_all(&mut self, ending: Status, failure: Failure) {
        if !matches!(self.status, Status::Running | Status::Paused) {
            return;
        }
        self.ending = Some(ending);
        self.status = Status::Stopping;
        self.stop_scope(ROOT, Some(failure));
        self.finish_if_stopped();
    }
}
