//! Errors of workflow operations.

use std::{io, path::PathBuf};

use belljar_contract::{MAX_WORKFLOW_ID, is_workflow_id};
use belljar_workflow::{DagFaults, WorkflowError, WorkflowStoreError};
use belljar_workflow_formats::{CODE_SWITCH, SHELL_SWITCH};
use thiserror::Error;

/// Why a workflow operation failed. Nothing was changed.
#[derive(Debug, Error)]
pub enum ProjectWorkflowError {
    /// The project has no store.
    #[error("this project has no store")]
    NoStore,
    /// The workflow has faults.
    #[error("{0}")]
    Faulty(#[source] DagFaults),
    /// The workflow contains code, which the operator has not allowed.
    #[error(
        "task {task} runs code, but code execution is off; {}, before the workflow is created",
        CODE_SWITCH
    )]
    CodeOff {
        /// The first task with code.
        task: String,
    },
    /// The workflow contains bash, which the operator has not allowed.
    #[error(
        "task {task} runs bash, but the shell is off; {}, before the workflow is created",
        SHELL_SWITCH
    )]
    ShellOff {
        /// The first task with bash.
        task: String,
    },
    /// An id consists of letters, digits, `_`, `-` and `.`.
    #[error("invalid workflow id `{0}`: use at most {max} letters, digits, `_`, `-` and `.`", max = MAX_WORKFLOW_ID)]
    BadId(String),
    /// No workflow has this id.
    #[error("there is no workflow {0}")]
    Unknown(String),
    /// A workflow with this id exists.
    #[error("workflow {0} exists already")]
    Exists(String),
    /// The queue is full.
    #[error("the queue is full: {waiting} workflows are waiting")]
    Busy {
        /// Number of waiting workflows.
        waiting: usize,
    },
    /// Files cannot be read or written.
    #[error("{}: {source}", path.display())]
    Files {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The stored workflow cannot be read or written.
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

/// Refuses an invalid workflow id.
pub fn check_workflow_id(id: &str) -> Result<(), ProjectWorkflowError> {
    match is_workflow_id(id) {
        true => Ok(()),
        false => Err(ProjectWorkflowError::BadId(id.chars().take(120).collect())),
    }
}
