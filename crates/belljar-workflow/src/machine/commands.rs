//! Commands: each is taken once, and each is answered.

use belljar_contract::WorkflowStatus;

use super::Machine;
use super::decide::DecisionAnswer;
use super::parts::{NodeId, NodeStop};
use super::view::SHOWN;
use crate::command::{Acknowledgement, WorkflowCommand, is_agent};
use crate::effect::{Effect, TaskFailure};
use crate::event::WorkflowEventKind;
use crate::template::{did_you_mean, near};

impl Machine {
    /// Takes a command, unless it was taken before.
    pub(super) fn commanded(&mut self, id: String, by: &str, command: WorkflowCommand) {
        if self.answered_before(&id) {
            return;
        }
        let refused = self.apply_command(by, command).err();
        self.acknowledge(id, refused);
    }

    /// Repeats the answer to a command that was taken before.
    pub(super) fn answered_before(&mut self, id: &str) -> bool {
        let Some(known) = self.commands.get(id) else { return false };
        self.out.push(Effect::Acknowledge(known.clone()));
        true
    }

    pub(super) fn acknowledge(&mut self, id: String, refused: Option<String>) {
        let acknowledgement = Acknowledgement { command: id.clone(), refused };
        self.commands.insert(id, acknowledgement.clone());
        self.out.push(Effect::Acknowledge(acknowledgement));
    }

    fn apply_command(&mut self, by: &str, command: WorkflowCommand) -> Result<(), String> {
        if self.status.is_over() {
            return Err("the workflow has ended".to_owned());
        }
        self.check_permission(by, &command)?;
        match (self.status, &command) {
            (WorkflowStatus::RollingBack, WorkflowCommand::Skip { task }) => {
                return self.skip_undo(task);
            }
            (WorkflowStatus::RollingBack, _) => {
                return Err("the workflow is rolling back".to_owned());
            }
            (WorkflowStatus::Stopping, _) => return Err("the workflow is stopping".to_owned()),
            _ => {}
        }
        match command {
            WorkflowCommand::Abort { reason } => self.abort(by, reason),
            WorkflowCommand::Pause => return self.pause(by),
            WorkflowCommand::Continue => return self.continue_workflow(),
            WorkflowCommand::InjectTasks { tasks } => return self.inject(tasks),
            WorkflowCommand::Replan { tasks, reason: _ } => return self.replan(tasks),
            WorkflowCommand::Skip { task } => return self.skip_task(&task),
            WorkflowCommand::ModifyArgs { task, arguments } => {
                return self.modify_arguments(&task, &arguments);
            }
            WorkflowCommand::Approve { decision, value } => {
                return self.answer(&decision, DecisionAnswer::Yes(value), by);
            }
            WorkflowCommand::Reject { decision, reason } => {
                return self.answer(&decision, DecisionAnswer::No(reason), by);
            }
            WorkflowCommand::Modify { decision, arguments, value } => {
                return self.answer(&decision, DecisionAnswer::Otherwise { arguments, value }, by);
            }
            WorkflowCommand::Resolve { task, how } => return self.resolve(&task, how, by),
            WorkflowCommand::RollBack { .. } => {
                return Err("a rollback needs the state of its checkpoint".to_owned());
            }
        }
        Ok(())
    }

    fn abort(&mut self, by: &str, reason: Option<String>) {
        let message = reason.unwrap_or_else(|| format!("aborted by {by}"));
        self.stop_all(
            WorkflowStatus::Aborted,
            TaskFailure::new(WorkflowStatus::Aborted.as_str(), message),
        );
    }

    fn pause(&mut self, by: &str) -> Result<(), String> {
        let person = !is_agent(by);
        if self.status == WorkflowStatus::Paused {
            if person && !self.held {
                self.held = true;
                return Ok(());
            }
            return Err("the workflow is paused".to_owned());
        }
        self.held = person;
        self.status = WorkflowStatus::Paused;
        self.emit(WorkflowEventKind::WorkflowPaused);
        Ok(())
    }

    fn continue_workflow(&mut self) -> Result<(), String> {
        if self.status != WorkflowStatus::Paused {
            return Err("the workflow is not paused".to_owned());
        }
        self.status = WorkflowStatus::Running;
        self.held = false;
        self.emit(WorkflowEventKind::WorkflowContinued);
        self.unpark();
        Ok(())
    }

    fn skip_task(&mut self, task: &str) -> Result<(), String> {
        let id = self.open_task(task)?;
        if self.nodes.get(id).is_some_and(|node| node.stop.is_some()) {
            return Err(format!("task {task} is being stopped"));
        }
        self.stop(id, NodeStop::Skip);
        Ok(())
    }

    /// A task that has not ended.
    pub(super) fn open_task(&self, task: &str) -> Result<NodeId, String> {
        let Some(id) = self.nodes.named(task) else { return Err(self.unknown_task(task)) };
        if self.nodes.get(id).is_none_or(super::parts::TaskNode::has_ended) {
            return Err(format!("task {task} has ended"));
        }
        Ok(id)
    }

    pub(super) fn unknown_task(&self, task: &str) -> String {
        let names: Vec<String> = self.nodes.iter().map(|node| node.name.clone()).collect();
        let near = near(task, &names);
        if near.is_empty() && !names.is_empty() {
            let more = if names.len() > SHOWN { ", …" } else { "" };
            let shown: Vec<String> = names.into_iter().take(SHOWN).collect();
            return format!("there is no task {task}; tasks: {}{more}", shown.join(", "));
        }
        format!("there is no task {task}{}", did_you_mean(&near))
    }
}
