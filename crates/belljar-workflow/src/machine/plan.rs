//! Changes of the workflow itself: tasks added, tasks replaced, arguments changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use belljar_contract::JsonMap;

use super::Machine;
use super::parts::{NodeId, ROOT};
use super::work::with_arguments;
use crate::check::check;
use crate::dag::Task;
use crate::event::WorkflowEventKind;

impl Machine {
    /// Adds tasks to the workflow.
    pub(super) fn inject(&mut self, tasks: Vec<Task>) -> Result<(), String> {
        if tasks.is_empty() {
            return Err("there are no tasks to inject".to_owned());
        }
        self.fits(&tasks, &BTreeSet::new())?;
        let names = ids(&tasks);
        self.emit(WorkflowEventKind::TasksInjected { tasks: names });
        self.add_tasks(ROOT, tasks);
        Ok(())
    }

    /// Replaces all tasks that have not begun.
    pub(super) fn replan(&mut self, tasks: Vec<Task>) -> Result<(), String> {
        let most = self.home(ROOT).map_or(0, |home| home.settings.max_replans);
        if self.replans >= most {
            return Err(format!("the workflow was replanned {most} times, which is its limit"));
        }
        let going = self.fresh();
        self.fits(&tasks, &going)?;
        self.replans += 1;
        let dropped: Vec<String> = going.iter().filter_map(|id| self.remove(*id)).collect();
        let names = ids(&tasks);
        self.emit(WorkflowEventKind::Replanned { replans: self.replans, tasks: names, dropped });
        self.add_tasks(ROOT, tasks);
        self.end_if_empty(ROOT);
        Ok(())
    }

    /// Tasks of the workflow that have not begun.
    pub(super) fn fresh(&self) -> BTreeSet<NodeId> {
        let open = self.scopes.get(&ROOT).map(|root| root.open.iter());
        let nodes = open.into_iter().flatten().filter_map(|id| self.nodes.get(*id));
        nodes.filter(|node| node.is_fresh()).map(|node| node.id).collect()
    }

    /// Checks the workflow as it would be with `tasks` added and `without` removed.
    fn fits(&self, tasks: &[Task], without: &BTreeSet<NodeId>) -> Result<(), String> {
        let mut dag = self.dag();
        let gone: BTreeSet<&str> =
            without.iter().filter_map(|id| Some(self.nodes.get(*id)?.name.as_str())).collect();
        dag.tasks.retain(|task| !gone.contains(task.id.as_str()));
        if let Some(again) = tasks.iter().find(|task| dag.tasks.iter().any(|old| old.id == task.id))
        {
            return Err(format!("a task {} exists already", again.id));
        }
        // Decisions about tasks that the new plan does not have are dropped.
        let all: BTreeSet<String> =
            dag.tasks.iter().chain(tasks).map(|task| task.id.clone()).collect();
        dag.settings.decisions.before.retain(|id| all.contains(id));
        dag.settings.decisions.after.retain(|id| all.contains(id));
        dag.tasks.extend(tasks.iter().cloned());
        check(&dag, None).map_err(|faults| faults.to_string())
    }

    /// Removes a task that has not begun.
    fn remove(&mut self, id: NodeId) -> Option<String> {
        self.withdraw(id);
        self.drop_ahead(id);
        let node = self.nodes.remove(id)?;
        let def = Arc::clone(self.def(node.def)?);
        self.ready.remove(&id);
        self.queue.remove(&id);
        let root = self.scopes.get_mut(&ROOT)?;
        root.names.remove(&def.id);
        root.open.remove(&id);
        root.room.remove(&id);
        root.busy -= usize::from(node.counted);
        let deps: Vec<NodeId> =
            def.depends_on.iter().filter_map(|dep| root.names.get(dep).copied()).collect();
        for dep in deps {
            if let Some(dep) = self.nodes.get_mut(dep) {
                dep.dependants.retain(|dependant| *dependant != id);
            }
        }
        Some(node.name)
    }

    /// Changes the arguments of a task that has not begun.
    pub(super) fn modify_arguments(
        &mut self,
        task: &str,
        arguments: &JsonMap,
    ) -> Result<(), String> {
        let id = self.open_task(task)?;
        let Some((node, def)) = self.node(id) else { return Err(self.unknown_task(task)) };
        if !node.is_fresh() || node.ahead.is_some() {
            return Err(format!("task {task} has begun"));
        }
        with_arguments(&def, arguments)?;
        self.redefine(id, arguments);
        Ok(())
    }

    /// Gives one node a definition of its own, with changed arguments.
    pub(super) fn redefine(&mut self, id: NodeId, arguments: &JsonMap) {
        let Some((node, def)) = self.node(id) else { return };
        let task = node.name.clone();
        let Ok(changed) = with_arguments(&def, arguments) else { return };
        let def = self.define(changed);
        if let Some(node) = self.nodes.get_mut(id) {
            node.def = def;
        }
        self.emit(WorkflowEventKind::ArgumentsModified { task });
    }
}

fn ids(tasks: &[Task]) -> Vec<String> {
    tasks.iter().map(|task| task.id.clone()).collect()
}
