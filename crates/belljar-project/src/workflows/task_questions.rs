//! Tool calls inside a workflow's code that wait for a person.
//!
//! The workflow does not wait for them: its task is running. They are approvals of the task's run
//! and are decided as such, but a person who looks at the workflow must see why it makes no
//! progress.

use belljar_contract::{ApprovalId, RunId};
use belljar_store::{Approvals, Store, StoreError};
use belljar_workflow::Machine;

use super::code::run_of;
use crate::now_ms;

/// A tool call inside a task's code that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuestion {
    /// Instance name of the task.
    pub task: String,
    /// Id of the approval to decide.
    pub id: ApprovalId,
    /// Whether the call may have happened already.
    pub is_in_doubt: bool,
    /// The tool as `server__tool`.
    pub tool: String,
}

/// The pending tool calls inside the tasks of a workflow, oldest first.
pub async fn task_questions(
    store: &Store,
    machine: &Machine,
) -> Result<Vec<TaskQuestion>, StoreError> {
    let runs: Vec<(RunId, String)> = machine
        .under_way()
        .into_iter()
        .map(|(task, key, attempt)| (run_of(&key, &attempt), task))
        .collect();
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let pending = store.approvals(Approvals::Pending, now_ms()).await?;
    let of_task = pending.into_iter().filter_map(|one| {
        let (_, task) = runs.iter().find(|(run, _)| *run == one.asked.run_id)?;
        let is_in_doubt = one.asked.is_in_doubt();
        Some(TaskQuestion {
            task: task.clone(),
            id: one.asked.id,
            is_in_doubt,
            tool: one.asked.tool,
        })
    });
    Ok(of_task.collect())
}
