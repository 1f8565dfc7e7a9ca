//! Decisions: where the workflow asks, and what answers mean.

use belljar_contract::{JsonMap, JsonValue, exact_json};
use belljar_contract::{TaskStatus, WorkflowStatus};

use super::Machine;
use super::ending::parts_of;
use super::parts::{NodeEnd, NodeId, NodePhase, PendingDecision, ScopeKind, TimerPurpose};
use super::work::{as_text, template_failure, with_arguments};
use crate::command::DoubtResolution;
use crate::dag::{Action, Decider};
use crate::effect::{DecisionKind, Effect, TaskFailure, WorkflowDecision};
use crate::event::WorkflowEventKind;

/// An answer to a decision.
pub(super) enum DecisionAnswer {
    Yes(Option<JsonValue>),
    No(Option<String>),
    Otherwise { arguments: Option<JsonMap>, value: Option<JsonValue> },
}

impl Machine {
    /// Whether a decision comes before a node; if so, it is asked for.
    pub(super) fn asks_before(&mut self, id: NodeId) -> bool {
        if !self.is_listed(id, |decide, task| decide.before.iter().any(|name| name == task)) {
            return false;
        }
        let Some((_, def)) = self.node(id) else { return false };
        self.ask(
            id,
            DecisionKind::Before,
            format!("start task {}?", def.id),
            None,
            JsonValue::Null,
        );
        self.run_ahead(id, None);
        true
    }

    /// Whether a decision comes after a node; if so, its result is held.
    pub(super) fn asks_after(&mut self, id: NodeId, value: &JsonValue) -> bool {
        let Some((_, def)) = self.node(id) else { return false };
        let is_approval = matches!(def.action, Action::Approval { .. });
        let asks = self.is_listed(id, |decide, task| {
            (decide.per_task && !is_approval) || decide.after.iter().any(|name| name == task)
        });
        if asks {
            let message = format!("continue after task {}?", def.id);
            self.ask(id, DecisionKind::After, message, None, value.clone());
            self.run_dependants_ahead(id, value);
        }
        asks
    }

    /// Whether a decision is asked for about a failure that would end the workflow.
    pub(super) fn asks_on_error(&mut self, id: NodeId, failure: &TaskFailure) -> bool {
        if !self.is_listed(id, |decide, _| decide.on_error) {
            return false;
        }
        let Some((_, def)) = self.node(id) else { return false };
        let message = format!("task {} failed: {}; continue without it?", def.id, failure.message);
        self.ask(id, DecisionKind::OnError, message, Some(failure.clone()), JsonValue::Null);
        true
    }

    /// Whether the settings ask for a decision about a node. Items and fallbacks are not asked about.
    fn is_listed(
        &self,
        id: NodeId,
        rule: impl Fn(&crate::dag::DecisionPoints, &str) -> bool,
    ) -> bool {
        let Some((node, def)) = self.node(id) else { return false };
        let Some(scope) = self.scopes.get(&node.scope) else { return false };
        let own = matches!(scope.kind, ScopeKind::Flow(_) | ScopeKind::Round(_)) && !scope.stopped;
        let home = self.home(node.scope).filter(|_| own);
        home.is_some_and(|home| rule(&home.settings.decisions, &def.id))
    }

    pub(super) fn ask_approval(
        &mut self,
        id: NodeId,
        message: &str,
        by: Option<Decider>,
        within_ms: Option<u64>,
    ) {
        let message = match self.rendered(id, &JsonValue::String(message.to_owned())) {
            Ok(message) => as_text(message),
            Err(error) => return self.fail_for_good(id, template_failure(&error)),
        };
        // A person decides about an approval, unless the task says otherwise.
        let by = by.unwrap_or(Decider::Human);
        self.ask_whom(id, DecisionKind::Approval, message, None, JsonValue::Null, (by, within_ms));
        self.run_dependants_ahead(id, &approved(None));
    }

    fn ask(
        &mut self,
        id: NodeId,
        kind: DecisionKind,
        message: String,
        failure: Option<TaskFailure>,
        held: JsonValue,
    ) {
        let scope = self.nodes.get(id).map(|node| node.scope).unwrap_or_default();
        let by = self.home(scope).map_or(Decider::Human, |home| home.settings.decided_by);
        self.ask_whom(id, kind, message, failure, held, (by, None));
    }

    fn ask_whom(
        &mut self,
        id: NodeId,
        kind: DecisionKind,
        message: String,
        failure: Option<TaskFailure>,
        held: JsonValue,
        (by, within_ms): (Decider, Option<u64>),
    ) {
        self.withdraw(id);
        let Some(node) = self.nodes.get_mut(id) else { return };
        let (instance, scope, limit) = (node.name.clone(), node.scope, node.timer.take());
        self.forget(limit);
        let usual = self.home(scope).and_then(|home| home.settings.decision_timeout_ms);
        let number = self.next_decision;
        self.next_decision += 1;
        let in_doubt = kind == DecisionKind::InDoubt;
        let within = within_ms.or(usual).filter(|_| !in_doubt);
        let timer = within.map(|ms| self.set_timer(ms, TimerPurpose::Decision(number)));
        let deadline_ms = timer.and_then(|timer| Some(self.timers.get(&timer)?.at_ms));
        let id_text = format!("d{number}");
        let decision =
            WorkflowDecision { id: id_text, kind, instance, message, by, deadline_ms, failure };
        if let Some(node) = self.nodes.get_mut(id) {
            node.phase = if in_doubt { NodePhase::InDoubt } else { NodePhase::Deciding };
            node.decision = Some(number);
        }
        self.decisions
            .insert(number, PendingDecision { decision: decision.clone(), node: id, timer, held });
        self.emit(WorkflowEventKind::DecisionRequired { decision: decision.clone() });
        self.out.push(Effect::Ask(decision));
    }

    /// Asks a person whether a task took effect.
    pub(super) fn ask_whether_it_happened(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(id) else { return };
        let (task, attempt) = (node.name.clone(), node.attempt);
        self.emit(WorkflowEventKind::TaskInDoubt { task: task.clone(), attempt });
        let message = format!("{task} was started, but its end was not seen: did it take effect?");
        let by = (Decider::Human, None);
        self.ask_whom(id, DecisionKind::InDoubt, message, None, JsonValue::Null, by);
    }

    /// Closes a node's decision that needs no answer any more.
    pub(super) fn withdraw(&mut self, id: NodeId) {
        let number = self.nodes.get(id).and_then(|node| node.decision);
        if number.and_then(|number| self.close(number, "withdrawn", "workflow")).is_some() {
            let decision = format!("d{}", number.unwrap_or_default());
            self.out.push(Effect::Withdraw { decision });
        }
    }

    fn close(&mut self, number: u64, choice: &str, by: &str) -> Option<PendingDecision> {
        let pending = self.decisions.remove(&number)?;
        self.forget(pending.timer);
        if let Some(node) = self.nodes.get_mut(pending.node) {
            node.decision = None;
        }
        self.emit(WorkflowEventKind::DecisionMade {
            decision: pending.decision.id.clone(),
            task: pending.decision.instance.clone(),
            choice: choice.to_owned(),
            by: by.to_owned(),
        });
        Some(pending)
    }

    /// The deadline of a decision has passed: an agent's workflow continues, a person's is aborted.
    pub(super) fn decision_timed_out(&mut self, number: u64) {
        let Some(pending) = self.decisions.get(&number) else { return };
        let (by, message) = (pending.decision.by, pending.decision.message.clone());
        match by {
            Decider::Agent => {
                if let Some(pending) = self.close(number, "timeout", "timeout") {
                    self.yes(pending, None);
                }
            }
            Decider::Human => {
                let message = format!("no decision in time: {message}");
                self.stop_all(
                    WorkflowStatus::Aborted,
                    TaskFailure::new("decision_timeout", message),
                );
            }
        }
    }

    /// Applies an answer to a decision, or says why it cannot.
    pub(super) fn answer(
        &mut self,
        id: &str,
        answer: DecisionAnswer,
        by: &str,
    ) -> Result<(), String> {
        let number: Option<u64> = id.strip_prefix('d').and_then(|number| number.parse().ok());
        let pending = number.and_then(|number| self.decisions.get(&number));
        let (Some(number), Some(pending)) = (number, pending) else {
            return Err(self.unknown_decision(id));
        };
        let (kind, node) = (pending.decision.kind, pending.node);
        if kind == DecisionKind::InDoubt {
            let task = &pending.decision.instance;
            return Err(format!("{task} is in doubt: resolve it with retry, use or fail"));
        }
        match &answer {
            DecisionAnswer::Otherwise { arguments, value } => {
                self.check_otherwise(kind, node, arguments.as_ref(), value.as_ref())?;
            }
            DecisionAnswer::Yes(Some(value))
                if self.takes_into_state(kind, node) && !value.is_object() =>
            {
                return Err("the value goes into the state and must be an object".to_owned());
            }
            DecisionAnswer::Yes(_) | DecisionAnswer::No(_) => {}
        }
        self.note_answer(number, by);
        match answer {
            DecisionAnswer::Yes(value) => {
                if let Some(pending) = self.close(number, "approve", by) {
                    self.yes(pending, value);
                }
            }
            DecisionAnswer::No(reason) => {
                if let Some(pending) = self.close(number, "reject", by) {
                    self.no(&pending, reason);
                }
            }
            DecisionAnswer::Otherwise { arguments, value } => {
                if let Some(pending) = self.close(number, "modify", by) {
                    self.otherwise(&pending, arguments, value);
                }
            }
        }
        Ok(())
    }

    fn yes(&mut self, pending: PendingDecision, value: Option<JsonValue>) {
        let id = pending.node;
        match pending.decision.kind {
            DecisionKind::Approval => self.done(id, approved(value)),
            DecisionKind::Before => {
                let parts = self.parts_of_answer(id, value);
                let scope = self.nodes.get(id).map(|node| node.scope).unwrap_or_default();
                match self.put_into_state(scope, parts) {
                    Ok(()) => self.clear(id),
                    Err(failure) => self.fail_for_good(id, failure),
                }
            }
            DecisionKind::After => {
                let parts = self.parts_of_answer(id, value);
                self.complete_with(id, pending.held, parts);
            }
            DecisionKind::OnError => self.continue_without(id),
            DecisionKind::InDoubt => {}
        }
    }

    /// Whether what comes with an answer goes into the state.
    fn takes_into_state(&self, kind: DecisionKind, id: NodeId) -> bool {
        let home = self.nodes.get(id).and_then(|node| self.home(node.scope));
        matches!(kind, DecisionKind::Before | DecisionKind::After)
            && home.is_some_and(|home| home.settings.lenient)
    }

    /// The parts of the state that come with an answer.
    fn parts_of_answer(&self, id: NodeId, value: Option<JsonValue>) -> Vec<(String, JsonValue)> {
        match value {
            Some(JsonValue::Object(map)) if self.takes_into_state(DecisionKind::Before, id) => {
                let scope = self.nodes.get(id).map(|node| node.scope).unwrap_or_default();
                self.free_parts(scope, parts_of(&map))
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn no(&mut self, pending: &PendingDecision, reason: Option<String>) {
        let id = pending.node;
        if pending.decision.kind == DecisionKind::OnError {
            return self.end(id, NodeEnd::Failed);
        }
        let message = reason.unwrap_or_else(|| format!("rejected: {}", pending.decision.message));
        self.fail(id, TaskFailure::new("rejected", message), false);
    }

    fn check_otherwise(
        &self,
        kind: DecisionKind,
        id: NodeId,
        arguments: Option<&JsonMap>,
        value: Option<&JsonValue>,
    ) -> Result<(), String> {
        let Some(arguments) = arguments else {
            return match value {
                Some(_) => Ok(()),
                None => Err("give `arguments` or a `value`".to_owned()),
            };
        };
        match kind {
            DecisionKind::Before | DecisionKind::OnError => {
                let (_, def) = self.node(id).ok_or("the task no longer exists")?;
                let contains = matches!(def.action, Action::Workflow { .. });
                if kind == DecisionKind::OnError && contains {
                    // Its tasks would be performed a second time, under the keys of the first.
                    return Err(
                        "a nested workflow that has begun cannot be started again".to_owned()
                    );
                }
                with_arguments(&def, arguments).map(|_| ())
            }
            DecisionKind::Approval | DecisionKind::After | DecisionKind::InDoubt => {
                Err("this decision takes a value, not arguments".to_owned())
            }
        }
    }

    fn otherwise(
        &mut self,
        pending: &PendingDecision,
        arguments: Option<JsonMap>,
        value: Option<JsonValue>,
    ) {
        let id = pending.node;
        let Some(arguments) = arguments else {
            return match pending.decision.kind {
                DecisionKind::Approval => self.done(id, approved(value)),
                DecisionKind::Before
                | DecisionKind::After
                | DecisionKind::OnError
                | DecisionKind::InDoubt => self.complete(id, value.unwrap_or_default()),
            };
        };
        self.redefine(id, &arguments);
        if let Some(node) = self.nodes.get_mut(id) {
            node.tries = 0;
            node.failure = None;
        }
        self.clear(id);
    }

    /// The decision before a node was taken: it may start.
    fn clear(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.cleared = true;
            self.make_ready(id);
        }
    }

    /// Says what became of a node in doubt.
    pub(super) fn resolve(
        &mut self,
        task: &str,
        how: DoubtResolution,
        by: &str,
    ) -> Result<(), String> {
        let node = self.nodes.named(task).and_then(|id| self.nodes.get(id));
        let Some(node) = node else { return Err(self.unknown_task(task)) };
        let id = node.id;
        let Some(number) = node.decision.filter(|_| node.phase == NodePhase::InDoubt) else {
            return Err(self.not_in_doubt(id, task));
        };
        self.note_answer(number, by);
        match how {
            DoubtResolution::Retry => {
                self.close(number, "retry", by);
                self.enqueue(id);
            }
            DoubtResolution::Use { value } => {
                self.close(number, "use", by);
                self.record_side_effect(id, &value, false);
                self.done(id, value);
            }
            DoubtResolution::Fail { reason } => {
                self.close(number, "fail", by);
                let message =
                    reason.unwrap_or_else(|| "a person resolved the doubt as a failure".to_owned());
                self.fail_for_good(id, TaskFailure::new(TaskStatus::InDoubt.as_str(), message));
            }
        }
        Ok(())
    }

    /// Why a task cannot be resolved. The machine does not see the calls that code makes; they are
    /// answered elsewhere.
    fn not_in_doubt(&self, id: NodeId, task: &str) -> String {
        let runs_code = self.node(id).is_some_and(|(node, def)| {
            let is_code = matches!(def.action, Action::CodeExecution(_) | Action::Sandbox(_));
            is_code && node.phase == NodePhase::Running
        });
        let hint = match runs_code {
            true => "; a call inside its code is answered with `belljar approvals`",
            false => "",
        };
        format!("task {task} is not in doubt{hint}")
    }
}

/// The result of an approval.
fn approved(value: Option<JsonValue>) -> JsonValue {
    exact_json!({"approved": true, "value": value})
}
