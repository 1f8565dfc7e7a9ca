//! Scheduling: which tasks may start, and starting them.

use std::sync::Arc;

use belljar_contract::JsonValue;
use belljar_contract::WorkflowStatus;

use super::Machine;
use super::names::NameLookup;
use super::parts::{
    NodeEnd, NodeId, NodePhase, ROOT, ScopeId, ScopeKind, TaskNode, TaskScope, TimerPurpose,
};
use super::size::bytes_of_work;
use super::view::kind;
use super::work::template_failure;
use crate::dag::{Action, Task, Wait};
use crate::effect::{Effect, TaskFailure, TaskStart, TaskWork};
use crate::event::WorkflowEventKind;
use crate::template::{TemplateError, holds, render};

impl Machine {
    /// Opens a scope for a container, or for the workflow itself.
    pub(super) fn open_scope(&mut self, node: Option<NodeId>, kind: ScopeKind) -> ScopeId {
        let id = self.next_scope;
        self.next_scope += 1;
        let outer = node.and_then(|node| Some(self.nodes.get(node)?.scope));
        let outer_home = outer.and_then(|outer| Some(self.scopes.get(&outer)?.home));
        let (home, limit) = match &kind {
            // The limit of the workflow itself counts tasks that are performed.
            ScopeKind::Flow(own) => (id, (id != ROOT).then_some(own.settings.concurrency.max(1))),
            ScopeKind::Each(_) | ScopeKind::Round(_) | ScopeKind::Fallback => {
                (outer_home.unwrap_or(ROOT), None)
            }
        };
        let scope = TaskScope {
            id,
            node,
            home,
            kind,
            names: std::collections::BTreeMap::new(),
            open: std::collections::BTreeSet::new(),
            limit,
            busy: 0,
            room: std::collections::BTreeSet::new(),
            stopped: false,
            failure: None,
            over: false,
        };
        self.scopes.insert(id, scope);
        if let Some(container) = node.and_then(|node| self.nodes.get_mut(node)) {
            container.child = Some(id);
        }
        id
    }

    /// Adds tasks to a scope: all first, then what they depend on.
    pub(super) fn add_tasks(&mut self, scope: ScopeId, tasks: Vec<Task>) -> Vec<NodeId> {
        let defs: Vec<u32> = tasks.into_iter().map(|task| self.define(task)).collect();
        let nodes: Vec<NodeId> =
            defs.into_iter().filter_map(|def| self.add_node(scope, def, None)).collect();
        for node in &nodes {
            self.count_dependencies(*node);
        }
        nodes
    }

    pub(super) fn define(&mut self, task: Task) -> u32 {
        self.defs.push(Arc::new(task));
        u32::try_from(self.defs.len() - 1).unwrap_or(u32::MAX)
    }

    /// Adds a node that waits. A node with an item has no name in its scope.
    pub(super) fn add_node(
        &mut self,
        scope: ScopeId,
        def: u32,
        item: Option<(usize, JsonValue)>,
    ) -> Option<NodeId> {
        let task = Arc::clone(self.def(def)?);
        let id = self.next_node;
        self.next_node += 1;
        let place = self.scopes.get(&scope)?;
        let outer = place.node.and_then(|node| self.nodes.get(node)).map(|node| &node.name);
        let name = match (&place.kind, outer) {
            (ScopeKind::Each(_), Some(outer)) => {
                format!("{outer}[{}]", item.as_ref().map_or(0, |(index, _)| *index))
            }
            (ScopeKind::Round(round), Some(outer)) => format!("{outer}#{round}/{}", task.id),
            (ScopeKind::Fallback, Some(outer)) => format!("{outer}~fallback"),
            (ScopeKind::Flow(_), Some(outer)) => format!("{outer}/{}", task.id),
            (_, None) => task.id.clone(),
        };
        let by_name = matches!(place.kind, ScopeKind::Flow(_) | ScopeKind::Round(_));
        let place = self.scopes.get_mut(&scope)?;
        if by_name {
            place.names.insert(task.id.clone(), id);
        }
        place.open.insert(id);
        self.nodes.insert(TaskNode { id, name, def, scope, item, ..TaskNode::default() });
        Some(id)
    }

    /// Counts the dependencies of a node, and makes it ready if there are none left.
    pub(super) fn count_dependencies(&mut self, id: NodeId) {
        let Some((node, def)) = self.node(id) else { return };
        let Some(scope) = self.scopes.get(&node.scope) else { return };
        let deps: std::collections::BTreeSet<NodeId> =
            def.depends_on.iter().filter_map(|dep| scope.names.get(dep).copied()).collect();
        let (mut waiting, mut unmet) = (0, 0);
        for dep in deps {
            let Some(dep) = self.nodes.get_mut(dep) else { continue };
            match dep.phase.end() {
                Some(end) => unmet += u32::from(end.spreads()),
                None => {
                    waiting += 1;
                    dep.dependants.push(id);
                }
            }
        }
        let Some(node) = self.nodes.get_mut(id) else { return };
        node.waiting = waiting;
        node.unmet = unmet;
        if waiting == 0 && node.phase == NodePhase::Waiting {
            self.make_ready(id);
        }
    }

    pub(super) fn make_ready(&mut self, id: NodeId) {
        self.set_phase(id, NodePhase::Ready);
        self.ready.insert(id);
    }

    pub(super) fn set_phase(&mut self, id: NodeId, phase: NodePhase) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.phase = phase;
        }
    }

    /// Queues a node for a slot.
    pub(super) fn enqueue(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.timer = None;
            node.phase = NodePhase::Queued;
            self.queue.insert(id);
        }
    }

    /// Starts every task that may start.
    pub(super) fn start_ready(&mut self) {
        let mut steps = 0;
        while self.status == WorkflowStatus::Running {
            steps += 1;
            if let Some(failure) = self.beyond_bounds(steps) {
                return self.stop_all(WorkflowStatus::Failed, failure);
            }
            if let Some(id) = self.ready.pop_first() {
                self.dispatch(id);
            } else if self.has_slot()
                && let Some(id) = self.queue.pop_first()
            {
                self.start(id);
            } else {
                return;
            }
        }
    }

    /// Whether one more task may be performed.
    pub(super) fn has_slot(&self) -> bool {
        let bound = self.home(ROOT).map_or(1, |home| home.settings.concurrency.max(1));
        self.running.len() + self.strays.len() < bound
    }

    /// Decides what to do with a node whose dependencies have ended.
    fn dispatch(&mut self, id: NodeId) {
        let Some((node, def)) = self.node(id) else { return };
        if !node.counted && !self.take_room(id) {
            return;
        }
        let Some((node, _)) = self.node(id) else { return };
        let alone = node.unmet > 0 && self.dependencies(node, &def) == node.unmet;
        if alone {
            return self.skip(id, NodeEnd::Unmet, "dependencies");
        }
        if !node.cleared {
            match def
                .when
                .as_deref()
                .map(|when| holds(when, &NameLookup::of(self, node)))
                .transpose()
            {
                Ok(Some(false)) => return self.skip(id, NodeEnd::Unmet, "when"),
                Ok(_) => {}
                Err(error) => return self.fail_for_good(id, template_failure(&error)),
            }
            if self.asks_before(id) {
                return;
            }
        }
        self.enter(id, &def);
    }

    /// How many tasks a node depends on.
    fn dependencies(&self, node: &TaskNode, def: &Task) -> u32 {
        let names = self.scopes.get(&node.scope).map(|scope| &scope.names);
        let known = |dep: &&String| names.is_some_and(|names| names.contains_key(*dep));
        let distinct: std::collections::BTreeSet<&String> =
            def.depends_on.iter().filter(known).collect();
        u32::try_from(distinct.len()).unwrap_or(u32::MAX)
    }

    /// Counts a node as under way in its scope, or queues it until there is a place.
    fn take_room(&mut self, id: NodeId) -> bool {
        let Some(node) = self.nodes.get_mut(id) else { return false };
        let Some(scope) = self.scopes.get_mut(&node.scope) else { return false };
        if scope.limit.is_some_and(|limit| scope.busy >= limit) {
            scope.room.insert(id);
            return false;
        }
        scope.busy += 1;
        node.counted = true;
        true
    }

    /// Begins the action of a node.
    fn enter(&mut self, id: NodeId, def: &Task) {
        match &def.action {
            Action::McpTool(_) | Action::CodeExecution(_) | Action::Sandbox(_) => {
                if !self.adopt_ahead(id) {
                    self.enqueue(id);
                }
            }
            Action::Approval { message, by, decide_within_ms } => {
                self.begin_without_work(id);
                self.ask_approval(id, message, *by, *decide_within_ms);
            }
            Action::Wait(wait) => {
                self.begin_without_work(id);
                self.sleep(id, wait);
            }
            Action::Pass { value } => {
                self.begin_without_work(id);
                match self.rendered(id, value) {
                    Ok(value) => self.done(id, value),
                    Err(error) => self.fail_for_good(id, template_failure(&error)),
                }
            }
            Action::Foreach(_) | Action::Loop(_) | Action::Workflow { .. } => {
                self.begin_without_work(id);
                self.set_timeout(id, def);
                self.expand(id, def);
            }
        }
    }

    /// A value with its templates rendered for a node.
    pub(super) fn rendered(
        &self,
        id: NodeId,
        value: &JsonValue,
    ) -> Result<JsonValue, TemplateError> {
        match self.nodes.get(id) {
            Some(node) => render(value, &NameLookup::of(self, node)),
            None => Ok(JsonValue::Null),
        }
    }

    fn begin_without_work(&mut self, id: NodeId) {
        let now = self.now_ms;
        if let Some(node) = self.nodes.get_mut(id) {
            node.attempt += 1;
            node.started_ms = Some(now);
        }
        self.tell_started(id, false);
    }

    fn tell_started(&mut self, id: NodeId, speculative: bool) {
        let Some((node, def)) = self.node(id) else { return };
        let (task, attempt) = (node.name.clone(), node.attempt);
        let mut language = None;
        if let Action::CodeExecution(code) = &def.action {
            language = Some(code.language);
        }
        let kind = kind(&def.action).to_owned();
        self.emit(WorkflowEventKind::TaskStarted {
            task: task.clone(),
            kind,
            attempt,
            speculative,
        });
        if let Some(language) = language {
            self.emit(WorkflowEventKind::CodeExecutionStarted { task, attempt, language });
        }
    }

    fn set_timeout(&mut self, id: NodeId, def: &Task) {
        let mut limits: Vec<u64> = def.timeout_ms.into_iter().collect();
        if let Action::Workflow { workflow, .. } = &def.action {
            limits.extend(workflow.settings.timeout_ms);
        }
        let Some(ms) = limits.into_iter().min() else { return };
        let timer = self.set_timer(ms, TimerPurpose::Timeout(id));
        if let Some(node) = self.nodes.get_mut(id) {
            node.timer = Some(timer);
        }
    }

    fn sleep(&mut self, id: NodeId, wait: &Wait) {
        let (template, from) = match wait {
            Wait::For { wait_ms } => (wait_ms, self.now_ms),
            Wait::Until { until_ms } => (until_ms, 0),
        };
        let value = match self.rendered(id, template) {
            Ok(value) => value,
            Err(error) => return self.fail_for_good(id, template_failure(&error)),
        };
        let Some(ms) = milliseconds(&value) else {
            let failure =
                TaskFailure::new("wait", format!("{value} is not a number of milliseconds"));
            return self.fail_for_good(id, failure);
        };
        let timer = self.set_timer_at(from.saturating_add(ms), TimerPurpose::Wake(id));
        if let Some(node) = self.nodes.get_mut(id) {
            node.timer = Some(timer);
            node.phase = NodePhase::Sleeping;
        }
    }

    /// A wait is over.
    pub(super) fn woke(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.timer = None;
            self.done(id, JsonValue::Null);
        }
    }

    /// Performs a node; a node in doubt repeats exactly the work it had.
    fn start(&mut self, id: NodeId) {
        let Some((node, def)) = self.node(id) else { return };
        let again = node.work.is_some();
        let work = match node.work.clone() {
            Some(work) => work,
            None => match self.work_of(node, &def, None) {
                Ok(Some(work)) => work,
                Ok(None) => return,
                Err(error) => return self.fail_for_good(id, template_failure(&error)),
            },
        };
        let now = self.now_ms;
        let bytes = bytes_of_work(&work);
        let files = self.wants_files(node, &work).then(|| self.files.hold());
        if let Some(node) = self.nodes.get_mut(id) {
            node.attempt += 1;
            node.tries += 1;
            node.started_ms = Some(now);
            node.phase = NodePhase::Running;
            node.files = files;
            node.work = Some(work);
        }
        self.grow(bytes);
        self.running.insert(id);
        self.tell_started(id, false);
        self.send(id, again);
    }

    /// Emits the start of a running node, with a time limit of its own.
    pub(super) fn send(&mut self, id: NodeId, again: bool) {
        let Some((node, def)) = self.node(id) else { return };
        let Some(work) = node.work.clone() else { return };
        let start = TaskStart {
            key: self.key(&node.name, &work),
            instance: node.name.clone(),
            attempt: node.attempt,
            idempotent: def.idempotent,
            speculative: false,
            again,
            timeout_ms: def.timeout_ms,
            files: node.files,
            work,
        };
        self.out.push(Effect::Start(start));
        self.set_timeout(id, &def);
    }

    /// Emits the start of a run ahead of a decision.
    pub(super) fn send_ahead(&mut self, id: NodeId, work: &TaskWork, files: Option<u64>) {
        let Some((node, def)) = self.node(id) else { return };
        let start = TaskStart {
            key: self.key(&node.name, work),
            instance: node.name.clone(),
            attempt: node.attempt,
            work: work.clone(),
            idempotent: def.idempotent,
            speculative: true,
            again: false,
            timeout_ms: def.timeout_ms,
            files,
        };
        self.tell_started(id, true);
        self.out.push(Effect::Start(start));
    }
}

/// A whole number of milliseconds, also from text or a fraction.
fn milliseconds(value: &JsonValue) -> Option<u64> {
    let number = match value {
        JsonValue::Number(number) => number.as_f64()?,
        JsonValue::String(text) => text.trim().parse().ok()?,
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::Array(_) | JsonValue::Object(_) => {
            return None;
        }
    };
    // Within the range where every whole number is exact.
    let fits = number.is_finite() && (0.0..9e15).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
    fits.then_some(number as u64)
}
