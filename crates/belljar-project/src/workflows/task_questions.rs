//! Calls inside a workflow's code that wait for a person.
//!
//! The workflow itself does not wait for them: its task runs. They are questions of the task's run, and
//! are answered as such; whoever looks at the workflow has to see why it does not go on.

use belljar_store::{Approvals, Store, StoreError};
use belljar_workflow::Machine;

use super::code::run_of;
use crate::now_ms;

/// A call inside the code of a task that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuestion {
    /// The task instance.
    pub task: String,
    /// The id of the approval.
    pub id: String,
    /// The call may have happened, and what is asked is what to make of that.
    pub is_in_doubt: bool,
    /// `server__tool`.
    pub tool: String,
}

/// The questions that calls inside the tasks of a workflow ask, oldest first.
pub async fn task_questions(
    store: &Store,
    machine: &Machine,
) -> Result<Vec<TaskQuestion>, StoreError> {
    let runs: Vec<(String, String)> = machine
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
