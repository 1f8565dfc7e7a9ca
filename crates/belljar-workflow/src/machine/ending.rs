//! The end of attempts, tasks and scopes.

use std::sync::Arc;

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonMap, JsonValue, exact_json};

use super::Machine;
use super::names::NameLookup;
use super::parts::{
    Home, NodeEnd, NodeId, NodePhase, NodeStop, ScopeId, ScopeKind, SideEffect, SideEffectKind,
    TaskNode, TimerPurpose,
};
use super::size::bytes_of_work;
use super::work::template_failure;
use crate::bounds;
use crate::dag::{Action, CONTEXT, LOOP_POSITION_PREFIX, OnError, Task};
use crate::effect::{SessionUndo, TaskEnding, TaskFailure, TaskOutcome};
use crate::event::WorkflowEventKind;
use crate::state::{StateError, check_fits, join, kind, reducer_of};
use crate::template::render;

impl Machine {
    /// Whether an attempt is under way.
    pub(super) fn is_waiting_for(&self, instance: &str, attempt: u32) -> bool {
        if self.strays.contains(&(instance.to_owned(), attempt))
            || self.undoing().is_some_and(|undo| undo == (instance.to_owned(), attempt))
        {
            return true;
        }
        let node = self.nodes.named(instance).and_then(|id| self.nodes.get(id));
        node.is_some_and(|node| self.running.contains(&node.id) && node.attempt == attempt)
    }

    /// Handles the outcome of a started task.
    pub(super) fn ended(&mut self, instance: &str, attempt: u32, outcome: TaskOutcome) {
        if self.strays.remove(&(instance.to_owned(), attempt)) {
            return self.after_stopping();
        }
        if self.undoing().is_some_and(|(undo, _)| undo == instance) {
            return self.undo_ended(outcome);
        }
        let Some(id) = self.nodes.named(instance) else { return };
        if self.nodes.get(id).is_some_and(|node| node.ahead.is_some()) {
            return self.speculation_ended(id, outcome);
        }
        self.running.remove(&id);
        // In a journal of an older version the node may have run while the workflow was paused.
        self.parked.remove(&id);
        if self.status == WorkflowStatus::RollingBack {
            self.record_outcome_in_rollback(id, &outcome);
        } else {
            self.take_outcome(id, outcome);
        }
        self.after_stopping();
    }

    /// An outcome during a rollback: only its effects outside are recorded.
    fn record_outcome_in_rollback(&mut self, id: NodeId, outcome: &TaskOutcome) {
        self.record_session_undo(id, outcome.undo.clone());
        match &outcome.ending {
            TaskEnding::Done { value } => self.record_side_effect(id, value, outcome.read_only),
            TaskEnding::Failed { failure } if failure.may_have_acted && !outcome.read_only => {
                self.record_doubt(id, Some(failure.clone()));
            }
            TaskEnding::Failed { .. } => {}
        }
    }

    /// Handles the outcome of a node that no longer runs.
    pub(super) fn take_outcome(&mut self, id: NodeId, outcome: TaskOutcome) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let (timer, seen) = (node.timer.take(), node.files.take());
        let task = node.name.clone();
        self.forget(timer);
        if let Some(seen) = seen {
            self.files.release(seen);
        }
        self.record_session_undo(id, outcome.undo);
        if !outcome.logs.is_empty() {
            self.emit(WorkflowEventKind::TaskLogged { task: task.clone(), lines: outcome.logs });
        }
        match outcome.ending {
            TaskEnding::Done { value } => {
                self.tell_code(id, None);
                let paths = self.files.merge(seen, outcome.files);
                if !paths.is_empty() {
                    self.emit(WorkflowEventKind::FilesConflict { task, paths });
                }
                self.record_side_effect(id, &value, outcome.read_only);
                self.clear_work(id);
                if let Err(failure) = self.merge_context(id, outcome.state) {
                    return self.fail_for_good(id, failure);
                }
                self.done(id, value);
            }
            TaskEnding::Failed { failure } if failure.in_doubt && self.may_doubt(id) => {
                self.set_phase(id, NodePhase::InDoubt);
                self.ask_whether_it_happened(id);
            }
            TaskEnding::Failed { failure } => {
                self.tell_code(id, Some(&failure));
                self.attempt_failed(id, failure, outcome.read_only);
            }
        }
    }

    /// Whether it matters if a node's work took effect: the node was not stopped, and its work must
    /// not happen twice.
    fn may_doubt(&self, id: NodeId) -> bool {
        let found = self.node(id);
        found.is_some_and(|(node, def)| node.stop.is_none() && def.idempotent != Some(true))
    }

    fn tell_code(&mut self, id: NodeId, failure: Option<&TaskFailure>) {
        let Some((node, def)) = self.node(id) else { return };
        if !matches!(def.action, Action::CodeExecution(_)) {
            return;
        }
        let (task, attempt) = (node.name.clone(), node.attempt);
        let ms = self.now_ms.saturating_sub(node.started_ms.unwrap_or(self.now_ms));
        self.emit(match failure {
            None => WorkflowEventKind::CodeExecutionCompleted { task, attempt, ms },
            Some(failure) => {
                WorkflowEventKind::CodeExecutionFailed { task, attempt, failure: failure.clone() }
            }
        });
    }

    fn clear_work(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.work = None;
        }
    }

    /// Records an effect outside the workflow, for a rollback.
    pub(super) fn record_side_effect(&mut self, id: NodeId, result: &JsonValue, read_only: bool) {
        let Some((node, def)) = self.node(id) else { return };
        let kind = match self.undo_of(node, &def, result) {
            Ok(Some(undo)) => SideEffectKind::Undo(undo),
            Ok(None) if read_only => return,
            Ok(None) => SideEffectKind::Lasting,
            Err(error) => SideEffectKind::Broken(template_failure(&error)),
        };
        let instance = node.name.clone();
        if let SideEffectKind::Undo(work) = &kind {
            self.grow(bytes_of_work(work));
        }
        self.traces.push(SideEffect { instance, at: self.taken, kind });
    }

    /// Records a change of a session. It is undone after the task's own compensation, which may use
    /// the session.
    fn record_session_undo(&mut self, id: NodeId, undo: Option<Box<SessionUndo>>) {
        let (Some(node), Some(undo)) = (self.nodes.get(id), undo) else { return };
        let kind = match *undo {
            SessionUndo::By(work) => SideEffectKind::Undo(work),
            SessionUndo::Not(failure) => SideEffectKind::Broken(failure),
        };
        self.traces.push(SideEffect { instance: node.name.clone(), at: self.taken, kind });
    }

    /// Merges what code put into `state` into the part `context` of the workflow's state.
    fn merge_context(&mut self, id: NodeId, state: JsonMap) -> Result<(), TaskFailure> {
        let wanted = |node: &&TaskNode| !state.is_empty() && node.stop.is_none();
        let Some(node) = self.nodes.get(id).filter(wanted) else { return Ok(()) };
        let scope = node.scope;
        let parts = vec![(CONTEXT.to_owned(), JsonValue::Object(state))];
        let parts = self.free_parts(scope, parts);
        self.put_into_state(scope, parts)
    }

    pub(super) fn record_doubt(&mut self, id: NodeId, failure: Option<TaskFailure>) {
        let Some(node) = self.nodes.get(id) else { return };
        let kind = SideEffectKind::Doubt(failure);
        self.traces.push(SideEffect { instance: node.name.clone(), at: self.taken, kind });
    }

    /// An attempt failed: retry, or fail for good.
    pub(super) fn attempt_failed(&mut self, id: NodeId, failure: TaskFailure, harmless: bool) {
        let Some((node, def)) = self.node(id) else { return };
        let (stop, tries, attempt, task) = (node.stop, node.tries, node.attempt, node.name.clone());
        if failure.may_have_acted && !harmless {
            self.record_doubt(id, Some(failure.clone()));
        }
        self.clear_work(id);
        let failure = match stop {
            Some(NodeStop::Skip) => return self.skip(id, NodeEnd::Skipped, "command"),
            Some(NodeStop::Scope) => return self.end(id, NodeEnd::Cancelled),
            Some(NodeStop::Timeout) => timeout(&def, &failure),
            None => failure,
        };
        if let Some(node) = self.nodes.get_mut(id) {
            node.stop = None;
        }
        let repeatable = harmless || def.idempotent == Some(true);
        let retry = def.retry.as_ref().filter(|retry| {
            let may = repeatable || retry.even_if_not_idempotent;
            may && !failure.lasting && tries < retry.attempts
        });
        let Some(retry) = retry else { return self.fail_for_good(id, failure) };
        let timer = self.set_timer(pause_before(&retry.backoff, tries), TimerPurpose::Retry(id));
        let next_ms = self.timers.get(&timer).map_or(self.now_ms, |timer| timer.at_ms);
        if let Some(node) = self.nodes.get_mut(id) {
            node.phase = NodePhase::Backoff;
            node.timer = Some(timer);
        }
        self.emit(WorkflowEventKind::TaskRetrying { task, attempt, failure, next_ms });
    }

    /// A task has a result: a decision may be asked for before the workflow uses it.
    pub(super) fn done(&mut self, id: NodeId, value: JsonValue) {
        let Some(stop) = self.nodes.get(id).map(|node| node.stop) else { return };
        match stop {
            Some(NodeStop::Skip) => return self.skip(id, NodeEnd::Skipped, "command"),
            Some(NodeStop::Scope | NodeStop::Timeout) => {}
            None if self.asks_after(id, &value) => return,
            None => {}
        }
        self.complete(id, value);
    }

    /// Completes a task, after its changes to the state.
    pub(super) fn complete(&mut self, id: NodeId, value: JsonValue) {
        self.complete_with(id, value, Vec::new());
    }

    /// Completes a task, with further parts of the state set after its own.
    pub(super) fn complete_with(
        &mut self,
        id: NodeId,
        value: JsonValue,
        more: Vec<(String, JsonValue)>,
    ) {
        let fits = bounds::unfit(&value).map_or(Ok(()), Err);
        if let Err(failure) = fits.and_then(|()| self.change_state(id, &value, more)) {
            return self.fail_for_good(id, failure);
        }
        self.grow(bounds::bytes_of(&value));
        if let Some(node) = self.nodes.get_mut(id) {
            node.result = value;
            node.failure = None;
        }
        self.end(id, NodeEnd::Completed);
    }

    fn change_state(
        &mut self,
        id: NodeId,
        value: &JsonValue,
        more: Vec<(String, JsonValue)>,
    ) -> Result<(), TaskFailure> {
        let Some((node, def)) = self.node(id) else { return Ok(()) };
        let mut changes = match def.merge_result {
            true => self.free_parts(node.scope, keys_of(value, def.result_key.as_deref())?),
            false => Vec::new(),
        };
        let place = NameLookup { result: Some(value), ..NameLookup::of(self, node) };
        for (part, template) in &def.output {
            let value = render(template, &place).map_err(|error| template_failure(&error))?;
            changes.push((part.clone(), value));
        }
        changes.extend(more);
        let scope = node.scope;
        self.put_into_state(scope, changes)
    }

    /// The parts that are not constants of the workflow.
    pub(super) fn free_parts(
        &self,
        scope: ScopeId,
        mut parts: Vec<(String, JsonValue)>,
    ) -> Vec<(String, JsonValue)> {
        if let Some(Home { settings, state, .. }) = self.home(scope) {
            parts.retain(|(key, _)| !(settings.constants.contains(key) && state.contains_key(key)));
        }
        parts
    }

    /// Sets parts of the state, through the reducers.
    pub(super) fn put_into_state(
        &mut self,
        scope: ScopeId,
        changes: Vec<(String, JsonValue)>,
    ) -> Result<(), TaskFailure> {
        if changes.is_empty() {
            return Ok(());
        }
        let bytes: usize = changes.iter().map(|(_, value)| bounds::bytes_of(value)).sum();
        self.grow(bytes);
        let Some(home) = self.home_mut(scope) else { return Ok(()) };
        let Home { state, reducers, .. } = home;
        // All of it or nothing: a task that fails leaves the state as it was.
        for (part, value) in &changes {
            check_fits(state, reducer_of(reducers, part), part, value)
                .map_err(|error| unfit(&error))?;
        }
        for (part, value) in changes {
            join(state, reducer_of(reducers, &part), &part, value)
                .map_err(|error| unfit(&error))?;
        }
        Ok(())
    }

    /// A task failed and has no attempt left.
    pub(super) fn fail_for_good(&mut self, id: NodeId, failure: TaskFailure) {
        self.fail(id, failure, true);
    }

    /// Fails a task; `ask` says whether a decision may be asked for first.
    pub(super) fn fail(&mut self, id: NodeId, failure: TaskFailure, ask: bool) {
        let Some((node, def)) = self.node(id) else { return };
        let failure = bounds::bounded_failure(failure);
        let (task, fell_back, stopped) = (node.name.clone(), node.fell_back, node.stop);
        self.withdraw(id);
        if let Some(node) = self.nodes.get_mut(id) {
            node.failure = Some(failure.clone());
            let timer = node.timer.take();
            self.forget(timer);
        }
        match &def.on_error {
            _ if stopped == Some(NodeStop::Scope) => self.end(id, NodeEnd::Cancelled),
            OnError::Fallback(fallback) if !fell_back => {
                self.emit(WorkflowEventKind::TaskFallback { task, failure });
                self.fall_back(id, fallback);
            }
            OnError::Continue => self.continue_without(id),
            OnError::Fail | OnError::Fallback(_) => {
                if !(ask && self.asks_on_error(id, &failure)) {
                    self.end(id, NodeEnd::Failed);
                }
            }
        }
    }

    /// Continues the workflow without the result of a task, or with the part of it that exists.
    pub(super) fn continue_without(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let details = node.failure.as_ref().and_then(|failure| failure.details.as_ref());
        let partial = details.and_then(|details| details.get("results")).cloned();
        node.result = partial.unwrap_or_default();
        self.end(id, NodeEnd::Continued);
    }

    /// Skips a task, for the reason given.
    pub(super) fn skip(&mut self, id: NodeId, end: NodeEnd, why: &str) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        node.failure = None;
        let task = node.name.clone();
        self.emit(WorkflowEventKind::TaskSkipped { task, why: why.to_owned() });
        self.end(id, end);
    }

    /// Ends a task and releases everything that waited for it.
    pub(super) fn end(&mut self, id: NodeId, end: NodeEnd) {
        let now = self.now_ms;
        self.withdraw(id);
        self.drop_ahead(id);
        let Some(node) = self.nodes.get_mut(id) else { return };
        node.phase = NodePhase::Ended(end);
        node.ended_ms = Some(now);
        node.work = None;
        let (timer, scope, counted) = (node.timer.take(), node.scope, node.counted);
        let dependants = std::mem::take(&mut node.dependants);
        self.forget(timer);
        self.ready.remove(&id);
        self.queue.remove(&id);
        self.worth_keeping = true;
        self.tell_end(id, end);
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.open.remove(&id);
            scope.room.remove(&id);
            scope.busy -= usize::from(counted);
            let next = if counted { scope.room.pop_first() } else { None };
            self.ready.extend(next);
        }
        for dependant in dependants {
            self.release(dependant, end);
        }
        self.member_ended(scope, id, end);
        self.end_if_empty(scope);
    }

    fn release(&mut self, id: NodeId, end: NodeEnd) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        node.waiting = node.waiting.saturating_sub(1);
        node.unmet += u32::from(end.spreads());
        if node.waiting == 0 && node.phase == NodePhase::Waiting {
            self.make_ready(id);
        }
    }

    fn tell_end(&mut self, id: NodeId, end: NodeEnd) {
        let Some(node) = self.nodes.get(id) else { return };
        let task = node.name.clone();
        let ms = self.now_ms.saturating_sub(node.started_ms.unwrap_or(self.now_ms));
        let failure = node.failure.clone().unwrap_or_default();
        match end {
            NodeEnd::Completed => self.emit(WorkflowEventKind::TaskCompleted { task, ms }),
            NodeEnd::Failed => {
                self.emit(WorkflowEventKind::TaskFailed { task, failure, continued: false });
            }
            NodeEnd::Continued => {
                self.emit(WorkflowEventKind::TaskFailed { task, failure, continued: true });
            }
            NodeEnd::Cancelled => self.emit(WorkflowEventKind::TaskCancelled { task }),
            NodeEnd::Unmet | NodeEnd::Skipped => {}
        }
    }

    /// The consequences of the end of a node for its scope.
    fn member_ended(&mut self, scope: ScopeId, id: NodeId, end: NodeEnd) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let failure = (end == NodeEnd::Failed).then(|| node.failure.clone().unwrap_or_default());
        let name = node.name.clone();
        let Some(place) = self.scopes.get_mut(&scope) else { return };
        if let ScopeKind::Each(each) = &mut place.kind {
            let index = node.item.as_ref().map_or(0, |(index, _)| *index);
            if let Some(slot) = each.results.get_mut(index) {
                *slot = std::mem::take(&mut node.result);
            }
            if let Some(failure) = &failure {
                each.failures.push((index, failure.clone()));
            }
            if failure.is_none() || !each.fail_fast {
                return self.next_item(scope);
            }
        }
        let Some(mut failure) = failure else { return };
        if failure.details.is_none() {
            failure.details = Some(exact_json!({"task": name}));
        }
        self.stop_scope(scope, Some(failure));
    }
}

/// The parts of the state that a merged result sets; `other` is the part for a result without keys.
fn keys_of(
    result: &JsonValue,
    other: Option<&str>,
) -> Result<Vec<(String, JsonValue)>, TaskFailure> {
    match (result, other) {
        (JsonValue::Object(map), _) => Ok(parts_of(map)),
        (JsonValue::Null, _) => Ok(Vec::new()),
        (_, Some(key)) => Ok(vec![(key.to_owned(), result.clone())]),
        (_, None) => {
            let given = kind(result);
            let message =
                format!("the result goes into the state and must be an object, not {given}");
            Err(TaskFailure { lasting: true, ..TaskFailure::new("state", message) })
        }
    }
}

/// The keys of a mapping that may go into the state; the positions of loops may not.
pub(super) fn parts_of(map: &JsonMap) -> Vec<(String, JsonValue)> {
    let free = map.iter().filter(|(key, _)| !key.starts_with(LOOP_POSITION_PREFIX));
    free.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn unfit(error: &StateError) -> TaskFailure {
    TaskFailure::new("state", error.to_string())
}

pub(super) fn timeout(def: &Arc<Task>, failure: &TaskFailure) -> TaskFailure {
    let limit = def.timeout_ms.map(|ms| format!(" of {ms} ms")).unwrap_or_default();
    TaskFailure {
        code: "timeout".to_owned(),
        message: format!("task {} exceeded its time limit{limit}", def.id),
        lasting: false,
        ..failure.clone()
    }
}

/// The delay after an attempt.
fn pause_before(backoff: &crate::dag::Backoff, tries: u32) -> u64 {
    let mut pause = backoff.first_ms.min(backoff.max_ms);
    for _ in 1..tries.min(64) {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a pause are few")]
        let next = pause as f64 * backoff.factor.max(1.0);
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a pause are few")]
        let most = backoff.max_ms as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
        let next = next.min(most) as u64;
        pause = next;
    }
    pause
}
