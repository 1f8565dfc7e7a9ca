//! Containers: the scopes they open, and the results they make of them.

use belljar_contract::{JsonMap, JsonValue, exact_json};

use super::Machine;
use super::names::NameLookup;
use super::parts::{ForeachProgress, Home, NodeEnd, NodeId, NodePhase, ScopeId, ScopeKind};
use super::work::template_failure;
use crate::bounds::bytes_of;
use crate::dag::{Action, AtLimit, Dag, Foreach, LOOP_POSITION_PREFIX, LoopAction, Task};
use crate::effect::TaskFailure;
use crate::event::WorkflowEventKind;
use crate::template::{TemplateError, holds, render, render_map};

/// The most items a foreach may have.
const ITEMS: usize = 100_000;

impl Machine {
    /// Opens the scope of a container.
    pub(super) fn expand(&mut self, id: NodeId, def: &Task) {
        self.forget_child(id);
        self.set_phase(id, NodePhase::Inside);
        let opened = match &def.action {
            Action::Foreach(foreach) => self.open_items(id, foreach),
            Action::Loop(rounds) => {
                self.next_round(id, rounds, None).map_err(|error| template_failure(&error))
            }
            Action::Workflow { workflow, inputs } => self.open_workflow(id, workflow, inputs),
            Action::McpTool(_)
            | Action::CodeExecution(_)
            | Action::Sandbox(_)
            | Action::Approval { .. }
            | Action::Wait(_)
            | Action::Pass { .. } => Ok(()),
        };
        if let Err(failure) = opened {
            self.fail_for_good(id, failure);
        }
    }

    fn open_items(&mut self, id: NodeId, foreach: &Foreach) -> Result<(), TaskFailure> {
        let value = self.rendered(id, &foreach.items).map_err(|error| template_failure(&error))?;
        let JsonValue::Array(items) = value else {
            return Err(TaskFailure::new("foreach", "`items` is not a list"));
        };
        if items.len() > ITEMS {
            let message =
                format!("the foreach has {} items; at most {ITEMS} are allowed", items.len());
            return Err(TaskFailure::new("foreach", message));
        }
        self.grow(items.iter().map(bytes_of).sum());
        let scope = self.nodes.get(id).map(|node| node.scope).unwrap_or_default();
        let bound = self.home(scope).map_or(1, |home| home.settings.concurrency);
        let at_once = foreach.at_once.unwrap_or(bound).max(1);
        let each = ForeachProgress {
            def: self.define((*foreach.each).clone()),
            results: vec![JsonValue::Null; items.len()],
            items,
            next: 0,
            failures: Vec::new(),
            fail_fast: foreach.fail_fast,
        };
        let scope = self.open_scope(Some(id), ScopeKind::Each(each));
        for _ in 0..at_once {
            self.next_item(scope);
        }
        self.end_if_empty(scope);
        Ok(())
    }

    /// Makes a node of the next item, if there is one.
    pub(super) fn next_item(&mut self, id: ScopeId) {
        let Some(scope) = self.scopes.get_mut(&id) else { return };
        let ScopeKind::Each(each) = &mut scope.kind else { return };
        let Some(slot) = each.items.get_mut(each.next).filter(|_| !scope.stopped) else { return };
        let item = (each.next, std::mem::take(slot));
        each.next += 1;
        let def = each.def;
        if let Some(node) = self.add_node(id, def, Some(item)) {
            self.make_ready(node);
        }
    }

    fn open_workflow(
        &mut self,
        id: NodeId,
        workflow: &Dag,
        inputs: &JsonMap,
    ) -> Result<(), TaskFailure> {
        let Some(node) = self.nodes.get(id) else { return Ok(()) };
        let given = render_map(inputs, &NameLookup::of(self, node))
            .map_err(|error| template_failure(&error))?;
        let mut inputs = workflow.inputs.clone();
        inputs.extend(given);
        self.grow(inputs.values().chain(workflow.state.values()).map(bytes_of).sum());
        let home = Home {
            settings: workflow.settings.clone(),
            inputs,
            state: workflow.state.clone(),
            reducers: workflow.reducers.clone(),
            output: workflow.output.clone(),
        };
        let scope = self.open_scope(Some(id), ScopeKind::Flow(Box::new(home)));
        self.add_tasks(scope, workflow.tasks.clone());
        self.end_if_empty(scope);
        Ok(())
    }

    /// Begins the fallback of a task.
    pub(super) fn fall_back(&mut self, id: NodeId, fallback: &Task) {
        self.forget_child(id);
        if let Some(node) = self.nodes.get_mut(id) {
            node.fell_back = true;
            node.phase = NodePhase::Inside;
        }
        let scope = self.open_scope(Some(id), ScopeKind::Fallback);
        let def = self.define(fallback.clone());
        if let Some(node) = self.add_node(scope, def, None) {
            self.make_ready(node);
        }
    }

    /// Begins the round after `last`, or ends the loop.
    fn next_round(
        &mut self,
        id: NodeId,
        rounds: &LoopAction,
        last: Option<(ScopeId, u32)>,
    ) -> Result<(), TemplateError> {
        let round = last.map_or(1, |(_, round)| round + 1);
        let from = match self.jump(rounds, last)? {
            NextRound::End => None,
            NextRound::To(task) => Some(Some(task)),
            NextRound::None => self.has_next_round(id, rounds, last)?.then_some(None),
        };
        let Some(from) = from else {
            self.loop_ended(id, last, false);
            return Ok(());
        };
        if round > rounds.max_rounds {
            match rounds.at_limit {
                AtLimit::End => self.loop_ended(id, last, true),
                AtLimit::Fail => self.fail_for_good(id, too_many_rounds(rounds.max_rounds)),
            }
            return Ok(());
        }
        self.open_round(id, rounds, round, from.as_deref(), last.map(|(scope, _)| scope));
        Ok(())
    }

    fn jump(
        &self,
        rounds: &LoopAction,
        last: Option<(ScopeId, u32)>,
    ) -> Result<NextRound, TemplateError> {
        let Some((scope, _)) = last else { return Ok(NextRound::None) };
        for goto in &rounds.goto {
            let taken = match &goto.condition {
                None => true,
                Some(condition) => holds(condition, &NameLookup::of_scope(self, scope))?,
            };
            if taken && goto.to == "end" {
                return Ok(NextRound::End);
            }
            if taken {
                return Ok(NextRound::To(goto.to.clone()));
            }
        }
        Ok(NextRound::None)
    }

    /// Whether there is another round when no jump is taken.
    fn has_next_round(
        &self,
        id: NodeId,
        rounds: &LoopAction,
        last: Option<(ScopeId, u32)>,
    ) -> Result<bool, TemplateError> {
        let Some(condition) = &rounds.condition else { return Ok(last.is_none()) };
        let Some(node) = self.nodes.get(id) else { return Ok(false) };
        let round = last.map_or(1, |(_, round)| round + 1);
        let place = match last {
            Some((scope, _)) => NameLookup::of_scope(self, scope),
            None => NameLookup { blank: &rounds.body, ..NameLookup::of(self, node) },
        };
        holds(condition, &NameLookup { round: Some(round), ..place })
    }

    fn open_round(
        &mut self,
        id: NodeId,
        rounds: &LoopAction,
        round: u32,
        from: Option<&str>,
        last: Option<ScopeId>,
    ) {
        let Some(node) = self.nodes.get(id) else { return };
        let task = node.name.clone();
        self.emit(WorkflowEventKind::RoundStarted { task, round });
        let scope = self.open_scope(Some(id), ScopeKind::Round(round));
        let start = from.and_then(|from| rounds.body.iter().position(|task| task.id == from));
        let mut nodes = Vec::new();
        for (index, task) in rounds.body.iter().enumerate() {
            let before = last
                .and_then(|last| self.scopes.get(&last)?.names.get(&task.id))
                .and_then(|node| self.nodes.get(*node));
            let known = before.map(|before| (before.def, before.result.clone()));
            let def = match &known {
                Some((def, _)) => *def,
                None => self.define(task.clone()),
            };
            let Some(node) = self.add_node(scope, def, None) else { continue };
            if start.is_some_and(|start| index < start) {
                self.jump_over(node, known.map(|(_, result)| result).unwrap_or_default());
            }
            nodes.push(node);
        }
        for node in nodes {
            self.count_dependencies(node);
        }
        if let Some(last) = last {
            self.forget_rounds_before(last);
        }
        self.end_if_empty(scope);
    }

    /// Skips a task of a round, with its result of the last round.
    fn jump_over(&mut self, id: NodeId, result: JsonValue) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        node.result = result;
        node.phase = NodePhase::Ended(NodeEnd::Skipped);
        let (task, scope) = (node.name.clone(), node.scope);
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.open.remove(&id);
        }
        self.emit(WorkflowEventKind::TaskSkipped { task, why: "goto".to_owned() });
    }

    /// Drops all rounds but the last, which a jump may need.
    fn forget_rounds_before(&mut self, last: ScopeId) {
        let Some(scope) = self.scopes.get(&last) else { return };
        let (ScopeKind::Round(round), Some(container)) = (&scope.kind, scope.node) else { return };
        let Some(name) = self.nodes.get(container).map(|node| node.name.clone()) else { return };
        if *round < 2 {
            return;
        }
        let older = *round - 1;
        let Some(before) = self.round_scope(&name, older, last) else { return };
        self.forget_scope(before);
    }

    fn round_scope(&self, container: &str, round: u32, later: ScopeId) -> Option<ScopeId> {
        let names = &self.scopes.get(&later)?.names;
        let task = names.keys().next()?;
        let id = self.nodes.named(&format!("{container}#{round}/{task}"))?;
        Some(self.nodes.get(id)?.scope)
    }

    /// Drops the scope of a container before it begins something else.
    fn forget_child(&mut self, id: NodeId) {
        let child = self.nodes.get_mut(id).and_then(|node| node.child.take());
        if let Some(child) = child {
            self.forget_scope(child);
        }
    }

    /// Drops a scope that is over, and everything in it.
    fn forget_scope(&mut self, id: ScopeId) {
        let mut scopes = vec![id];
        while let Some(id) = scopes.pop() {
            let Some(scope) = self.scopes.remove(&id) else { continue };
            let members: Vec<NodeId> = match &scope.kind {
                ScopeKind::Flow(_) | ScopeKind::Round(_) => scope.names.values().copied().collect(),
                ScopeKind::Each(_) | ScopeKind::Fallback => {
                    let inside = self.nodes.iter().filter(|node| node.scope == id);
                    inside.map(|node| node.id).collect()
                }
            };
            for member in members {
                let node = self.nodes.remove(member);
                scopes.extend(node.and_then(|node| node.child));
            }
        }
    }

    fn loop_ended(&mut self, id: NodeId, last: Option<(ScopeId, u32)>, exhausted: bool) {
        let results = last.map(|(scope, _)| self.results_in(scope)).unwrap_or_default();
        let rounds = last.map_or(0, |(_, round)| round);
        self.done(id, exact_json!({"rounds": rounds, "results": results, "exhausted": exhausted}));
    }

    fn results_in(&self, scope: ScopeId) -> JsonMap {
        let Some(scope) = self.scopes.get(&scope) else { return JsonMap::new() };
        let nodes = scope.names.iter();
        nodes
            .filter_map(|(name, id)| Some((name.clone(), self.nodes.get(*id)?.result.clone())))
            .collect()
    }

    /// The result of a container whose scope ended without a failure.
    pub(super) fn gather(&mut self, container: NodeId, id: ScopeId, def: &Task) {
        let Some(scope) = self.scopes.get_mut(&id) else { return };
        match &mut scope.kind {
            ScopeKind::Each(each) => {
                let results = std::mem::take(&mut each.results);
                let failures = std::mem::take(&mut each.failures);
                match items_failed(&results, &failures) {
                    None => self.done(container, JsonValue::Array(results)),
                    Some(failure) => self.fail_for_good(container, failure),
                }
            }
            ScopeKind::Fallback => {
                let inside = self.nodes.named(&self.fallback_name(container));
                let value = inside.and_then(|node| Some(self.nodes.get(node)?.result.clone()));
                self.done(container, value.unwrap_or_default());
            }
            ScopeKind::Round(round) => {
                let round = *round;
                let Action::Loop(rounds) = &def.action else { return };
                if let Err(error) = self.next_round(container, rounds, Some((id, round))) {
                    self.fail_for_good(container, template_failure(&error));
                }
            }
            ScopeKind::Flow(_) => match self.output_of(id) {
                Ok(output) => self.done(container, output),
                Err(error) => self.fail_for_good(container, template_failure(&error)),
            },
        }
    }

    fn fallback_name(&self, container: NodeId) -> String {
        let name = self.nodes.get(container).map(|node| node.name.as_str()).unwrap_or_default();
        format!("{name}~fallback")
    }

    fn is_agent(&self, id: ScopeId) -> bool {
        self.home(id).is_some_and(|home| home.settings.lenient)
    }

    /// The output of a workflow: its template, or the results of the tasks nothing depends on.
    pub(super) fn output_of(&self, id: ScopeId) -> Result<JsonValue, TemplateError> {
        let output = self.home(id).and_then(|home| home.output.as_ref());
        if let Some(output) = output {
            let mut output = render(output, &NameLookup::of_scope(self, id))?;
            // The positions of an agent's loops are not part of its result.
            if let (Some(parts), true) = (output.as_object_mut(), self.is_agent(id)) {
                parts.retain(|part, _| !part.starts_with(LOOP_POSITION_PREFIX));
            }
            return Ok(output);
        }
        let Some(scope) = self.scopes.get(&id) else { return Ok(JsonValue::Null) };
        let defs: Vec<_> = scope.names.values().filter_map(|node| self.node(*node)).collect();
        let inner: std::collections::BTreeSet<&String> =
            defs.iter().flat_map(|(_, def)| &def.depends_on).collect();
        let last = defs.iter().filter(|(_, def)| !inner.contains(&def.id));
        Ok(JsonValue::Object(
            last.map(|(node, def)| (def.id.clone(), node.result.clone())).collect(),
        ))
    }
}

/// Whether another round follows, and with which task it begins.
enum NextRound {
    None,
    End,
    To(String),
}

fn too_many_rounds(most: u32) -> TaskFailure {
    let message = format!("the loop reached its limit of {most} rounds");
    TaskFailure { lasting: true, ..TaskFailure::new("loop", message) }
}

/// Failed items as one failure, with the results of the others.
fn items_failed(results: &[JsonValue], failures: &[(usize, TaskFailure)]) -> Option<TaskFailure> {
    let (first, failure) = failures.first()?;
    let mut failed: Vec<&(usize, TaskFailure)> = failures.iter().collect();
    failed.sort_by_key(|(index, _)| *index);
    let failed: Vec<JsonValue> = failed
        .into_iter()
        .map(|(index, failure)| exact_json!({"index": index, "error": failure}))
        .collect();
    let message = format!(
        "{} of {} items failed; item {first}: {}",
        failed.len(),
        results.len(),
        failure.message
    );
    Some(TaskFailure {
        details: Some(exact_json!({"results": results, "failed": failed})),
        ..TaskFailure::new("items_failed", message)
    })
}
