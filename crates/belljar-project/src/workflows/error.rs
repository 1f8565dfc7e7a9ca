//! Why something could not be done with a workflow.

use std::{io, path::PathBuf};

use belljar_workflow::{DagFaults, WorkflowError, WorkflowStoreError};
use thiserror::Error;

/// Why something could not be done with a workflow. Nothing was changed.
#[derive(Debug, Error)]
pub enum ProjectWorkflowError {
    /// There is nowhere to keep workflows.
    #[error("this project has no store for workflows")]
    NoStore,
    /// It is not well formed.
    #[error("{0}")]
    Faulty(#[source] DagFaults),
    /// It has code, and the operator has not allowed any.
    #[error(
        "task {task} runs code, and code execution is off here: the operator turns it on when a workflow \
         is made, with `--enable-code-execution` or `enable_code_execution` in `[workflows]`"
    )]
    CodeOff {
        /// The first task with code.
        task: String,
    },
    /// It has code in bash, and the operator has not allowed that.
    #[error(
        "task {task} runs bash, and the shell is off here: the operator turns it on when a workflow is \
         made, with `--enable-shell` or `enable_shell` in `[workflows]`"
    )]
    ShellOff {
        /// The first task with bash.
        task: String,
    },
    /// An id is letters, digits, `_`, `-` and `.`.
    #[error("`{0}` is no id: letters, digits, `_`, `-` and `.`, at most 100, make one")]
    BadId(String),
    /// There is no such workflow.
    #[error("there is no workflow {0}")]
    Unknown(String),
    /// There is such a workflow already.
    #[error("workflow {0} exists already")]
    Exists(String),
    /// Too many wait for their turn.
    #[error("{waiting} workflows wait for their turn already")]
    Busy {
        /// How many.
        waiting: usize,
    },
    /// Files could not be read or written.
    #[error("{}: {source}", path.display())]
    Files {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is kept of it cannot be had.
    #[error(transparent)]
    Workflow(WorkflowError),
}

impl From<WorkflowError> for ProjectWorkflowError {
    fn from(error: WorkflowError) -> Self {
        match error {
            WorkflowError::Faulty(faults) => Self::Faulty(faults),
            WorkflowError::Store(WorkflowStoreError::Unknown(id)) => Self::Unknown(id),
            WorkflowError::Store(WorkflowStoreError::Exists(id)) => Self::Exists(id),
            other @ (WorkflowError::Store(_) | WorkflowError::Unreadable(_)) => {
                Self::Workflow(other)
            }
        }
    }
}

/// Refuses what cannot be the id of a workflow: ids become parts of names of files and of what is
/// typed.
pub fn check_workflow_id(id: &str) -> Result<(), ProjectWorkflowError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let is_good =
        (1..=100).contains(&id.len()) && id.chars().all(is_plain) && !id.starts_with(['.', '-']);
    if is_good { Ok(()) } else { Err(ProjectWorkflowError::BadId(id.chars().take(120).collect())) }
}
