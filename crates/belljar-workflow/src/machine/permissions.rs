//! The acts that agents may not do because they are left to a person.
//!
//! The check is made when a command is applied, not when it is sent: a rollback between the two may
//! open a decision again. Three rules hold: only a person answers a person's decision; the subject
//! of an open decision does not change; and one answer is used once.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Machine;
use super::parts::{NodeId, ScopeKind, SideEffectKind, TaskScope};
use crate::command::{WorkflowCommand, is_agent};
use crate::dag::{Action, Dag, DagSettings, Decider, OnError, Task};

/// An answer given by a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PersonAnswer {
    /// The number of the input that brought it.
    at: u64,
    /// The node of the task it was about and the nodes of its containers, innermost first.
    path: Vec<NodeId>,
}

impl Machine {
    /// Whether a sender may give a command, and if not, why. A person may give any.
    pub(super) fn check_permission(
        &self,
        by: &str,
        command: &WorkflowCommand,
    ) -> Result<(), String> {
        if !is_agent(by) {
            return Ok(());
        }
        match command {
            WorkflowCommand::Abort { .. }
            | WorkflowCommand::Pause
            | WorkflowCommand::RollBack { .. } => Ok(()),
            WorkflowCommand::Continue if self.held => {
                Err("a person paused or rolled back the workflow: only a person may continue it"
                    .into())
            }
            WorkflowCommand::Continue => Ok(()),
            WorkflowCommand::Skip { .. } if self.is_rollback_by_person() => {
                Err("a person asked for this rollback: only a person may skip a part of it".into())
            }
            WorkflowCommand::InjectTasks { .. } | WorkflowCommand::ModifyArgs { .. } => {
                self.check_no_person_is_asked()
            }
            WorkflowCommand::Skip { task } => {
                self.check_no_person_is_asked()?;
                self.check_no_person_will_be_asked(self.nodes.named(task))
            }
            WorkflowCommand::Replan { .. } => {
                self.check_no_person_is_asked()?;
                self.check_no_person_will_be_asked(self.fresh())
            }
            WorkflowCommand::Approve { decision, value: None }
            | WorkflowCommand::Reject { decision, .. } => self.check_agent_may_answer(decision),
            // The value of an answer may go into the state that a person is shown.
            WorkflowCommand::Approve { decision, .. }
            | WorkflowCommand::Modify { decision, .. } => {
                self.check_agent_may_answer(decision)?;
                self.check_no_person_is_asked()
            }
            WorkflowCommand::Resolve { task, .. } => {
                Err(format!("only a person may say whether {task} took effect"))
            }
        }
    }

    fn check_agent_may_answer(&self, decision: &str) -> Result<(), String> {
        let open = self.decisions.values().find(|pending| pending.decision.id == decision);
        match open.map(|pending| pending.decision.by) {
            Some(Decider::Human) => Err(format!("only a person may answer decision {decision}")),
            Some(Decider::Agent) | None => Ok(()),
        }
    }

    /// Fails while a person is asked: the subject of a decision must not change meanwhile.
    fn check_no_person_is_asked(&self) -> Result<(), String> {
        let open = self.decisions.values().map(|pending| &pending.decision);
        match open.into_iter().find(|decision| decision.by == Decider::Human) {
            Some(decision) => Err(format!(
                "an agent may change nothing while a person is asked about {} (decision {})",
                decision.instance, decision.id
            )),
            None => Ok(()),
        }
    }

    /// Fails if a person will be asked about one of these tasks.
    fn check_no_person_will_be_asked(
        &self,
        ids: impl IntoIterator<Item = NodeId>,
    ) -> Result<(), String> {
        for id in ids {
            let Some((node, def)) = self.node(id) else { continue };
            let settings = self.home(node.scope).map(|home| &home.settings);
            if settings.is_none_or(|settings| asks_a_person(&def, settings)) {
                let task = &node.name;
                return Err(format!("only a person may drop {task}: a person decides about it"));
            }
        }
        Ok(())
    }

    /// Records an answer, if a person gave it to a person's decision.
    pub(super) fn note_answer(&mut self, number: u64, by: &str) {
        let Some(pending) = self.decisions.get(&number) else { return };
        if is_agent(by) || pending.decision.by != Decider::Human {
            return;
        }
        let path = std::iter::successors(Some(pending.node), |id| {
            self.scopes.get(&self.nodes.get(*id)?.scope)?.node
        });
        let path = path.collect();
        self.answers.push(PersonAnswer { at: self.taken, path });
    }

    /// Whether a sender may roll back. An agent may not if it would bypass a person's decision, or
    /// have one agreement of a person used twice.
    pub(super) fn check_rollback_permission(
        &self,
        by: &str,
        to: u64,
        base: &Self,
    ) -> Result<(), String> {
        if !is_agent(by) {
            return Ok(());
        }
        self.check_no_person_is_asked()?;
        if self.answers.iter().any(|given| given.at > to) {
            return Err(format!(
                "only a person may roll back to checkpoint {to}: a person has decided since"
            ));
        }
        let after = self.traces.iter().filter(|trace| trace.at > to);
        if let Some(trace) =
            after.into_iter().find(|t| matches!(t.kind, SideEffectKind::Doubt(None)))
        {
            let task = &trace.instance;
            return Err(format!(
                "only a person may roll back: whether {task} took effect is unknown"
            ));
        }
        match self.answers.iter().find_map(|given| self.used_since(given, base)) {
            Some(task) => Err(format!(
                "only a person may roll back: {task} was begun because a person agreed"
            )),
            None => Ok(()),
        }
    }

    /// A task that follows from an answer, was begun, and had not ended in `base`.
    fn used_since(&self, given: &PersonAnswer, base: &Self) -> Option<&String> {
        // Old rounds of a loop are dropped; then the answer counts for the loop itself.
        let mut id = *given.path.iter().find(|id| self.nodes.get(**id).is_some())?;
        let mut itself = true;
        loop {
            let place = self.scopes.get(&self.nodes.get(id)?.scope)?;
            let used = self.follow(place, id, itself).into_iter().find_map(|id| {
                let begun = self.nodes.get(id).filter(|node| node.attempt > 0)?;
                let ended = base.nodes.get(id).is_some_and(super::parts::TaskNode::has_ended);
                (!ended).then_some(&begun.name)
            });
            if used.is_some() {
                return used;
            }
            // The next round follows from this one; tasks after a workflow depend on it.
            itself = matches!(place.kind, ScopeKind::Round(_));
            id = place.node?;
        }
    }

    /// All nodes of a scope that depend on a node, with the node itself if `itself` says so.
    fn follow(&self, scope: &TaskScope, from: NodeId, itself: bool) -> BTreeSet<NodeId> {
        let after = self.dependants_in(scope);
        let mut found = BTreeSet::new();
        let mut todo = vec![from];
        while let Some(id) = todo.pop() {
            if found.insert(id) {
                todo.extend(after.get(&id).into_iter().flatten());
            }
        }
        if !itself {
            found.remove(&from);
        }
        found
    }

    /// Which nodes depend on which in a scope, ended or not.
    fn dependants_in(&self, scope: &TaskScope) -> BTreeMap<NodeId, Vec<NodeId>> {
        let mut after: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for id in scope.names.values() {
            let Some((_, def)) = self.node(*id) else { continue };
            for dep in def.depends_on.iter().filter_map(|dep| scope.names.get(dep)) {
                after.entry(*dep).or_default().push(*id);
            }
        }
        after
    }
}

/// Whether a person is asked about a task, or about something inside it.
fn asks_a_person(task: &Task, settings: &DagSettings) -> bool {
    let decide = &settings.decisions;
    let listed =
        decide.per_task || decide.before.contains(&task.id) || decide.after.contains(&task.id);
    if listed && settings.decided_by == Decider::Human {
        return true;
    }
    if let OnError::Fallback(fallback) = &task.on_error
        && asks_a_person(fallback, settings)
    {
        return true;
    }
    match &task.action {
        Action::Approval { by, .. } => *by != Some(Decider::Agent),
        Action::Foreach(foreach) => asks_a_person(&foreach.each, settings),
        Action::Loop(rounds) => rounds.body.iter().any(|task| asks_a_person(task, settings)),
        Action::Workflow { workflow, .. } => {
            let Dag { tasks, settings, .. } = workflow.as_ref();
            tasks.iter().any(|task| asks_a_person(task, settings))
        }
        Action::McpTool(_)
        | Action::CodeExecution(_)
        | Action::Sandbox(_)
        | Action::Wait(_)
        | Action::Pass { .. } => false,
    }
}
